/** A model from the hub, or from the cache where the hub cannot be asked, as a folder. */
import { statfsSync } from "node:fs";
import { dirname } from "node:path";
import { UsageError } from "../errors.ts";
import { cachedCommit, linkBlob, lstatOf, repoFolders, sizeOf, writeRef } from "./cache.ts";
import type { RepoFolders } from "./cache.ts";
import { asker, RefusedError } from "./http.ts";
import { isCommit, modelArgument, type ModelName, modelText } from "./names.ts";
import { type RemoteFile, textFiles, weightFiles } from "./needed.ts";
import { type Connect, reach } from "./reach.ts";
import { listRepository } from "./repository.ts";
import { type Persistence, UnreachableError, WAITS } from "./retry.ts";
import type { HubSettings } from "./settings.ts";
import { cachedSnapshot, readJson, type Snapshot, withWholeCommit } from "./snapshot.ts";
import { transfer, type Transport } from "./transfer.ts";

/** Bytes of a download. */
export interface DownloadProgress {
  readonly label: string;
  readonly bytes: number;
  readonly total: number;
  /** How many of `bytes` existed when it began. */
  readonly before: number;
}

/** Where to look, and whom to notify. */
export interface Hub {
  readonly settings: HubSettings;
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: DownloadProgress) => void;
  /** Called with the snapshot's folder once it has the texts; no weights are fetched if it throws. */
  readonly onTexts?: ((folder: string) => void) | undefined;
  /** Called before weights are fetched, with the bytes that will come over the network. */
  readonly onWeights?: ((bytes: number) => void) | undefined;
  /** Lines about what was done otherwise than asked. */
  readonly onWarning?: (line: string) => void;
  /** Milliseconds between attempts, and of silence that end one; tests are less patient. */
  readonly waits?: readonly number[];
  readonly idleMs?: number;
  readonly connect?: Connect;
  /** Free bytes on the disk of a folder. */
  readonly freeBytes?: (folder: string) => number;
}

/** Files received side by side. */
const PARALLEL = 4;
const IDLE_MS = 30_000;
/** Limit of an answer about a repository. */
const ANSWER_MS = 30_000;
/** The same where the cache has the model; Python's HF_HUB_ETAG_TIMEOUT. */
const CACHED_ANSWER_MS = 10_000;
/**
 * Makes sure that the cache has what Eyrie reads of a model.
 * @throws UsageError; whatever happens, a later call goes on from what was received.
 */
export async function download(asked: ModelName, hub: Hub): Promise<Snapshot> {
  const name = withWholeCommit(asked, hub.settings.cache);
  const folders = repoFolders(hub.settings.cache, name.repo);
  const cached = cachedSnapshot(name, folders, hub.settings.cache);
  if (hub.settings.offline) {
    if (!("missing" in cached)) return cached;
    const goesOn = cached.begun
      ? `; without it eyrie pull ${modelArgument(name)} continues the download`
      : "";
    throw new UsageError(
      `Cannot use "${modelText(name)}": HF_HUB_OFFLINE is set, and ${cached.missing}${goesOn}`,
    );
  }
  // Where the cache has the model, retry only once to learn whether there is a newer commit.
  const patience = hub.waits ?? WAITS;
  const waits = "missing" in cached ? patience : patience.slice(0, 1);
  try {
    const answerMs = "missing" in cached ? ANSWER_MS : CACHED_ANSWER_MS;
    return await fromHub(name, folders, { ...hub, waits }, answerMs);
  } catch (error) {
    const isUnreachable = error instanceof UnreachableError;
    // As in Python, it does not matter that the model was removed or gated since, or that the token has expired.
    if (!isUnreachable && !(error instanceof RefusedError)) throw error;
    if ("missing" in cached) throw isUnreachable ? withAdvice(error, name, hub.settings) : error;
    hub.onWarning?.(`${error.message}; using ${cached.commit.slice(0, 7)} from the cache`);
    return cached;
  }
}

/**
 * Makes sure that the cache has one file of a repository and returns its path. A file that is cached
 * already is used without asking the hub.
 * @throws UsageError
 */
export async function downloadFile(asked: ModelName, path: string, hub: Hub): Promise<string> {
  const name = withWholeCommit(asked, hub.settings.cache);
  const folders = repoFolders(hub.settings.cache, name.repo);
  const commit = cachedCommit(folders, name);
  const cached = commit && `${folders.snapshots}/${commit}/${path}`;
  if (cached && sizeOf(cached) !== undefined) return cached;
  const what = `Cannot get "${path}" of "${modelText(name)}"`;
  if (hub.settings.offline) {
    throw new UsageError(`${what}: HF_HUB_OFFLINE is set, and the cache does not have it`);
  }
  const remote = await openRemote(name, folders, hub, ANSWER_MS);
  const file = remote.files.find((each) => each.path === path);
  if (file === undefined) throw new UsageError(`${what}: the repository has no such file`);
  await fetchFiles([file], remote.place, hub, remote.fetching);
  if (!isCommit(name.revision)) writeRef(folders, name.revision, remote.commit);
  return `${folders.snapshots}/${remote.commit}/${path}`;
}

async function fromHub(
  name: ModelName,
  folders: RepoFolders,
  hub: Hub,
  answerMs: number,
): Promise<Snapshot> {
  const remote = await openRemote(name, folders, hub, answerMs);
  const { commit, files, madeFrom, place, fetching } = remote;
  const quietly = { ...hub, onWeights: undefined };
  const texts = await fetchFiles(textFiles(files), place, quietly, fetching);
  const snapshot = `${folders.snapshots}/${commit}`;
  hub.onTexts?.(snapshot);
  const readIndex = (file: string) => readJson(`${snapshot}/${file}`);
  const weights = weightFiles(modelText(name), files, readIndex, madeFrom);
  const rest = await fetchFiles(weights, place, hub, fetching);
  if (!isCommit(name.revision)) writeRef(folders, name.revision, commit);
  return { name, commit, folder: snapshot, downloaded: texts + rest };
}

