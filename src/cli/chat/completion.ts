import { isFolder } from "../open/is_there.ts";
import type { Completion } from "../terminal/editor.ts";
import { SLASH_COMMANDS } from "./commands.ts";
import { SETTING_NAMES } from "./settings.ts";
import { expandHome } from "./paths.ts";

/** A name in a folder. */
export interface Name {
  readonly name: string;
  readonly isFolder: boolean;
}

/** Lists a folder; nothing where it cannot be read. */
export type ListFolder = (path: string) => readonly Name[];

/** What Tab may make of a typed line: commands, then names of settings or files. */
export function complete(line: string, list: ListFolder = listFolder): Completion {
  const [, name, gap, rest = ""] = /^\s*(\/\S*)(?:(\s+)([^]*))?$/.exec(line) ?? [];
  if (name === undefined) return [[], line];
  if (gap === undefined) {
    const spelled = SLASH_COMMANDS.map(([command, takes]) => takes ? `${command} ` : command);
    return [starting(spelled, name), name];
  }
  const takes = SLASH_COMMANDS.find(([command]) => command === name)?.[1] ?? "";
  if (takes.includes("FILE")) return completeFile(rest.replace(/^-f\s+/, ""), list);
  if (name === "/set" && !/\s/.test(rest)) {
    return [starting(SETTING_NAMES.map((setting) => `${setting} `), rest), rest];
  }
  const [, file] = name === "/set" ? /^format\s+([^]*)$/.exec(rest) ?? [] : [];
  return file === undefined ? [[], line] : completeFile(file, list);
}

/** A path as it is typed, `~` left as it is. */
function completeFile(typed: string, list: ListFolder): Completion {
  if (typed === "~") return [["~/"], typed];
  const cut = typed.lastIndexOf("/") + 1;
  const begun = typed.slice(cut);
  const names = list(expandHome(typed.slice(0, cut)) || ".")
    .filter(({ name }) => begun.startsWith(".") || !name.startsWith("."))
    .map(({ name, isFolder }) => isFolder ? `${name}/` : name);
  return [starting(names, begun), begun];
}

function starting(candidates: readonly string[], begun: string): string[] {
  return candidates.filter((candidate) => candidate.startsWith(begun)).toSorted();
}

function listFolder(path: string): Name[] {
  try {
    return Array.from(Deno.readDirSync(path), ({ name, isDirectory, isSymlink }) => ({
      name,
      isFolder: isDirectory || (isSymlink && isFolder(`${path}/${name}`)),
    }));
  } catch {
    return [];
  }
}
