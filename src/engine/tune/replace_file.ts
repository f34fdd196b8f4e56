import { dirname } from "node:path";

/**
 * Replaces a file by a rename, and creates its folder: readers see the old or the new content, never a part. The
 * file keeps its permissions.
 */
export function replaceFile(path: string, content: string | Uint8Array): void {
  const temporary = `${path}.${crypto.randomUUID().slice(0, 8)}`;
  try {
    Deno.mkdirSync(dirname(path), { recursive: true });
    const mode = modeOf(path);
    const options = mode === undefined ? {} : { mode };
    if (typeof content === "string") Deno.writeTextFileSync(temporary, content, options);
    else Deno.writeFileSync(temporary, content, options);
    // The umask takes permissions from a file that is made, not from one that is there.
    if (mode !== undefined && Deno.build.os !== "windows") Deno.chmodSync(temporary, mode);
    Deno.renameSync(temporary, path);
  } catch (error) {
    removeQuietly(temporary);
    throw error;
  }
}

/** Permissions of the file; undefined where there is none, or where the system has none. */
function modeOf(path: string): number | undefined {
  try {
    const { mode } = Deno.statSync(path);
    return mode === null ? undefined : mode & 0o777;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}

function removeQuietly(path: string): void {
  try {
    Deno.removeSync(path);
  } catch {
    // It was not made.
  }
}
