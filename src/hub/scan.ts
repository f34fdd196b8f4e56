/**
 * What is in the cache. The package's `scanCacheDir` skips files in subfolders and drops
 * repositories without refs/, so that a removal by it could free what another snapshot needs.
 */
import { ifThere, lstatOf, readText, repoFolders, repoOfFolder } from "./cache.ts";

/** One commit of a repository. */
export interface CachedRevision {
  readonly commit: string;
  readonly folder: string;
  /** Branches and tags that are this commit. */
  readonly refs: readonly string[];
  /** Bytes of all its files. */
  readonly bytes: number;
  /** Real paths of its files' content. */
  readonly blobs: ReadonlySet<string>;
  /** When a file of it was last read or written. */
  readonly usedAt: Date | undefined;
}

/** One repository. */
export interface CachedRepo {
  readonly repo: string;
  readonly folder: string;
  readonly revisions: readonly CachedRevision[];
  /** Bytes of files that have been received in part; undefined where there are none. */
  readonly begunBytes: number | undefined;
}

/** The models in the cache, by name; none where there is no cache. */
export function scanCache(cache: string): CachedRepo[] {
  return cachedRepos(cache).map((repo) => scanRepo(cache, repo));
}

/** Names of the cached models, in alphabetical order; the folder of one may be a link to another disk. */
export function cachedRepos(cache: string): string[] {
  const isFolder = (path: string) => ifThere(path, () => Deno.statSync(path))?.isDirectory;
  return list(cache).flatMap(({ name, isDirectory, isSymlink }) => {
    const repo = repoOfFolder(name);
    if (repo === undefined) return [];
    return isDirectory || isSymlink && isFolder(`${cache}/${name}`) ? repo : [];
  }).toSorted();
}

/** One repository of the cache; without revisions where it is not there. */
export function scanRepo(cache: string, repo: string): CachedRepo {
  const { root, snapshots, refs } = repoFolders(cache, repo);
  const commits = list(snapshots).filter(({ isDirectory }) => isDirectory);
  const named = filesUnder(refs).map((path) => ({
    ref: path.slice(refs.length + 1),
    commit: readText(path)?.trim(),
  }));
  const revisions = commits.map(({ name }) => {
    const folder = `${snapshots}/${name}`;
    const refsHere = named.filter(({ commit }) => commit === name).map(({ ref }) => ref);
    return { commit: name, folder, refs: refsHere.toSorted(), ...measure(folder) };
  });
  const begun = filesUnder(`${root}/blobs`).filter((path) => path.endsWith(".incomplete"));
  // One may have got its name since.
  const begunBytes = begun.reduce((sum, path) => sum + (lstatOf(path)?.size ?? 0), 0);
  return {
    repo,
    folder: root,
    revisions,
    begunBytes: begun.length === 0 ? undefined : begunBytes,
  };
}

function measure(folder: string): Pick<CachedRevision, "bytes" | "blobs" | "usedAt"> {
  const blobs = new Set<string>();
  let bytes = 0;
  let used = 0;
  for (const path of filesUnder(folder)) {
    const found = ifThere(path, () => ({ ...Deno.statSync(path), real: Deno.realPathSync(path) }));
    if (found === undefined) continue; // The link leads nowhere, or it is gone.
    const { size, atime, mtime, real } = found;
    blobs.add(real);
    bytes += size;
    used = Math.max(used, atime?.getTime() ?? 0, mtime?.getTime() ?? 0);
  }
  return { bytes, blobs, usedAt: used === 0 ? undefined : new Date(used) };
}

/** Paths of all files and links below a folder. */
export function filesUnder(folder: string): string[] {
  return list(folder).flatMap(({ name, isDirectory }) => {
    const path = `${folder}/${name}`;
    return isDirectory ? filesUnder(path) : [path];
  });
}

function list(folder: string): Deno.DirEntry[] {
  return ifThere(folder, () => [...Deno.readDirSync(folder)]) ?? [];
}
