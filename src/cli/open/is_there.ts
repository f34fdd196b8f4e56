import { reason, UsageError } from "../../errors.ts";
import { isAbsent } from "../../hub/cache.ts";

/**
 * Whether anything is at the path, be it a link that leads nowhere.
 *
 * @throws UsageError where that cannot be known: a folder on the way may not be read.
 */
export function isThere(path: string): boolean {
  try {
    Deno.lstatSync(path);
    return true;
  } catch (error) {
    if (isAbsent(error)) return false;
    throw new UsageError(`Cannot open "${path}": ${reason(error)}`, { cause: error });
  }
}

/** Whether a folder is at the path, or a link to one. */
export function isFolder(path: string): boolean {
  return statOf(path)?.isDirectory ?? false;
}

/** Whether a file is at the path, or a link to one. */
export function isFile(path: string): boolean {
  return statOf(path)?.isFile ?? false;
}

function statOf(path: string): Deno.FileInfo | undefined {
  try {
    return Deno.statSync(path);
  } catch {
    return undefined;
  }
}
