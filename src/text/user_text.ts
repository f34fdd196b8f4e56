import { CHANNEL_TOKENS } from "./channels.ts";
import { isObject } from "../objects.ts";
import { loadTokenizer, type Tokenizer } from "./tokenizer.ts";

/**
 * Encodes control tokens that a person spells out (`<|im_end|>`) as text; only those that the chat template
 * writes become control tokens.
 */
export interface UserText {
  /**
   * The value with a mark inserted into every control token that its texts spell out. Undefined if there is none;
   * the conversation is then encoded as usual.
   */
  marked<T>(value: T): T | undefined;
  /** Ids of a rendered conversation whose messages are `marked`. */
  encode(rendered: string): number[];
}

/** The mark in control tokens that a person wrote. A noncharacter (Unicode 23.7), which no readable text contains. */
const WRITTEN = "\ufdd0";
/** The mark in the control tokens of the second tokenizer, which encodes the template's. Also a noncharacter. */
const CONTROL = "\ufdd1";

/** Tokens that begin and end turns although their tokenizer does not call them special (Laguna). */
const TURN_TOKENS = ["system", "user", "assistant"].flatMap((role) => [`<${role}>`, `</${role}>`]);

/**
 * Uses a second tokenizer whose control tokens contain the mark CONTROL. Before encoding, control tokens from the
 * template get that mark, and those that people wrote lose their mark WRITTEN. So the text is encoded in one piece,
 * and tokens that people spelled out match no control token.
 *
 * @param of.tokenizer made from the same files. Tokens that it skips are control tokens, and so are the headers of
 * channels and those of turns. Reasoning and tool marks are not, because templates look for them.
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
    (tokenizer.isSkipped(Number(id)) || CHANNEL_TOKENS.includes(content) ||
      TURN_TOKENS.includes(content));
  // Longest first, so that the longest token that begins at a place matches.
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
        // Marks that are in the text already are removed; with them a person could spell a control token.
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
