import { dirname } from "node:path";

/** Puts a whole text in place by a rename, its folder made: who reads meanwhile reads the one before. */
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
