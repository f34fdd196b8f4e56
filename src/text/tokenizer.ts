import { Tokenizer as HfTokenizer } from "@huggingface/tokenizers";
import { reason, UsageError } from "../errors.ts";
import { CHANNEL_TOKENS } from "./channels.ts";
import { isObject } from "../objects.ts";
import { REASONING_MARKS } from "./reasoning.ts";
import { TOOL_MARKS } from "./tool_marks.ts";

/** Text to token ids and back, as tokenizer.json says. Ids index the target's vocabulary. */
export interface Tokenizer {
  /** Largest id plus one; a model's vocabulary may be padded beyond it. */
  readonly vocabSize: number;
  /** Text of the token, as tokenizer_config.json names it; undefined where it names none. */
  readonly bosToken: string | undefined;
  readonly eosToken: string | undefined;
  /**
   * Ids of `text`. Added tokens spelt out in the text (`<|im_start|>`) become their ids.
   * `addSpecialTokens` (default true) runs the post-processor (Llama 3: a BOS in front); pass false
   * for a rendered chat, whose template has already written them.
   */
  encode(text: string, options?: { readonly addSpecialTokens?: boolean }): number[];
  /**
   * Text of `ids`; half a character at either end is U+FFFD. Ids outside of the vocabulary (the
   * padding of an embedding table) are no text. `skipSpecialTokens` defaults to false.
   */
  decode(ids: readonly number[], options?: { readonly skipSpecialTokens?: boolean }): string;
  /** Id of the token with exactly this spelling in the vocabulary, if any. */
  idOf(token: string): number | undefined;
  /** Whether `decode` with skipSpecialTokens leaves this id out. */
  isSkipped(id: number): boolean;
}

/**
 * Builds the tokenizer of a checkpoint.
 * @param name The folder, for messages.
 * @param tokenizerJson Parsed tokenizer.json; undefined when the file is absent.
 * @param tokenizerConfig Parsed tokenizer_config.json; undefined when the file is absent.
 * @param modelVocab Tokens that the model has; it may have more than the tokenizer.
 * @throws UsageError when tokenizer.json is absent, is of a kind that is not known or has a token that
 * the model has not.
 */
export function loadTokenizer(
  name: string,
  tokenizerJson: unknown,
  tokenizerConfig: unknown,
  modelVocab: number = Infinity,
): Tokenizer {
  if (tokenizerJson === undefined) throw noTokenizer(name);
  const config = tokenizerConfig ?? {};
  if (!isObject(tokenizerJson) || !isObject(config)) {
    const file = isObject(config) ? "tokenizer.json" : "tokenizer_config.json";
    throw new UsageError(`Cannot load the tokenizer of "${name}": ${file} is not a JSON object`);
  }
  const usable = <T>(run: () => T): T => {
    try {
      return run();
    } catch (error) {
      const why = reason(error).slice(0, LONGEST_REASON);
      throw new UsageError(
        `Cannot load the tokenizer of "${name}": tokenizer.json is not usable (${why})`,
        { cause: error },
      );
    }
  };
  const inner = usable(() => {
    checkTokens(tokenizerJson);
    return new HfTokenizer(tokenizerJson, config);
  });
  const tokenizer = wrap(inner, config, usable);
  const largest = tokenizer.vocabSize - 1;
  if (largest < modelVocab) return tokenizer;
  throw new UsageError(
    `Cannot load the tokenizer of "${name}": token ${shown(inner.id_to_token(largest))} ` +
      `has id ${largest}, the model's vocab_size is ${modelVocab}`,
  );
}

/** An added token of tokenizer.json. */
export interface AddedToken {
  readonly id: number;
  readonly content: string;
}

/**
 * tokenizer.json without the added tokens that the model has no embedding for, so that no text becomes
 * one: Llama-2's `<pad>` (id 32000 of 32000), Gemma 3 1B's `<image_soft_token>`.
 */
