import { UsageError } from "../../errors.ts";
import {
  type GenerationDefaults,
  generationDefaults,
} from "../../model/config/generation_config.ts";
import type { Checkpoint } from "../../model/files/checkpoint_type.ts";
import {
  type ChatMessage,
  chatTemplate,
  renderChat,
  type TemplateArguments,
} from "../../text/chat_template.ts";
import { channelFormat } from "../../text/channels.ts";
import { historyFor } from "../../text/history.ts";
import { type Reasoning, reasoningOf } from "../../text/reasoning.ts";
import { type TokenBytes, tokenBytes } from "../../text/token_bytes.ts";
import { loadTokenizer, type Tokenizer, withinVocabulary } from "../../text/tokenizer.ts";
import { openUserText } from "../../text/user_text.ts";

/** A text as it is, or a conversation for the chat template. Plain data. */
export type PromptInput = {
  readonly raw: string;
  /** Run the tokenizer's post-processor, which may put a BOS in front; default true. */
  readonly addSpecialTokens?: boolean | undefined;
} | {
  readonly messages: readonly ChatMessage[];
  readonly templateArguments?: TemplateArguments | undefined;
  /** JSON schemas of the functions that the model may call, as the template takes them. */
  readonly tools?: readonly unknown[] | undefined;
  /**
   * What the answer has to begin with: it is a part of the prompt. Reasoning that the template has
   * opened is closed before it; "" does that alone.
   */
  readonly begin?: string | undefined;
  /**
   * Control tokens that messages and tools spell (`<|im_end|>`) are tokens; default false: they are text,
   * and only those of the template are tokens. ModelOptions.allowSpecial is the default where given.
   */
  readonly allowSpecial?: boolean | undefined;
};

/** The text of a token alone; its bytes if they are not UTF-8, as those of a part of a character. */
export type TokenPiece = string | readonly number[];

/** What an engine knows of a checkpoint's text. */
export interface EngineText {
  readonly tokenizer: Tokenizer;
  /** Returns the bytes of every token, computed at each call. */
  readonly tokens: () => TokenBytes;
  readonly hasChatTemplate: boolean;
  /** The Jinja text; undefined for a base model. */
  readonly chatTemplate: string | undefined;
  readonly reasoning: Reasoning;
  /** How the checkpoint wants to be sampled; callers apply it. */
  readonly generation: GenerationDefaults;
  /** Token ids of a text as it is, or of a conversation through the chat template. */
  encodePrompt(input: PromptInput): number[];
  /** @throws UsageError for what is no token and for more than MAX_DECODED of them. */
  decode(ids: readonly number[]): string;
  /** @throws UsageError as `decode`. */
  pieces(ids: readonly number[]): readonly TokenPiece[];
}

/** Token ids that are decoded at once: as pieces they take about 2 s. */
const MAX_DECODED = 1_000_000;

/** @throws UsageError for what is no token and for more than MAX_DECODED of them. */
function checkIds(
  ids: readonly number[],
  { name, vocabSize }: { readonly name: string; readonly vocabSize: number },
): void {
  if (ids.length > MAX_DECODED) {
    throw new UsageError(`Cannot decode ${ids.length} token ids: the most is ${MAX_DECODED}`);
  }
  const unknown = ids.find((id) => !Number.isInteger(id) || id < 0 || id >= vocabSize);
  if (unknown !== undefined) {
    throw new UsageError(
      `Cannot decode token id ${unknown}: "${name}" has ids 0 to ${vocabSize - 1}`,
    );
  }
}

function pieceOf(id: number, tokenizer: Tokenizer, bytes: Uint8Array | undefined): TokenPiece {
  // Special tokens have no bytes.
  if (bytes === undefined || bytes.length === 0) return tokenizer.decode([id]);
  try {
    return UTF8.decode(bytes);
  } catch {
    return [...bytes];
  }
}

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Made-up weights come without a vocabulary: their tokens are no text. */
export function noText(name: string, vocabSize: number): EngineText {
  const tokenizer: Tokenizer = {
    vocabSize: 0,
    bosToken: undefined,
    eosToken: undefined,
    encode: () => {
      throw new UsageError(`Cannot encode a text for "${name}": random weights have no tokenizer`);
    },
    decode: () => "",
    idOf: () => undefined,
    isSkipped: () => true,
  };
  return {
    tokenizer,
    tokens: () => {
      throw new UsageError(`Cannot constrain the output of "${name}": it has no tokenizer`);
    },
    hasChatTemplate: false,
    chatTemplate: undefined,
    reasoning: reasoningOf(tokenizer, undefined),
    generation: {},
    encodePrompt: () => tokenizer.encode(""),
    decode(ids) {
      checkIds(ids, { name, vocabSize });
      return "";
    },
    pieces(ids) {
      checkIds(ids, { name, vocabSize });
      return ids.map(() => "");
    },
  };
}

