/**
 * The Hugging Face cache on disk, shared with Python:
 *
 *     models--org--name/blobs/<etag>            content; etag = sha256 (LFS, Xet) or git's sha1
 *     models--org--name/snapshots/<commit>/FILE relative link to ../../blobs/<etag>
 *     models--org--name/refs/<revision>         the commit, without a newline
 *     .locks/models--org--name/<etag>.lock      flock-ed while a blob is being downloaded
 */
import { reason, UsageError } from "../errors.ts";
import { isCommit, type ModelName } from "./names.ts";

const PREFIX = "models--";

/** The folders of one repository. */
export interface RepoFolders {
  readonly root: string;
  readonly blobs: string;
  readonly snapshots: string;
  readonly refs: string;
  readonly locks: string;
}

export function repoFolders(cache: string, repo: string): RepoFolders {
  const folder = PREFIX + repo.replace("/", "--");
  const root = `${cache}/${folder}`;
  return {
    root,
    blobs: `${root}/blobs`,
    snapshots: `${root}/snapshots`,
    refs: `${root}/refs`,
    locks: `${cache}/.locks/${folder}`,
  };
}

/** The repository that a folder of the cache is for; undefined for data sets and other things. */
export function repoOfFolder(folder: string): string | undefined {
  return folder.startsWith(PREFIX) ? folder.slice(PREFIX.length).replace("--", "/") : undefined;
}

/** The commit that the cache has for a revision; undefined where it has none. */
export function cachedCommit(folders: RepoFolders, { revision }: ModelName): string | undefined {
  const commit = isCommit(revision) ? revision : readText(`${folders.refs}/${revision}`)?.trim();
  if (commit === undefined || !isCommit(commit)) return undefined;
  return sizeOf(`${folders.snapshots}/${commit}`) === undefined ? undefined : commit;
}

/** Notes which commit a branch or tag is; writes nothing where that is known. */
export function writeRef(folders: RepoFolders, revision: string, commit: string): void {
  const path = `${folders.refs}/${revision}`;
  if (readText(path) === commit) return;
  const temporary = `${path}.${crypto.randomUUID().slice(0, 8)}`;
  writing(path, () => {
    Deno.mkdirSync(parent(path), { recursive: true });
    Deno.writeTextFileSync(temporary, commit);
    Deno.renameSync(temporary, path);
  });
}

/**
 * Makes `file` of a snapshot lead to a blob: by a relative link, or, where the system allows none
 * (Windows without developer mode), by a hard link or a copy.
 */
export function linkBlob(
  folders: RepoFolders,
  { commit, file, etag }: { commit: string; file: string; etag: string },
  symlink: (target: string, path: string) => void = Deno.symlinkSync,
): void {
  const path = `${folders.snapshots}/${commit}/${file}`;
  // Under another name first: another process that reads sees the old link or the new one.
  const temporary = `${path}.${crypto.randomUUID().slice(0, 8)}`;
  const up = "../".repeat(file.split("/").length + 1);
  writing(path, () => {
    Deno.mkdirSync(parent(path), { recursive: true });
    try {
      symlink(`${up}blobs/${etag}`, temporary);
    } catch {
      copyBlob(`${folders.blobs}/${etag}`, temporary);
    }
    Deno.renameSync(temporary, path);
  });
}

function copyBlob(blob: string, path: string): void {
  try {
    Deno.linkSync(blob, path);
  } catch {
    Deno.copyFileSync(blob, path);
  }
}

/** Bytes of a file, following links; undefined where there is none. @throws UsageError */
export function sizeOf(path: string): number | undefined {
  return ifThere(path, () => Deno.statSync(path).size);
}

/** What is at a path, a link as itself; undefined where there is nothing. @throws UsageError */
export function lstatOf(path: string): Deno.FileInfo | undefined {
  return ifThere(path, () => Deno.lstatSync(path));
}

/** Text of a file, undefined where there is none. @throws UsageError */
export function readText(path: string): string | undefined {
  return ifThere(path, () => Deno.readTextFileSync(path));
}

/** What `look` finds at the path, undefined where there is nothing. @throws UsageError where it cannot be read. */
export function ifThere<T>(path: string, look: () => T): T | undefined {
  try {
    return look();
  } catch (error) {
    if (isAbsent(error)) return undefined;
    throw new UsageError(`Cannot read "${path}": ${reason(error)}`, { cause: error });
  }
}

export function removeIfThere(path: string): void {
  try {
    Deno.removeSync(path);
  } catch (error) {
    if (!isAbsent(error)) throw error;
  }
}

/** Whether the error says that there is no such file; a file where a folder should be counts. */
export function isAbsent(error: unknown): boolean {
  return error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotADirectory;
}

/** Runs what writes to the cache. @throws UsageError `Cannot write "PATH": ...` */
export function writing<T>(path: string, write: () => T): T {
  try {
    return write();
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw cannotWrite(path, error);
  }
}

/** A full disk, a folder that is not ours, a read-only mount. */
export function cannotWrite(path: string, error: unknown): UsageError {
  const full = (error as { code?: string } | undefined)?.code === "ENOSPC";
  const advice = full ? "; free some space or set HF_HUB_CACHE to a larger disk" : "";
  return new UsageError(`Cannot write "${path}": ${reason(error)}${advice}`, { cause: error });
}

function parent(path: string): string {
  return path.slice(0, path.lastIndexOf("/"));
}
