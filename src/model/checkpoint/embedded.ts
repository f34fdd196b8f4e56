import { checkpointOf } from "./checkpoint.ts";
import type { Checkpoint } from "../files/checkpoint_type.ts";
import { embeddedFile } from "./embedded_files.ts";
import { type Folder, memoryFolder } from "../files/folder.ts";

/** A checkpoint that comes with the program (models/fledgling). */
export type EmbeddedName = "target" | "eagle3" | "eagle1";

/** Opens an embedded checkpoint; it holds its files in memory until dropped. */
export function openEmbedded(name: EmbeddedName): Checkpoint {
  return checkpointOf(embeddedFolder(name));
}

/** Its files. */
export function embeddedFolder(name: EmbeddedName): Folder {
  return memoryFolder(`fledgling/${name}`, (file) => embeddedFile(`${name}/${file}`));
}
