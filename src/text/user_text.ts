import { CHANNEL_TOKENS } from "./channels.ts";
import { isObject, loadTokenizer, type Tokenizer } from "./tokenizer.ts";

/**
 * Keeps control tokens that a person writes (`<|im_end|>`) text: only those that the chat template writes
 * are tokens.
 */
export interface UserText {
  /**
   * The value with a mark in every control token that its texts spell; undefined where none does, and the
   * conversation is to be encoded as ever.
   */
  marked<T>(value: T): T | undefined;
  /** Ids of a rendered conversation whose messages are `marked`. */
  encode(rendered: string): number[];
}

/** Noncharacters (Unicode 23.7): no text that is meant to be read has them. In what a person wrote, */
const WRITTEN = "\ufdd0";
/** and in the control tokens of the tokenizer that reads the template's. */
const CONTROL = "\ufdd1";

/**
 * A second tokenizer has a mark in each of its control tokens. The template's get that mark, what people
 * wrote loses its own: so the text is encoded in one piece, as any other, and spelt tokens are found by
 * none.
 *
 * @param of.tokenizer of the same files: what it skips is a control token, and so are the headers of
 * channels. Reasoning and tool marks are not, which templates look for.
 */
export function openUserText(
  { name, tokenizerJson, tokenizerConfig, vocabSize, tokenizer }: {
    readonly name: string;
    readonly tokenizerJson: unknown;
    readonly tokenizerConfig: unknown;
    readonly vocabSize: number;
    readonly tokenizer: Pick<Tokenizer, "isSkipped">;
  },
): UserText {
  const added = isObject(tokenizerJson) && Array.isArray(tokenizerJson.added_tokens)
    ? tokenizerJson.added_tokens.filter(isObject)
    : [];
  const isControl = ({ id, content }: Record<string, unknown>) =>
    typeof content === "string" && content !== "" &&
    (tokenizer.isSkipped(Number(id)) || CHANNEL_TOKENS.includes(content));
  // The longest that begins at a place counts.
  const spellings = added.filter(isControl).map(({ content }) => String(content))
    .toSorted((a, b) => b.length - a.length);
  const pattern = new RegExp(spellings.map(RegExp.escape).join("|") || "(?!)", "g");
  const withMark = (mark: string) => (spelling: string) => {
    const [first = ""] = spelling;
    return first + mark + spelling.slice(first.length);
  };
  let reader: Tokenizer | undefined;

  function openReader(): Tokenizer {
    const added_tokens = added.map((token) =>
      isControl(token) ? { ...token, content: withMark(CONTROL)(String(token.content)) } : token
    );
    const json = { ...tokenizerJson as object, added_tokens };
    return loadTokenizer(name, json, tokenizerConfig, vocabSize);
  }

  const marks = new RegExp(`[${WRITTEN}${CONTROL}]`, "g");
  return {
    marked<T>(value: T): T | undefined {
      let found = false;
      const written = mapTexts(value, (text) => {
        // A text that has our marks loses them where it matters, else it could make a token of them.
        const plain = text.replace(marks, "");
        const changed = plain.replace(pattern, withMark(WRITTEN));
        found ||= changed !== plain;
        return changed;
      });
      return found ? written as T : undefined;
    },
    encode(rendered) {
      const text = rendered.replace(pattern, withMark(CONTROL)).replaceAll(WRITTEN, "");
      return (reader ??= openReader()).encode(text, { addSpecialTokens: false });
    },
  };
}

/** JSON with each of its texts, but not its keys, changed. */
function mapTexts(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === "string") return change(value);
  if (Array.isArray(value)) return value.map((each) => mapTexts(each, change));
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [key, mapTexts(each, change)]),
  );
}
