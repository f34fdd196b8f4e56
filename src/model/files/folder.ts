import { reason, UsageError } from "../../errors.ts";
import { parsePythonJson } from "../../python_json.ts";
import { quote } from "./fields.ts";

/** Random access to the bytes of one open file. */
export interface ByteSource extends Disposable {
  /** Bytes of the file. */
  readonly size: number;
  /** Fills `into` from byte `offset` on; returns the bytes read, fewer only at the file's end. */
  read(offset: number, into: Uint8Array): number;
}

/** Where the files of a checkpoint come from: a disk, or bytes inside a bundle. */
export interface Folder {
  /** For messages. */
  readonly name: string;
  /** How to restore a missing or truncated file, for messages; absent if no file can be lost. */
  readonly remedy?: string;
  /** A whole small file, undefined when absent. @throws UsageError when unreadable. */
  bytes(file: string): Uint8Array | undefined;
  /** A large file, undefined when absent. @throws UsageError when unreadable. */
  open(file: string): ByteSource | undefined;
}

/** A folder on disk. @throws UsageError when there is none at `path`. */
export function diskFolder(path: string): Folder {
  const info = ifFound(path, () => Deno.statSync(path));
  if (info === undefined) throw cannotOpen(path, "no such folder");
  if (!info.isDirectory) {
    throw cannotOpen(path, "not a folder; a model is a folder in the Hugging Face layout");
  }
  const within = (file: string): string => `${path}/${file}`;
  const remedy = remedyOf(path);
  return {
    name: shownName(path),
    remedy,
    bytes: (file) => ifFound(within(file), () => readWhole(within(file)), remedy),
    open: (file) => ifFound(within(file), () => diskSource(within(file)), remedy),
  };
}

/** One file on disk, opened, and the folder that it is in. @throws UsageError when there is none at `path`. */
export function openDiskFile(
  path: string,
): { readonly folder: Folder; readonly file: string; readonly source: ByteSource } {
  const at = path.lastIndexOf("/");
  const folder = diskFolder(at < 0 ? "." : path.slice(0, at) || "/");
  const file = path.slice(at + 1);
  const source = folder.open(file);
  if (source === undefined) throw cannotOpen(path, "no such file");
  return { folder, file, source };
}

const SNAPSHOT = /(?:^|[/\\])models--([^/\\]+)[/\\]snapshots[/\\]([0-9a-f]{40})$/;

/** The model of a snapshot in the Hugging Face cache. */
function snapshotOf(path: string): { readonly repo: string; readonly commit: string } | undefined {
  const [, repo, commit] = SNAPSHOT.exec(path) ?? [];
  return repo && commit ? { repo: repo.replace("--", "/"), commit } : undefined;
}

/** A snapshot is shown by the model's name: `org/name@1a2b3c4`. */
function shownName(path: string): string {
  const snapshot = snapshotOf(path);
  return snapshot ? `${snapshot.repo}@${snapshot.commit.slice(0, 7)}` : path;
}

function remedyOf(path: string): string {
  const snapshot = snapshotOf(path);
  if (snapshot === undefined) return "download it again";
  return `eyrie pull ${snapshot.repo}@${snapshot.commit} brings it again`;
}

/** A folder in memory: `lookup` answers with a file's bytes, which must not change afterwards. */
export function memoryFolder(
  name: string,
  lookup: (file: string) => Uint8Array | undefined,
): Folder {
  return {
    name,
    bytes: lookup,
    open: (file) => {
      const bytes = lookup(file);
      return bytes && memorySource(bytes);
    },
  };
}

/** A UTF-8 file of `folder`, undefined when absent. @throws UsageError when it is not UTF-8. */
export function readText(folder: Folder, file: string): string | undefined {
  const bytes = folder.bytes(file);
  if (bytes === undefined) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (cause) {
    throw cannotOpen(folder.name, `${file} is not UTF-8`, cause);
  }
}

/** Parsed JSON file of `folder`, undefined when absent. @throws UsageError when it is not JSON. */
export function readJson(folder: Folder, file: string): unknown {
  const text = readText(folder, file);
  if (text === undefined) return undefined;
  try {
    return parsePythonJson(text);
  } catch (cause) {
    throw cannotOpen(folder.name, `${file} is not JSON (${reason(cause)})`, cause);
  }
}

/** Most bytes of a config or tokenizer file, which takes some MB; a larger file is neither. */
const MAX_BYTES = 256 << 20;

function readWhole(path: string): Uint8Array {
  const { size } = checkFile(path);
  if (size > MAX_BYTES) throw new Error(`${size} bytes, expected at most ${MAX_BYTES}`);
  return Deno.readFileSync(path);
}

/** Looks before the path is opened: opening a pipe waits for its writer, and a device may never end. */
function checkFile(path: string): Deno.FileInfo {
  const info = Deno.statSync(path);
  if (!info.isFile) throw new Error("not a file");
  return info;
}

function diskSource(path: string): ByteSource {
  checkFile(path);
  const file = Deno.openSync(path);
  return {
    size: file.statSync().size,
    read(offset, into) {
      file.seekSync(offset, Deno.SeekMode.Start);
      let done = 0;
      while (done < into.length) {
        const count = file.readSync(into.subarray(done));
        if (count === null) break;
        done += count;
      }
      return done;
    },
    [Symbol.dispose]: () => file.close(),
  };
}

function memorySource(bytes: Uint8Array): ByteSource {
  return {
    size: bytes.length,
    read(offset, into) {
      const part = bytes.subarray(offset, offset + into.length);
      into.set(part);
      return part.length;
    },
    [Symbol.dispose]: () => {},
  };
}

function ifFound<T>(path: string, open: () => T, remedy?: string): T | undefined {
  try {
    return open();
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) {
      refuseDangling(path, remedy);
      return undefined;
    }
    // For "file.txt/config.json" the system reports a wrong directory; here it is a missing file.
    if (error instanceof Deno.errors.NotADirectory) return undefined;
    throw cannotOpen(path, reason(error), error);
  }
}

/** @throws UsageError for a dangling link: if it counted as absent, the error would come later and be unclear. */
function refuseDangling(path: string, remedy: string | undefined): void {
  let target: string;
  try {
    target = Deno.readLinkSync(path);
  } catch {
    return; // no link
  }
  const why = `a link to ${quote(target)}, which is not there`;
  throw cannotOpen(path, remedy === undefined ? why : `${why}; ${remedy}`);
}

function cannotOpen(path: string, why: string, cause?: unknown): UsageError {
  return new UsageError(`Cannot open ${quote(path)}: ${why}`, { cause });
}
