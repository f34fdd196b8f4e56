/** What a shell can offer for a value: words, paths, or nothing as it cannot be guessed. */
export type Values = readonly string[] | "folders" | "files" | "unknown";

/** A flag, or what all shells need of one. */
export interface CompletedFlag {
  /** `-m`, `--model`. */
  readonly spellings: readonly string[];
  readonly help: string;
  /** The placeholder of its value; empty for a switch. */
  readonly value: string;
  readonly values: Values;
  readonly repeated: boolean;
  /** Whether it takes several of the values, with commas between them. */
  readonly list: boolean;
}

/** What `eyrie help` takes in addition to commands, with a line about each. */
export type CompletedTopics = Readonly<Record<string, string>>;

/** A command by all its names, with what may follow it. */
export interface CompletedCommand {
  readonly names: readonly string[];
  readonly help: string;
  readonly flags: readonly CompletedFlag[];
  /** The words that make other commands of it: `load` of `bench`. */
  readonly longer: readonly string[];
  /** Operands by position; one that may be repeated is used for all that follow. */
  readonly operands: readonly { readonly name: string; readonly values: Values }[];
}
