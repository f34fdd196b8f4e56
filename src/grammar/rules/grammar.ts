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

/** Arguments that are valid for the schema, between two texts: a JSON object, or as `syntax` has them. */
export interface CallForm {
  readonly before: string;
  readonly schema: unknown;
  readonly after: string;
  readonly syntax?: ArgumentSyntax;
}

/** How arguments are written one by one, in the order of the schema's properties. */
export interface ArgumentSyntax {
  /** Between two arguments. */
  readonly between: string;
  /** Around a key. */
  readonly key: Around;
  /** Around a value that is a text: it is written as it is, without quotes and escapes. */
  readonly text: Around;
  /** Around any other value, which is written as JSON. */
  readonly value: Around;
  /** What false and true are as values of arguments, where not as in JSON. */
  readonly booleans?: readonly [no: string, yes: string];
  /** Marks that end a text and that no text contains: each begins with "<" and has no other "<". */
  readonly ends: readonly string[];
  /** Names of the arguments that are texts, or null. */
  readonly texts: readonly string[];
}

type Around = readonly [before: string, after: string];

/** Why a grammar cannot be used, for people. */
export class GrammarError extends Error {
  override readonly name: string = "GrammarError";
}

/** Thrown inside of xgrammar to end what it does. */
export class GrammarInterrupted extends GrammarError {
  override readonly name: string = "GrammarInterrupted";
}
