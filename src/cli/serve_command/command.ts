import type { LaunchRequest } from "./launch_request.ts";

/** A command for another engine. */
export interface EngineCommand {
  /** The program and its first words. */
  readonly program: readonly string[];
  /** Flags with their values. */
  readonly flags: readonly Flag[];
  /** The file that `--speculative-adaptive-config` is to name. */
  readonly config?: Readonly<Record<string, unknown>>;
  /** What has no equivalent there. */
  readonly notes: readonly string[];
}

export type Flag = readonly [name: string, value?: string | number];

/** A flag, where its value is there. */
export function flag(name: string, value: string | number | undefined): Flag[] {
  return value === undefined ? [] : [[name, value]];
}

/** A command in lines that a POSIX shell takes. */
export function shellText(program: readonly string[], flags: readonly Flag[]): string {
  const lines = flags.map((words) => words.map((word) => quoted(String(word))).join(" "));
  return [program.map(quoted).join(" "), ...lines].join(" \\\n  ");
}

/** A file that the shell writes. */
export function writingText(path: string, text: string): string {
  return `cat > ${quoted(path)} <<'END'\n${text}\nEND\n`;
}

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** Flags that change what is drafted here and that no other engine has. */
export function ownNotes({ options, drafting }: LaunchRequest): string[] {
  if (drafting === undefined) return [];
  return options.elasticDraft ? ["--elastic-draft has no equivalent there"] : [];
}
