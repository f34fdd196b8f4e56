/** What goes between a text thread and the thread of its client. */
import type { PromptInput, TokenPiece } from "../load/text.ts";
import type { ModelOptions } from "../options.ts";
import type { SentError } from "./messages.ts";

export type TextQuestion =
  | { readonly kind: "encode"; readonly input: PromptInput }
  | { readonly kind: "decode" | "pieces"; readonly ids: readonly number[] };

/** Ids, a text, or pieces, by the question. */
export type TextAnswer = readonly number[] | string | readonly TokenPiece[];

export type ToText =
  | { readonly kind: "open text"; readonly model: ModelOptions }
  | { readonly kind: "ask"; readonly question: TextQuestion };

/** Every question is answered before the next is sent. */
export type FromText =
  /** Messages are received from now on. */
  | { readonly kind: "ready" }
  /** Answer to "open text": questions are answered from now on, if only with why there is no text. */
  | { readonly kind: "opened" }
  | { readonly kind: "answer"; readonly value: TextAnswer }
  | { readonly kind: "error"; readonly error: SentError };
