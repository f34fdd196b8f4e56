import { setTimeout } from "node:timers/promises";
import { writing } from "./cache.ts";

const POLL_MS = 100;

/**
 * Waits until no other process, Python's included, holds the lock file, and holds it until disposed.
 * The file stays: removing it would let two processes lock different files of one name.
 */
export async function lock(path: string, signal: AbortSignal | undefined): Promise<Disposable> {
  const file = writing(path, () => {
    Deno.mkdirSync(path.slice(0, path.lastIndexOf("/")), { recursive: true });
    return Deno.openSync(path, { write: true, create: true, mode: 0o664 });
  });
  try {
    while (!tryLock(file)) await setTimeout(POLL_MS, undefined, signal ? { signal } : {});
  } catch (error) {
    file.close();
    throw error;
  }
  return { [Symbol.dispose]: () => file.close() };
}

/** File systems without locks (some network mounts) let everybody through; hashes still decide, see transfer.ts. */
function tryLock(file: Deno.FsFile): boolean {
  try {
    return file.tryLockSync(true);
  } catch {
    return true;
  }
}
