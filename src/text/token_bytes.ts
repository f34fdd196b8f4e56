import { UsageError } from "../errors.ts";
import type { Tokenizer } from "./tokenizer.ts";

/** What each token adds to a text. */
export interface TokenBytes {
  /** Bytes by token id, [vocabSize]; empty if a token is not text: special tokens, padding of an embedding. */
  readonly bytes: readonly Uint8Array[];
  /** The decoder leaves out a space that a text begins with (SentencePiece's "▁"). */
  readonly stripsSpace: boolean;
}

/**
 * The UTF-8 bytes of every token. Joined over a list of ids, they equal the result of `decode` with
 * skipSpecialTokens, except for the first space.
 *
 * @param of.name of the checkpoint, for messages.
 * @throws UsageError where tokenizer.json decodes in a way that is not one token after the other.
 */
export function tokenBytes(
  tokenizerJson: unknown,
  { name, vocabSize, tokenizer: { isSkipped } }: {
    readonly name: string;
    /** Vocabulary size of the target. */
    readonly vocabSize: number;
    readonly tokenizer: Pick<Tokenizer, "isSkipped">;
  },
): TokenBytes {
  const { model, added_tokens: added = [], decoder } = tokenizerJson as TokenizerJson;
  const steps = decoder?.type === "Sequence" ? decoder.decoders ?? [] : decoder ? [decoder] : [];
  const unknown = steps.find((step) => !KNOWN.includes(step.type));
  if (unknown || steps.length === 0) {
    throw new UsageError(
      `Cannot constrain the output of "${name}": its tokenizer decodes with ` +
        `${unknown ? `"${unknown.type}"` : "no decoder"}, supported are ${KNOWN.join(", ")}`,
    );
  }
  const bytes: Uint8Array[] = Array(vocabSize).fill(new Uint8Array());
  const set = (id: number, text: string, bytesOf: (text: string) => Uint8Array) => {
    if (id < vocabSize && !isSkipped(id)) bytes[id] = bytesOf(text);
  };
  const plain = (text: string) => UTF8.encode(replaced(steps, text));
  const own = steps.some(({ type }) => type === "ByteLevel")
    ? byteLevel
    : steps.some(({ type }) => type === "ByteFallback")
    ? (text: string) => byteFallback(text) ?? plain(text)
    : plain;
  for (const [text, id] of vocabularyOf(model)) set(id, text, own);
  for (const { id, content } of added) set(id, content, plain);
  return { bytes, stripsSpace: steps.some(strips) };
}

/** The parts of tokenizer.json that say how tokens become text. */
interface TokenizerJson {
  readonly model?: { readonly vocab?: Readonly<Record<string, number>> | readonly [string][] };
  readonly added_tokens?: readonly { readonly id: number; readonly content: string }[];
  readonly decoder?: Decoder & { readonly decoders?: readonly Decoder[] };
}

interface Decoder {
  readonly type: string;
  /** Replace. */
  readonly pattern?: { readonly String?: string };
  readonly content?: string;
  /** Strip: characters at the beginning. */
  readonly start?: number;
  /** Metaspace. */
  readonly replacement?: string;
  readonly prepend_scheme?: string;
  readonly add_prefix_space?: boolean;
}

const KNOWN = ["ByteLevel", "Replace", "ByteFallback", "Fuse", "Strip", "Metaspace"];
const UTF8 = new TextEncoder();

function vocabularyOf(model: TokenizerJson["model"]): (readonly [text: string, id: number])[] {
  const vocab = model?.vocab ?? {};
  return Array.isArray(vocab) ? vocab.map(([text], id) => [text, id]) : Object.entries(vocab);
}

function replaced(steps: readonly Decoder[], text: string): string {
  return steps.reduce((made, { type, pattern, content = "", replacement = "▁" }) => {
    if (type === "Metaspace") return made.replaceAll(replacement, " ");
    if (type !== "Replace" || pattern?.String === undefined) return made;
    return made.replaceAll(pattern.String, content);
  }, text);
}

function strips({ type, start = 0, add_prefix_space, prepend_scheme }: Decoder): boolean {
  if (type === "Strip") return start > 0;
  return type === "Metaspace" && (add_prefix_space ?? prepend_scheme !== "never");
}

/** SentencePiece's tokens of one byte, `<0x0A>`. */
function byteFallback(text: string): Uint8Array | undefined {
  const [, digits] = /^<0x([0-9A-Fa-f]{2})>$/.exec(text) ?? [];
  return digits === undefined ? undefined : Uint8Array.of(parseInt(digits, 16));
}

/** GPT-2's characters for bytes: printable Latin-1 stands for itself, the others follow U+0100. */
const BYTE_OF: ReadonlyMap<string, number> = new Map(byteCharacters());

function byteLevel(text: string): Uint8Array {
  const bytes = [...text].map((character) => BYTE_OF.get(character));
  return bytes.includes(undefined) ? UTF8.encode(text) : Uint8Array.from(bytes as number[]);
}

function* byteCharacters(): Generator<[string, number]> {
  let others = 0;
  for (let byte = 0; byte < 256; byte++) {
    const printable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte !== 0xad);
    yield [String.fromCodePoint(printable ? byte : 0x100 + others++), byte];
  }
}