/** @param of.vocabSize of the model. */
export function openText(
  checkpoint: Pick<Checkpoint, "name" | "json" | "text">,
  { vocabSize, onWarning = () => {}, allowSpecial = false }: {
    readonly vocabSize: number;
    /** Default for prompts that do not say. */
    readonly allowSpecial?: boolean | undefined;
    readonly onWarning: ((line: string) => void) | undefined;
  },
): EngineText {
  const tokenizerConfig = checkpoint.json("tokenizer_config.json");
  const { json: tokenizerJson, dropped } = withinVocabulary(
    checkpoint.json("tokenizer.json"),
    vocabSize,
  );
  for (const { id, content } of dropped) {
    onWarning(
      `the tokenizer of "${checkpoint.name}" has token "${content}" with id ${id}, which the model ` +
        `has not (vocab_size ${vocabSize}); it is read as plain text`,
    );
  }
  const jinja = checkpoint.text("chat_template.jinja");
  const tokenizer = loadTokenizer(checkpoint.name, tokenizerJson, tokenizerConfig, vocabSize);
  const template = chatTemplate(jinja, tokenizerConfig, checkpoint.json("chat_template.json"));
  const reasoning = reasoningOf(tokenizer, template);
  const { name } = checkpoint;
  let known: TokenBytes | undefined;
  const tokens = () => known ??= tokenBytes(tokenizerJson, { name, vocabSize, tokenizer });

  /** None where the tokenizer's decoder does not tell the bytes of its tokens. */
  function bytesOf(): TokenBytes["bytes"] {
    try {
      return tokens().bytes;
    } catch (error) {
      if (error instanceof UsageError) return [];
      throw error;
    }
  }

  const userText = openUserText({ name, tokenizerJson, tokenizerConfig, vocabSize, tokenizer });
  return {
    tokenizer,
    tokens,
    hasChatTemplate: template !== undefined,
    chatTemplate: template,
    reasoning,
    generation: generationDefaults(checkpoint.json("generation_config.json"), onWarning),
    decode(ids) {
      checkIds(ids, { name, vocabSize });
      return tokenizer.decode(ids);
    },
    pieces(ids) {
      checkIds(ids, { name, vocabSize });
      const bytes = bytesOf();
      return ids.map((id) => pieceOf(id, tokenizer, bytes[id]));
    },
    encodePrompt(input: PromptInput): number[] {
      if ("raw" in input) {
        return tokenizer.encode(input.raw, { addSpecialTokens: input.addSpecialTokens ?? true });
      }
      if (template === undefined) {
        throw new UsageError(`Cannot chat with "${checkpoint.name}": no chat template, use --raw`);
      }
      const { bosToken, eosToken } = tokenizer;
      const { tools } = input;
      const messages = historyFor(template, input.messages);
      const marked = input.allowSpecial ?? allowSpecial
        ? undefined
        : userText.marked({ messages, tools });
      const given = marked ?? { messages, tools };
      const rendered = renderChat(template, given.messages, {
        addGenerationPrompt: true,
        bosToken,
        eosToken,
        templateArguments: input.templateArguments,
        ...given.tools && { tools: given.tools },
      });
      const whole = input.begin === undefined ? rendered : begun(rendered, input.begin, reasoning);
      return marked ? userText.encode(whole) : tokenizer.encode(whole, { addSpecialTokens: false });
    },
  };
}

/** A prompt whose answer begins with `begin`, without reasoning before it. */
function begun(prompt: string, begin: string, { marks, channels }: Reasoning): string {
  if (channels !== undefined) {
    const { answer, headers } = channelFormat(channels.name);
    // A call has a header of its own.
    const own = headers.some((header) => begin.startsWith(header));
    return own ? prompt + begin : prompt + answer + begin;
  }
  const opened = marks !== undefined && prompt.trimEnd().endsWith(marks.open);
  return opened ? `${prompt.trimEnd()}\n\n${marks.close}\n\n${begin}` : prompt + begin;
}
