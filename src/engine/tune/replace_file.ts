import { dirname } from "node:path";

/** Replaces a file by a rename, and creates its folder: readers see the old or the new content, never a part. */
export function replaceFile(path: string, content: string | Uint8Array): void {
  const temporary = `${path}.${crypto.randomUUID().slice(0, 8)}`;
  try {
    Deno.mkdirSync(dirname(path), { recursive: true });
    if (typeof content === "string") Deno.writeTextFileSync(temporary, content);
    else Deno.writeFileSync(temporary, content);
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