export function withinVocabulary(
  tokenizerJson: unknown,
  modelVocab: number,
): { readonly json: unknown; readonly dropped: readonly AddedToken[] } {
  const added = isObject(tokenizerJson) ? tokenizerJson.added_tokens : undefined;
  if (!isObject(tokenizerJson) || !Array.isArray(added)) {
    return { json: tokenizerJson, dropped: [] };
  }
  const beyond = (token: unknown): token is AddedToken =>
    isObject(token) && Number.isSafeInteger(token.id) && Number(token.id) >= modelVocab &&
    typeof token.content === "string";
  const dropped = added.filter(beyond);
  if (dropped.length === 0) return { json: tokenizerJson, dropped };
  const added_tokens = added.filter((token) => !beyond(token));
  return { json: { ...tokenizerJson, added_tokens }, dropped };
}

/** The most characters of the package's message that are shown; it may quote its input. */
const LONGEST_REASON = 200;

/** Far above any vocabulary: an id past it is a mistake. */
const MAX_IDS = 2 ** 24;

/**
 * Checks tokens and ids, which the package does not. An invalid id would turn up in the middle of a prompt;
 * a huge id or an empty token would keep the package busy for ever.
 */
function checkTokens({ added_tokens: added, model }: Record<string, unknown>): void {
  const vocab = isObject(model) && isObject(model.vocab) ? Object.entries(model.vocab) : [];
  const more: unknown[] = Array.isArray(added) ? added : [];
  const listed = more.map((each) => isObject(each) ? [each.content, each.id] : [undefined, each]);
  if (listed.some(([token]) => token === "")) throw new Error("an added token is empty");
  for (const [token, id] of [...vocab, ...listed]) {
    const isId = Number.isSafeInteger(id) && Number(id) >= 0 && Number(id) < MAX_IDS;
    if (isId && typeof token === "string") continue;
    throw new Error(`token ${shown(token)} has id ${shown(id)}`);
  }
}

function shown(value: unknown): string {
  return (JSON.stringify(value) ?? String(value)).slice(0, 50);
}

/** @param usable turns errors of the package, also later ones, into a one-line error about tokenizer.json. */
function wrap(
  inner: HfTokenizer,
  config: Record<string, unknown>,
  usable: <T>(run: () => T) => T,
): Tokenizer {
  // Marks stay in the decoded text, because reasoning is separated by them, though some are special tokens.
  const marks = [
    ...REASONING_MARKS.flatMap(({ open, close, tokens = [open, close] }) => tokens),
    ...TOOL_MARKS,
    ...CHANNEL_TOKENS,
  ];
  const skipped = new Set(
    [...inner.get_added_tokens_decoder()]
      .filter(([, { special, content }]) => special && !marks.includes(content))
      .map(([id]) => id),
  );
  const known = (id: number) => inner.id_to_token(id) !== undefined;
  return {
    vocabSize: inner.get_vocab().values().reduce((most, id) => Math.max(most, id + 1), 0),
    bosToken: specialToken(config.bos_token),
    eosToken: specialToken(config.eos_token),
    encode: (text, { addSpecialTokens = true } = {}) =>
      usable(() => {
        const { ids } = inner.encode(text, { add_special_tokens: addSpecialTokens });
        if (ids.every((id) => Number.isSafeInteger(id))) return ids;
        throw new Error("it has no token for a part of the text, and none for what is unknown");
      }),
    decode: (ids, { skipSpecialTokens = false } = {}) => {
      const kept = ids.filter((id) => known(id) && !(skipSpecialTokens && skipped.has(id)));
      // The package refuses an empty list. Spaces before punctuation are left as the tokens have
      // them: the clean-up that some configs ask for looks ahead, so a stream could not apply it.
      const options = { clean_up_tokenization_spaces: false };
      return kept.length === 0 ? "" : usable(() => inner.decode(kept, options));
    },
    idOf: (token) => inner.token_to_id(token),
    isSkipped: (id) => skipped.has(id) || !known(id),
  };
}

/** What is wrong with a checkpoint that has no tokenizer.json. */
export function noTokenizer(name: string): UsageError {
  return new UsageError(
    `Cannot load the tokenizer of "${name}": no tokenizer.json; where there is a tokenizer.model ` +
      "or tekken.json, transformers makes one of it: " +
      "AutoTokenizer.from_pretrained(DIR).save_pretrained(DIR)",
  );
}

/** Both spellings of a token in tokenizer_config.json: a string, or an AddedToken as an object. */
function specialToken(entry: unknown): string | undefined {
  const text = isObject(entry) ? entry.content : entry;
  return typeof text === "string" ? text : undefined;
}
