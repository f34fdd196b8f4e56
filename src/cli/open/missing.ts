/** Folders that are not there, or hold what Eyrie does not read: what to do instead. */
import { basename, dirname } from "node:path";
import { UsageError } from "../../errors.ts";
import { nearest } from "../../hub/nearby.ts";
import { isRandom } from "../options/measure/random_model.ts";
import { didYouMean } from "../options/nearest.ts";
import { knownLike } from "./drafts.ts";
import { isFolder, isThere } from "./is_there.ts";

/**
 * @param cached names of the models in the cache: one may have been meant without its organisation.
 * @param offline nothing can be downloaded: no model is proposed that the cache does not have.
 * @throws UsageError for a path at which there is nothing, with what is near it.
 */
export function checkFolder(
  path: string,
  { cached, offline }: { readonly cached: () => readonly string[]; readonly offline: boolean },
): void {
  if (isThere(path)) return;
  if (isRandom(path)) {
    throw new UsageError(
      `Cannot open "${path}": random weights are for bench, bench load, breakeven and profile`,
    );
  }
  const near = nearIt(path) || (/[/\\]/.test(path) ? "" : namedLike(path, cached(), offline));
  throw new UsageError(`Cannot open "${path}": no such folder${near}`);
}

function namedLike(text: string, cached: readonly string[], offline: boolean): string {
  const quoted = (names: readonly string[]) => names.slice(0, 3).map((name) => `"${name}"`);
  const near = nearest(text, cached);
  const known = offline ? "" : didYouMean(quoted(knownLike(text)));
  const has = near.length === 0 ? known : `, the cache has ${quoted(near).join(", ")}`;
  return `; a model of the hub is org/name${has}`;
}

/** For `org/name` that no hub has and whose first part is a folder here: it may have been meant. */
export function meantFolder(text: string): string {
  return /^[^/]+\/[^/]+$/.test(text) && isFolder(dirname(text))
    ? `; nor is there a folder "${text}"${nearIt(text)}`
    : "";
}

/** Says at which folder of the path the next part is missing: `; "a" has no "b", but "bb"`. */
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