/** Lists the repository, for what is fetched of it. */
async function openRemote(name: ModelName, folders: RepoFolders, hub: Hub, answerMs: number) {
  const { endpoint, token } = hub.settings;
  const stop = new AbortController();
  const signal = hub.signal ? AbortSignal.any([hub.signal, stop.signal]) : stop.signal;
  const persistence: Persistence = {
    waits: hub.waits ?? WAITS,
    signal,
    ...hub.onWarning ? { onWait: hub.onWarning } : {},
  };
  const ask = asker(name, hub.settings);
  const { connect } = hub;
  await reach(`Cannot get "${modelText(name)}"`, hub.settings, { ...persistence, connect });
  const listed = await listRepository(name, { endpoint, token, ask, persistence, answerMs });
  const place: Place = { name, commit: listed.commit, folders, endpoint };
  const fetching = { ask, persistence, idleMs: hub.idleMs ?? IDLE_MS, stop };
  return { ...listed, place, fetching };
}

interface Place {
  readonly name: ModelName;
  readonly commit: string;
  readonly folders: RepoFolders;
  readonly endpoint: string;
}

/** Puts files into the snapshot, several at once; returns the bytes received. */
async function fetchFiles(
  files: readonly RemoteFile[],
  { name, commit, folders, endpoint }: Place,
  hub: Hub,
  { stop, ...transport }: Omit<Transport, "onBytes"> & { readonly stop: AbortController },
): Promise<number> {
  const missing = files.filter(({ path, size }) =>
    sizeOf(`${folders.snapshots}/${commit}/${path}`) !== size
  );
  const absent = missing.filter(({ etag, size }) => sizeOf(`${folders.blobs}/${etag}`) !== size);
  const before = partialBytes(absent, folders);
  const total = sum(absent);
  checkSpace(name, { ...hub, needed: total - before });
  if (total > before) hub.onWeights?.(total - before);
  let bytes = 0;
  const onBytes = (more: number): void => {
    bytes += more;
    hub.onProgress?.({ label: modelText(name), bytes, total, before });
  };
  await eachOf(missing, stop, async (file) => {
    const blob = `${folders.blobs}/${file.etag}`;
    if (absent.includes(file)) {
      const path = file.path.split("/").map(encodeURIComponent).join("/");
      const url = `${endpoint}/${name.repo}/resolve/${commit}/${path}`;
      const lock = `${folders.locks}/${file.etag}.lock`;
      await transfer({ file, url, blob, lock }, { ...transport, onBytes });
    }
    linkBlob(folders, { commit, file: file.path, etag: file.etag });
  });
  return total - before;
}

/** Works on several at once; the first failure stops the others before it is thrown. */
async function eachOf<T>(
  items: readonly T[],
  stop: AbortController,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const queue = [...items];
  let failure: { readonly error: unknown } | undefined;
  const worker = async (): Promise<void> => {
    for (let item; !failure && (item = queue.shift()) !== undefined;) {
      await work(item).catch((error) => {
        failure ??= { error };
        stop.abort();
      });
    }
  };
  await Promise.all(Array.from({ length: PARALLEL }, worker));
  if (failure) throw failure.error;
}

/** @throws UsageError before anything is written where the disk is too small. */
function checkSpace(
  name: ModelName,
  { settings, needed, freeBytes = freeOn }: Hub & { readonly needed: number },
): void {
  const free = freeBytes(settings.cache);
  if (needed <= free) return;
  throw new UsageError(
    `Cannot download "${modelText(name)}": ${
      inUnits(needed)
    } have to be downloaded, and the disk of ` +
      `"${settings.cache}" has ${inUnits(free)} free; free some or set HF_HUB_CACHE`,
  );
}

/** Free bytes on the disk of the nearest folder that is there; unknown counts as enough. */
export function freeOn(folder: string): number {
  try {
    const { blocks, bavail, bsize } = statfsSync(folder);
    // Some network file systems do not say how large they are.
    return blocks === 0 ? Infinity : bavail * bsize;
  } catch {
    const parent = dirname(folder);
    return parent === folder ? Infinity : freeOn(parent);
  }
}

/** Adds what is there where nothing was received, else that the download can continue. */
function withAdvice(
  { message, cause }: UnreachableError,
  name: ModelName,
  { cache }: HubSettings,
): UnreachableError {
  const found = cachedSnapshot(name, repoFolders(cache, name.repo), cache);
  const text = "missing" in found && !found.begun
    ? `, and ${found.missing}; eyrie models lists what runs from there, and --model takes a folder`
    : `; eyrie pull ${modelArgument(name)} continues the download`;
  return new UnreachableError(message + text, { cause });
}

function partialBytes(files: readonly RemoteFile[], { blobs }: RepoFolders): number {
  return files.reduce((total, { etag, size }) => {
    const found = lstatOf(`${blobs}/${etag}.incomplete`);
    return total + (found?.isFile && found.size <= size ? found.size : 0);
  }, 0);
}

function sum(files: readonly RemoteFile[]): number {
  return files.reduce((total, { size }) => total + size, 0);
}

function inUnits(bytes: number): string {
  const [unit, name] = bytes >= 1e9 ? [1e9, "GB"] : bytes >= 1e6 ? [1e6, "MB"] : [1e3, "kB"];
  return `${(bytes / unit).toFixed(1)} ${name}`;
}
