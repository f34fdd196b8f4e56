/** Folders that are not there, or hold what Eyrie does not read: what to do instead. */
import { basename, dirname } from "node:path";
import { UsageError } from "../../errors.ts";
import { nearest } from "../../hub/nearby.ts";
import { didYouMean } from "../options/nearest.ts";
import { knownLike } from "./drafts.ts";
import { isThere } from "./is_there.ts";

/**
 * @param cached names of the models in the cache: one may have been meant without its organisation.
 * @throws UsageError for a path at which there is nothing, with what is near it.
 */
export function checkFolder(path: string, cached: () => readonly string[]): void {
  if (isThere(path)) return;
  const near = nearIt(path) || (/[/\\]/.test(path) ? "" : namedLike(path, cached()));
  throw new UsageError(`Cannot open "${path}": no such folder${near}`);
}

function namedLike(text: string, cached: readonly string[]): string {
  const near = nearest(text, cached).slice(0, 3).map((name) => `"${name}"`);
  const has = near.length === 0 ? meantModel(text) : `, the cache has ${near.join(", ")}`;
  return `; a model of the hub is org/name${has}`;
}

/** For a name that no hub has: the known ones that may have been meant. */
export function meantModel(text: string): string {
  return didYouMean(knownLike(text).map((name) => `"${name}"`));
}

/** For `org/name` that no hub has and whose first part is a folder here: it may have been meant. */
export function meantFolder(text: string): string {
  return /^[^/]+\/[^/]+$/.test(text) && isFolder(dirname(text))
    ? `; nor is there a folder "${text}"${nearIt(text)}`
    : "";
}

/** Where the path leaves what is there: `; "a" has no "b", but "bb"`. */
function nearIt(path: string): string {
  let missing = path.replace(/(?<=.)[/\\]+$/, "");
  while (!isFolder(dirname(missing)) && dirname(missing) !== missing) missing = dirname(missing);
  const parent = dirname(missing);
  const folders = isFolder(parent) ? foldersIn(parent) : [];
  const near = nearest(basename(missing), folders).slice(0, 3).map((name) => `"${name}"`);
  const where = `"${parent}" has no "${basename(missing)}"`;
  if (near.length > 0) return `; ${where}, but ${near.join(", ")}`;
  return missing === path ? "" : `; ${where}`;
}

function foldersIn(folder: string): string[] {
  try {
    return [...Deno.readDirSync(folder)].filter(({ isFile }) => !isFile).map(({ name }) => name);
  } catch {
    return [];
  }
}

function isFolder(path: string): boolean {
  try {
    return Deno.statSync(path).isDirectory;
  } catch {
    return false;
  }
}
