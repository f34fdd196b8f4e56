import { reason } from "../../errors.ts";
import { type Env, userFolder } from "../../user_folders.ts";

/** Messages and commands that are kept. */
export const HISTORY_SIZE = 1000;

/** What was typed in this chat and in those before. */
export interface History {
  /** Newest first, each once. */
  readonly lines: readonly string[];
  add(text: string): void;
}

/** Where the history is; undefined where no home folder is known. */
export function historyPath(
  env: Env = (name) => Deno.env.get(name),
  os: typeof Deno.build.os = Deno.build.os,
): string | undefined {
  const folder = userFolder("state", env, os);
  return folder && `${folder}/eyrie/chat_history`;
}

/** A history of this process only. */
export function memoryHistory(lines: readonly string[] = []): History {
  const kept = newest(lines);
  return {
    lines: kept,
    add(text) {
      if (text.trim() === "") return;
      kept.splice(0, kept.length, ...newest([text, ...kept]));
    },
  };
}

/**
 * A history that is kept in a file only its owner reads, a JSON string a line, oldest first. Lines
 * are appended under a lock, so several chats may share the file.
 *
 * @param onWarning called once if the file cannot be used; the history then is of this process.
 */
export function openHistory(path: string, onWarning: (line: string) => void): History {
  let failed = false;
  const attempt = <T>(act: (file: Deno.FsFile) => T): T | undefined => {
    if (failed) return undefined;
    try {
      return locked(path, act);
    } catch (error) {
      failed = true;
      onWarning(`Cannot keep the history in "${path}": ${reason(error)}`);
      return undefined;
    }
  };
  const memory = memoryHistory(attempt((file) => read(file, path)));
  return {
    lines: memory.lines,
    add(text) {
      if (text.trim() === "" || text === memory.lines[0]) return;
      memory.add(text);
      attempt((file) => write(file, `${JSON.stringify(text)}\n`));
    },
  };
}

/** Newest first; the oldest lines go once the file holds twice as many as are kept. */
function read(file: Deno.FsFile, path: string): string[] {
  const texts = Deno.readTextFileSync(path).split("\n").flatMap(textOf);
  if (texts.length > 2 * HISTORY_SIZE) {
    const kept = newest(texts.toReversed()).toReversed();
    file.truncateSync(0);
    write(file, kept.map((text) => `${JSON.stringify(text)}\n`).join(""));
    return kept.toReversed();
  }
  return texts.toReversed();
}

function locked<T>(path: string, act: (file: Deno.FsFile) => T): T {
  Deno.mkdirSync(path.slice(0, path.lastIndexOf("/")), { recursive: true, mode: 0o700 });
  using file = Deno.openSync(path, { append: true, create: true, mode: 0o600 });
  if (Deno.build.os !== "windows") Deno.chmodSync(path, 0o600);
  lock(file);
  return act(file);
}

/** File systems without locks (some network mounts) let everybody through. */
function lock(file: Deno.FsFile): void {
  try {
    file.lockSync(true);
  } catch {
    // A line of another chat may be lost there, at the rare times when the oldest lines go.
  }
}

function write(file: Deno.FsFile, text: string): void {
  let bytes = new TextEncoder().encode(text);
  while (bytes.length > 0) bytes = bytes.subarray(file.writeSync(bytes));
}

/** A line that a crash cut, or that somebody else wrote, is none. */
function textOf(line: string): string[] {
  try {
    const text: unknown = JSON.parse(line);
    return typeof text === "string" ? [text] : [];
  } catch {
    return [];
  }
}

/** The newest of each text, as many as are kept. */
function newest(lines: readonly string[]): string[] {
  return [...new Set(lines)].slice(0, HISTORY_SIZE);
}
