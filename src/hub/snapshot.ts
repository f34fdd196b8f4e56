/** What the cache has of a model without asking the hub. */
import { reason, UsageError } from "../errors.ts";
import { parsePythonJson } from "../python_json.ts";
import { cachedCommit, readText, type RepoFolders, sizeOf } from "./cache.ts";
import type { ModelName } from "./names.ts";
import { nearest } from "./nearby.ts";
import { missingOf } from "./needed.ts";
import { cachedRepos, scanRepo } from "./scan.ts";

/** A model in the cache. */
export interface Snapshot {
  readonly name: ModelName;
  readonly commit: string;
  readonly folder: string;
  /** Bytes that were downloaded for it. */
  readonly downloaded: number;
}

/** The index of a model of a million tensors is smaller. */
const MAX_JSON = 256 << 20;

/** Why the cache cannot be used, as the end of a sentence. */
export interface Missing {
  readonly missing: string;
  /** Something of the revision is there. */
  readonly begun: boolean;
}

/**
 * The name with a whole commit where it has the beginning of one that the cache has: names are printed with 7 digits,
 * and the hub takes only whole ones.
 */
export function withWholeCommit(name: ModelName, cache: string): ModelName {
  const { repo, revision } = name;
  if (!/^[0-9a-f]{7,39}$/.test(revision)) return name;
  const { revisions } = scanRepo(cache, repo);
  if (revisions.some(({ refs }) => refs.includes(revision))) return name;
  const [found, ...others] = revisions.filter(({ commit }) => commit.startsWith(revision));
  return found && others.length === 0 ? { ...name, revision: found.commit } : name;
}

/** The snapshot that the cache has for a name, or what it lacks. */
export function cachedSnapshot(
  name: ModelName,
  folders: RepoFolders,
  cache: string,
): Snapshot | Missing {
  const commit = cachedCommit(folders, name);
  if (commit === undefined) return missingRevision(name, folders, cache);
  const folder = `${folders.snapshots}/${commit}`;
  const missing = missingFiles(folder);
  if (missing === undefined) return { name, commit, folder, downloaded: 0 };
  return { missing: `"${folders.root}" has no ${missing}`, begun: true };
}

/** The first file that a snapshot lacks to be run. A broken index counts as an empty one: a download replaces it. */
export function missingFiles(folder: string): string | undefined {
  const readIndex = (file: string) => {
    try {
      return readJson(`${folder}/${file}`);
    } catch (error) {
      if (error instanceof UsageError) return undefined;
      throw error;
    }
  };
  return missingOf((file) => sizeOf(`${folder}/${file}`) !== undefined, readIndex);
}

function missingRevision(
  { repo, revision }: ModelName,
  { root }: RepoFolders,
  cache: string,
): Missing {
  const { revisions, begunBytes } = scanRepo(cache, repo);
  const begun = begunBytes !== undefined;
  // What was interrupted has no name yet.
  const unnamed = revisions.find(({ refs }) => refs.length === 0);
  const missing = begun && unnamed ? missingFiles(unnamed.folder) : undefined;
  if (missing !== undefined) return { missing: `"${root}" has no ${missing}`, begun };
  if (revisions.length > 0) {
    const has = revisions.map(({ commit, refs }) => [...refs, commit.slice(0, 7)].join(" = "));
    return { missing: `"${root}" has no revision "${revision}", but ${has.join(", ")}`, begun };
  }
  if (begun) return { missing: `"${root}" has only the beginning of it`, begun };
  const near = nearest(repo, cachedRepos(cache)).map((each) => `"${each}"`);
  const like = near.length === 0 ? "" : `; it has ${near.slice(0, 3).join(", ")}`;
  return { missing: `there is no such model in "${cache}"${like}`, begun };
}

/** @throws UsageError when the file is not JSON. */
export function readJson(path: string): unknown {
  const size = sizeOf(path) ?? 0;
  if (size > MAX_JSON) {
    throw new UsageError(`Cannot read "${path}": ${size} bytes, expected at most ${MAX_JSON}`);
  }
  try {
    return parsePythonJson(readText(path) ?? "null");
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`Cannot read "${path}": not JSON (${reason(error)})`, { cause: error });
  }
}
