/** Where downloads are kept, by the rules of the programs that own the folders. */
import { statfsSync } from "node:fs";
import { dirname } from "node:path";
import { denoFolder } from "../../gpu/dawn.ts";
import { hubSettings } from "../../hub/settings.ts";
import type { Env } from "../../user_folders.ts";
import { isFolder } from "../open/is_there.ts";

/** A cache folder by name; `path` is undefined where it is not known (Deno's, without a home folder). */
export interface CacheFolder {
  readonly name: string;
  readonly path: string | undefined;
}

/** A cache folder looked at. */
export interface CacheState extends CacheFolder {
  readonly exists: boolean;
  /** Free space on its file system, undefined where that is not known. */
  readonly freeBytes: number | undefined;
}

/** The folders by environment and system; touches no disk. */
export function cacheFolders(env: Env, os: typeof Deno.build.os): readonly CacheFolder[] {
  // The token, which may be in a file, is not asked for.
  const hub = hubSettings(env, () => undefined);
  return [
    { name: "Hugging Face models", path: hub.cache },
    { name: "Deno modules", path: denoFolder(env, os) },
  ];
}

/** Looks at a folder: is it there, and how much room is left. */
export function cacheState(folder: CacheFolder): CacheState {
  if (folder.path === undefined) return { ...folder, exists: false, freeBytes: undefined };
  return { ...folder, exists: isFolder(folder.path), freeBytes: freeBytes(folder.path) };
}

// An absent folder is made on the file system of its nearest parent that is there.
function freeBytes(path: string): number | undefined {
  for (let at = path;; at = dirname(at)) {
    try {
      const { bavail, bsize } = statfsSync(at);
      return bavail * bsize;
    } catch {
      if (dirname(at) === at) return undefined;
    }
  }
}
