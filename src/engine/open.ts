import { UsageError } from "../errors.ts";
import { type AdapterChoice, type DeviceInfo, type Gpu, openGpu } from "../gpu/device.ts";
import type { Checkpoint } from "../model/checkpoint.ts";
import type { ModelConfig } from "../model/config.ts";
import { PAGE } from "../model/rows_layout.ts";
import { type ChatMessage, chatTemplate, renderChat } from "../text/chat_template.ts";
import { loadTokenizer, type Tokenizer } from "../text/tokenizer.ts";
import { type Capacity, reservedCells } from "./buffers.ts";
import { type Core, openCore, type Slot } from "./core.ts";
import type { EngineEvent, GenerateRequest } from "./events.ts";
import { generate } from "./generate.ts";
import { type LoadProgress, loadWeights, type ModelChoice, openModels } from "./load.ts";
import type { Outputs } from "./output.ts";
import { openScheduler, type RoundSample, type Scheduler } from "./scheduler.ts";
import { asAsked, type Speculation } from "./speculation.ts";

/** Tokens of context kept when neither the model nor the user asks for fewer. */
const DEFAULT_CONTEXT = 8192;
const PREFILL_ROWS = 256;

export interface OpenOptions extends ModelChoice {
  /** Draft steps a round unless a request or a policy says otherwise. */
  readonly numSteps: number;
  /** Every `num_steps` that may be asked for; default: numSteps alone. */
  readonly steps?: readonly number[];
  /** Sequences in flight, 1 to 128; default 1. */
  readonly maxBatch?: number;
  /** Tokens whose keys and values are kept, over all sequences; default: what the batch can use. */
  readonly maxKvTokens?: number;
  /** Chooses the draft steps of each round; default: what the requests ask. */
  readonly speculation?: Speculation;
  /** Time the parts of each round on the device. */
  readonly profile?: boolean;
  readonly onRound?: (sample: RoundSample) => void;
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
  readonly algorithm: Outputs["algorithm"];
  /** Tokens a sequence may hold, prompt and output. */
  readonly contextLength: number;
  readonly loadMs: number;
  readonly device: DeviceInfo;
  readonly hasChatTemplate: boolean;
  readonly tokenizer: Tokenizer;
  readonly core: Core;
  /** Many requests at once. */
  readonly scheduler: Scheduler;
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
  const steps = weights.draft ? options.steps ?? [options.numSteps] : [0];
  const capacity = capacityOf(options, { contextLength, steps }, kvLimit(gpu, config));
  const core = await openCore(gpu, weights, capacity, { profile: options.profile ?? false });
  const algorithm: Outputs["algorithm"] = weights.draft?.config.algorithm ?? "NONE";
  const { name } = checkpoint;
  const { eosTokenIds } = config;
  const outputs = { tokenizer: text.tokenizer, name, eosTokenIds, algorithm, contextLength };
  const { speculation = asAsked(), onRound } = options;
  const scheduler = openScheduler({ core, outputs, speculation, ...onRound ? { onRound } : {} });
  const owned = stack.move();
  return {
    name,
    draftName: models.draft?.checkpoint.name,
    algorithm,
    contextLength,
    loadMs: performance.now() - started,
    device: gpu.info,
    core,
    scheduler,
    ...text,
    newSlot(): Slot {
      const slot = core.openSlot();
      if (!slot) throw new Error(`all ${capacity.batch} slots are taken`);
      return slot;
    },
    generate: (slot, request) => generate(scheduler, slot, request),
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

function capacityOf(
  { maxBatch: batch = 1, maxKvTokens }: OpenOptions,
  { contextLength, steps }: { readonly contextLength: number; readonly steps: readonly number[] },
  most: number,
): Capacity {
  const sized = { batch, steps, prefillRows: PREFILL_ROWS, contextLength, pages: 0 };
  const whole = Math.ceil(reservedCells(sized, contextLength) / PAGE);
  const asked = maxKvTokens === undefined ? batch * whole : Math.ceil(maxKvTokens / PAGE);
  return { ...sized, pages: Math.max(1, Math.min(asked, most)) };
}

/** Pages whose keys fit one binding of the adapter. */
function kvLimit({ limits }: Gpu, { numKvHeads, headDim }: ModelConfig): number {
  const bytes = Math.min(limits.maxStorageBufferBindingSize, limits.maxBufferSize);
  return Math.floor(bytes / (PAGE * numKvHeads * headDim * 4));
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
