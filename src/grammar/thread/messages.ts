/** What goes between the engine's thread and a thread of grammars. */
import type { Grammar } from "../rules/grammar.ts";

/** The name of a worker that compiles and matches grammars. */
export const GRAMMAR_THREAD = "grammars";

/** The vocabulary of a target, in memory that all threads share. */
export interface SharedVocabulary {
  /** Bytes of all tokens, one after the other. */
  readonly bytes: SharedArrayBuffer;
  /** u32 [vocabSize]: how many of them each token has. */
  readonly lengths: SharedArrayBuffer;
  readonly stripsSpace: boolean;
  readonly vocabSize: number;
  readonly eosTokenIds: readonly number[];
}

export type ToGrammars =
  | {
    readonly kind: "vocabulary";
    readonly vocabulary: SharedVocabulary;
    readonly mailbox: SharedArrayBuffer;
  }
  /** Opens a constraint; while any is open, the thread answers calls of the mailbox. */
  | { readonly kind: "open"; readonly grammar: Grammar; readonly ignoreEos: boolean };

export type FromGrammars =
  /** Messages are received from now on. */
  | { readonly kind: "started" }
  /** Answer to "vocabulary". */
  | { readonly kind: "ready" }
  /** A call of the mailbox is answered that was not answered soon. */
  | { readonly kind: "called" }
  /** Answer to "open". */
  | { readonly kind: "opened"; readonly handle: number; readonly complete: boolean }
  | { readonly kind: "refused"; readonly message: string };
