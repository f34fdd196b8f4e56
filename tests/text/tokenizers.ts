import { loadTokenizer, type Tokenizer } from "../../src/text/tokenizer.ts";

/** One golden case of the embedded model (tests/golden/fledgling.json). */
export interface GoldenCase {
  readonly prompt: string;
  readonly prompt_ids: readonly number[];
  readonly greedy_ids: readonly number[];
  readonly text: string;
}

const MODEL = new URL("../../models/fledgling/target/", import.meta.url);

export function fledglingText(file: string): string {
  return Deno.readTextFileSync(new URL(file, MODEL));
}

export function fledglingTokenizer(): Tokenizer {
  const json = (file: string): unknown => JSON.parse(fledglingText(file));
  return loadTokenizer("fledgling", json("tokenizer.json"), json("tokenizer_config.json"));
}

export function goldenCases(): readonly GoldenCase[] {
  const file = new URL("../golden/fledgling.json", import.meta.url);
  const golden: { cases: GoldenCase[] } = JSON.parse(Deno.readTextFileSync(file));
  return golden.cases;
}

/** The decoders that SentencePiece models have in tokenizer.json. */
export const DECODERS = {
  metaspace: { type: "Metaspace", replacement: "▁", prepend_scheme: "always", split: true },
  llama2: {
    type: "Sequence",
    decoders: [
      { type: "Replace", pattern: { String: "▁" }, content: " " },
      { type: "ByteFallback" },
      { type: "Fuse" },
      { type: "Strip", content: " ", start: 1, stop: 0 },
    ],
  },
} as const;

/**
 * A SentencePiece-like tokenizer with `<s>` `</s>` `<unk>`, the 256 byte tokens, and a few pieces, some of
 * which are only spaces. Its decoder strips one space at the start of the text.
 */
export function spacedTokenizer(decoder: keyof typeof DECODERS): Tokenizer {
  const special = ["<s>", "</s>", "<unk>"];
  const bytes = Array.from(
    { length: 256 },
    (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`,
  );
  const tokens = [...special, ...bytes, "▁", "▁▁", "▁a", "b", "é", "▁😀", "\uFFFD"];
  return loadTokenizer(
    "spaced",
    {
      added_tokens: special.map((content, id) => ({ id, content, special: true })),
      normalizer: null,
      pre_tokenizer: null,
      post_processor: null,
      decoder: DECODERS[decoder],
      model: {
        type: "BPE",
        vocab: Object.fromEntries(tokens.map((token, id) => [token, id])),
        merges: [],
        unk_token: "<unk>",
        byte_fallback: true,
      },
    },
    { bos_token: { content: "<s>" }, eos_token: "</s>" },
  );
}
