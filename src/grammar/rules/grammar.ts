/** What an output has to be. Plain data. */
export type Grammar =
  /** JSON that is valid for the schema, itself JSON. */
  | { readonly kind: "json schema"; readonly schema: unknown }
  /** Any JSON object. */
  | { readonly kind: "json object" }
  /** A text of the rule "root" of this grammar in EBNF. */
  | { readonly kind: "ebnf"; readonly text: string }
  /** A text that the whole regular expression matches. */
  | { readonly kind: "regex"; readonly pattern: string }
  /** One of these forms: a call of a function. */
  | { readonly kind: "forms"; readonly forms: readonly CallForm[] };

/** A JSON object that is valid for the schema, between two texts. */
export interface CallForm {
  readonly before: string;
  readonly schema: unknown;
  readonly after: string;
}

/** Why a grammar cannot be used, for people. */
export class GrammarError extends Error {
  override readonly name: string = "GrammarError";
}
