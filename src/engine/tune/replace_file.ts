import { dirname } from "node:path";

/** Replaces a file by a rename, and creates its folder: readers see the old or the new text, never a part. */
export function replaceFile(path: string, text: string): void {
  const temporary = `${path}.${crypto.randomUUID().slice(0, 8)}`;
  try {
    Deno.mkdirSync(dirname(path), { recursive: true });
    Deno.writeTextFileSync(temporary, text);
    Deno.renameSync(temporary, path);
  } catch (error) {
    removeQuietly(temporary);
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
