import { repoOfFolder } from "../../hub/cache.ts";
import { isCommit, type ModelName, modelText } from "../../hub/names.ts";

/** The model that a folder of the hub's cache holds, at its commit; undefined for other folders. */
function cachedModel(folder: string): ModelName | undefined {
  const [commit = "", snapshots, cached = ""] = folder.split(/[\\/]/).filter(Boolean).toReversed();
  const repo = repoOfFolder(cached);
  if (repo === undefined || snapshots !== "snapshots" || !isCommit(commit)) return undefined;
  return { repo, revision: commit };
}

/** A checkpoint folder as `--model` opens the same one again: `org/name@commit`, else its whole path. */
export function modelReference(folder: string): string {
  const path = realPath(folder);
  const name = cachedModel(path);
  return name === undefined ? path : `${name.repo}@${name.revision}`;
}

/** A checkpoint's name for people: `org/name@1234567`, else the folder as it was named. */
export function shownName(folder: string): string {
  const name = cachedModel(folder);
  return name === undefined ? folder : modelText(name);
}

function realPath(folder: string): string {
  try {
    return Deno.realPathSync(folder);
  } catch {
    return folder; // the embedded model's is no path
  }
}
