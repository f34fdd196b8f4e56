/** Reads an environment variable; an empty one counts as absent. */
export type Env = (name: string) => string | undefined;

type Kind = "cache" | "state" | "config";

/** Variables that name the folder, and where it is in the home folder if they do not. */
const WINDOWS = { cache: "LOCALAPPDATA", state: "LOCALAPPDATA", config: "APPDATA" } as const;
const XDG = {
  cache: "XDG_CACHE_HOME",
  state: "XDG_STATE_HOME",
  config: "XDG_CONFIG_HOME",
} as const;
const LINUX = { cache: ".cache", state: ".local/state", config: ".config" } as const;
const DARWIN = { ...LINUX, cache: "Library/Caches", state: "Library/Application Support" } as const;

/** Where each system keeps a user's files of this kind; undefined where no home folder is known. */
export function userFolder(kind: Kind, env: Env, os: typeof Deno.build.os): string | undefined {
  if (os === "windows") return env(WINDOWS[kind]) || undefined;
  const home = env("HOME");
  const inHome = os === "darwin" ? DARWIN[kind] : LINUX[kind];
  return env(XDG[kind]) || (home ? `${home}/${inHome}` : undefined);
}
