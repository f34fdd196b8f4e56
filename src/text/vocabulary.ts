/** Checks whether two models give the token ids the same meaning. */
import { isObject } from "../objects.ts";

/** A model's vocabulary as its files have it. */
export interface Vocabulary {
  /** Token ids of the model; it may be padded beyond its tokens. */
  readonly vocabSize: number;
  /** Parsed tokenizer.json; undefined where there is none. */
  readonly tokenizerJson: unknown;
}

/** Differences that are shown. */
const SHOWN = 3;

/**
 * Why a draft cannot read the target's tokens: a different tokenizer, or the first tokens that differ, special
 * tokens included. Undefined if all are the same; padding is not compared.
 */
export function vocabularyMisfit(target: Vocabulary, draft: Vocabulary): string | undefined {
  const [of, by] = [tokensOf(target), tokensOf(draft)];
  const lacking = of === undefined ? "target" : by === undefined ? "draft" : undefined;
  if (!of || !by) return `the ${lacking} has no tokenizer.json that lists its tokens`;
  const ids = [...new Set([...of.keys(), ...by.keys()])].toSorted((a, b) => a - b);
  const different = ids.filter((id) => of.get(id) !== by.get(id));
  if (different.length === 0) return undefined;
  const text = (token: string | undefined) => token === undefined ? "none" : JSON.stringify(token);
  const first = different.slice(0, SHOWN)
    .map((id) => `${id} is ${text(by.get(id))}, the target's ${text(of.get(id))}`);
  const all = different.length > SHOWN ? ` (${different.length} differ)` : "";
  return `its tokens are others: ${first.join("; ")}${all}`;
}

/** Text by id of the tokens that the model has; undefined where tokenizer.json lists none. */
function tokensOf({ vocabSize, tokenizerJson }: Vocabulary): Map<number, string> | undefined {
  if (!isObject(tokenizerJson) || !isObject(tokenizerJson.model)) return undefined;
  const { added_tokens: added, model: { vocab } } = tokenizerJson;
  const listed: readonly (readonly [unknown, unknown])[] = Array.isArray(vocab)
    ? vocab.map((entry, id) => [Array.isArray(entry) ? entry[0] : entry, id] as const) // Unigram
    : isObject(vocab)
    ? Object.entries(vocab)
    : [];
  const more = (Array.isArray(added) ? added : []).filter(isObject)
    .map(({ content, id }) => [content, id] as const);
  const tokens = new Map<number, string>();
  for (const [text, id] of [...listed, ...more]) {
    if (typeof text === "string" && Number(id) < vocabSize) tokens.set(Number(id), text);
  }
  return tokens.size > 0 ? tokens : undefined;
}
