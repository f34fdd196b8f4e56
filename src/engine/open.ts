import { UsageError } from "../errors.ts";
import { type AdapterChoice, type DeviceInfo, openGpu } from "../gpu/device.ts";
import type { Checkpoint } from "../model/checkpoint.ts";
import { MAX_STEPS, PAGE } from "../model/rows_layout.ts";
import { type ChatMessage, chatTemplate, renderChat } from "../text/chat_template.ts";
import { loadTokenizer, type Tokenizer } from "../text/tokenizer.ts";
import type { Capacity } from "./buffers.ts";
import { type Core, openCore, type Slot } from "./core.ts";
import type { EngineEvent, GenerateRequest } from "./events.ts";
import { generate, type Generation } from "./generate.ts";
import { type LoadProgress, loadWeights, type ModelChoice, openModels } from "./load.ts";

/** Tokens of context kept when neither the model nor the user asks for fewer. */
const DEFAULT_CONTEXT = 8192;
const PREFILL_ROWS = 256;

export interface OpenOptions extends ModelChoice {
  /** Deepest tier that will be asked for. */
  readonly numSteps: number;
  /** Tokens a sequence may hold; default: the model's most, at most 8192. */
  readonly contextLength?: number;
  readonly adapter?: AdapterChoice;
  readonly onProgress?: (progress: LoadProgress) => void;
  readonly onWarning?: (line: string) => void;
}

/** A target, its draft and a device, ready for requests. */
export interface Engine extends Disposable {
  /** The target's checkpoint. */
  readonly name: string;
  readonly draftName: string | undefined;
  readonly algorithm: Generation["algorithm"];
  /** Tokens a sequence may hold, prompt and output. */
  readonly contextLength: number;
  readonly loadMs: number;
  readonly device: DeviceInfo;
  readonly hasChatTemplate: boolean;
  readonly tokenizer: Tokenizer;
  readonly core: Core;
  /** Token ids of a text as it is, or of a conversation through the chat template. */
  encodePrompt(
    input: { readonly raw: string } | { readonly messages: readonly ChatMessage[] },
  ): number[];
  /** A place for one conversation. */
  newSlot(): Slot;
  /** Runs one request; what the slot holds of its prompt is not computed again. */
  generate(slot: Slot, request: GenerateRequest): AsyncGenerator<EngineEvent>;
}

/**
 * Opens device and models, loads the weights and makes the programs of the deepest tier.
 *
 * @throws UsageError when there is no adapter or a checkpoint cannot be used.
 */
export async function openEngine(options: OpenOptions): Promise<Engine> {
  const started = performance.now();
  using stack = new DisposableStack();
  using models = openModels(options);
  for (const line of models.warnings) options.onWarning?.(line);
  const { checkpoint, config } = models.target;
  const contextLength = contextOf(options.contextLength, config.maxPositions);
  const text = openText(checkpoint);
  const gpu = stack.use(await openGpu(options.adapter));
  const weights = loadWeights(gpu, models, options.onProgress);
  const core = await openCore(gpu, weights, capacity(contextLength));
  await core.prepare({ batch: 1, numSteps: weights.draft ? options.numSteps : 0 });
  const algorithm: Generation["algorithm"] = weights.draft?.config.algorithm ?? "NONE";
  const { name } = checkpoint;
  const { eosTokenIds } = config;
  const generation = { core, tokenizer: text.tokenizer, name, eosTokenIds, algorithm };
  const owned = stack.move();
  return {
    name,
    draftName: models.draft?.checkpoint.name,
    algorithm,
    contextLength,
    loadMs: performance.now() - started,
    device: gpu.info,
    core,
    ...text,
    newSlot: () => core.openSlot(),
    generate: (slot, request) => generate(generation, slot, request),
    [Symbol.dispose]: () => owned.dispose(),
  };
}

function contextOf(asked: number | undefined, most: number): number {
  if (asked !== undefined && asked > most) {
    throw new UsageError(
      `Cannot use --context-length ${asked}: the model has at most ${most} positions`,
    );
  }
  return asked ?? Math.min(most, DEFAULT_CONTEXT);
}

function capacity(contextLength: number): Capacity {
  return {
    slots: 1,
    batch: 1,
    maxSteps: MAX_STEPS - 1,
    prefillRows: PREFILL_ROWS,
    contextLength,
    // The last round may reach past the context before it is cut.
    tablePages: Math.ceil((contextLength + MAX_STEPS) / PAGE),
  };
}

function openText(checkpoint: Checkpoint) {
  const tokenizerConfig = checkpoint.json("tokenizer_config.json");
  const tokenizerJson = checkpoint.json("tokenizer.json");
  const jinja = checkpoint.text("chat_template.jinja");
  const tokenizer = loadTokenizer(checkpoint.name, tokenizerJson, tokenizerConfig);
  const template = chatTemplate(jinja, tokenizerConfig);
  return {
    tokenizer,
    hasChatTemplate: template !== undefined,
    encodePrompt(
      input: { readonly raw: string } | { readonly messages: readonly ChatMessage[] },
    ): number[] {
      if ("raw" in input) return tokenizer.encode(input.raw);
      if (template === undefined) {
        throw new UsageError(`Cannot chat with "${checkpoint.name}": no chat template, use --raw`);
      }
      const { bosToken, eosToken } = tokenizer;
      const rendered = renderChat(template, input.messages, {
        addGenerationPrompt: true,
        bosToken,
        eosToken,
      });
      return tokenizer.encode(rendered, { addSpecialTokens: false });
    },
  };
}
