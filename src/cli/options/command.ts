import type { FlagTable } from "./flag.ts";

/** One of two words is typed as two: `eyrie bench load`. */
export type CommandName =
  | "generate"
  | "chat"
  | "serve"
  | "serve-command"
  | "bench"
  | "bench load"
  | "breakeven"
  | "simulate"
  | "profile"
  | "check"
  | "inspect"
  | "convert"
  | "token-map"
  | "pull"
  | "models"
  | "rm"
  | "doctor"
  | "completion";

/** A positional argument. */
export interface Operand {
  readonly name: string;
  readonly help: string;
  readonly required?: true;
  /** What may stand there, where that is a list or a folder. */
  readonly choices?: readonly string[];
  readonly folder?: true;
  /** May be given again; only the last one. */
  readonly many?: true;
}

/** One command: its line in the overview and its flags in groups, in the order help shows them. */
export interface CommandSpec {
  readonly summary: string;
  /** A second name. */
  readonly alias?: string;
  readonly usage: string;
  /** Positional arguments in order: name and help. */
  readonly operands?: readonly Operand[];
  readonly groups: Readonly<Record<string, FlagTable>>;
}
