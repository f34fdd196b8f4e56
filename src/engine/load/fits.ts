/** Whether the models fit the GPU's memory, and what would. */
import { UsageError } from "../../errors.ts";
import { type DeviceInfo, OutOfMemory } from "../../gpu/device.ts";
import type { GpuMemory } from "../../gpu/memory.ts";
import { chain } from "../../speculate/round_shape.ts";
import { bytesText } from "../../text/numbers.ts";
import type { OpenedModels } from "./opened_models.ts";
import {
  type Adapter,
  allLayers,
  capacityOf,
  type MemoryNeed,
  memoryNeed,
  type SizeFlags,
  type SizeSettings,
} from "./sizes.ts";

type Models = Pick<OpenedModels, "target" | "draft">;

/** Models, what they are opened with and on what. */
export interface FitQuery {
  readonly models: Models;
  readonly settings: SizeSettings;
  readonly gpu: Adapter;
}

/** Other settings, as flags, and what they take. */
export interface Way {
  readonly flags: string;
  readonly bytes: number;
}

/** A change of the settings and the flags that make it. */
interface Change {
  readonly flags: string;
  readonly models: Models;
  readonly settings: SizeSettings;
}

/** No context worth having is shorter. */
const SHORTEST_CONTEXT = 512;

/** @throws UsageError where it is known that the GPU's memory is too small, with what would fit. */
export async function checkMemory(
  asked: FitQuery,
  ask: (info: DeviceInfo, need: number) => Promise<GpuMemory | undefined>,
): Promise<void> {
  const need = needOf(asked);
  const memory = await ask(asked.gpu.info, need.total);
  if (memory === undefined || need.total <= memory.free) return;
  const has = `the GPU has ${bytesText(memory.free)} free of ${bytesText(memory.total)}`;
  throw tooLarge(asked, { need, why: has, most: memory.free });
}

/**
 * What `load` makes.
 *
 * @throws UsageError with what takes less, where the GPU has no memory for a buffer.
 */
export async function loadOrAdvise<Loaded>(
  asked: FitQuery,
  load: () => Promise<Loaded>,
): Promise<Loaded> {
  try {
    return await load();
  } catch (error) {
    if (!(error instanceof OutOfMemory)) throw error;
    const need = needOf(asked);
    const why = "the GPU ran out of memory";
    throw tooLarge(asked, { need, why, most: need.total - 1, cause: error });
  }
}

/** Whether it was thrown because the GPU had no memory for a buffer. */
export function ranOutOfMemory(error: unknown): boolean {
  return error instanceof OutOfMemory ||
    (error instanceof UsageError && error.cause instanceof OutOfMemory);
}

/**
 * Settings that take at most `most` bytes: each change alone, the context and the batch as large as
 * halving finds, or, where none is enough, all of them together.
 */
export function waysToFit(asked: FitQuery, most: number): Way[] {
  const singles = [
    ...changes(asked),
    ...largest(batches(asked), { asked, most }),
    ...largest(contexts(asked), { asked, most }),
  ].map(wayOf(asked)).filter(({ bytes }) => bytes <= most);
  if (singles.length > 0) return singles;
  const { flags, models, settings } = leanest(asked);
  const lean = { ...asked, models, settings };
  return largest([{ flags: "", models, settings }, ...contexts(lean)], { asked: lean, most })
    .map(wayOf(asked, flags)).filter(({ bytes }) => bytes <= most);
}

function tooLarge(
  asked: FitQuery,
  { need, why, most, cause }: {
    readonly need: MemoryNeed;
    readonly why: string;
    readonly most: number;
    readonly cause?: OutOfMemory;
  },
): UsageError {
  const ways = waysToFit(asked, most).map(({ flags, bytes }) => `${flags} (${bytesText(bytes)})`);
  const advice = ways.length > 0
    ? `less memory: ${ways.join(", ")}`
    : `no quantization, context or batch makes it small enough`;
  const parts = `${bytesText(need.weights)} weights, ${bytesText(need.kv)} keys and values, ` +
    `${bytesText(need.scratch)} working memory`;
  const { name } = asked.models.target.checkpoint;
  return new UsageError(
    `Cannot load "${name}": it takes ${bytesText(need.total)} (${parts}), ${why}; ${advice}`,
    { cause },
  );
}

function needOf({ models, settings, gpu }: FitQuery): MemoryNeed {
  const capacity = capacityOf(settings, gpu, allLayers(models));
  return memoryNeed(models, capacity, settings, gpu);
}

function wayOf({ gpu }: FitQuery, before = ""): (change: Change) => Way {
  return ({ flags, models, settings }) => ({
    flags: `${before} ${flags}`.trim(),
    bytes: needOf({ models, settings, gpu }).total,
  });
}

/** Settings that are either made or not. */
function changes({ models, settings }: FitQuery): Change[] {
  const { quantize, kvDtype = "f32" } = settings;
  const change = (flags: string, to: Partial<SizeSettings>): Change => ({
    flags,
    models,
    settings: { ...settings, ...to },
  });
  return [
    ...kvDtype === "f32" ? [change("--kv-dtype bf16", { kvDtype: "bf16" })] : [],
    ...quantize === undefined ? [change("--quantize q8", { quantize: "q8" })] : [],
    ...quantize === "q4" ? [] : [change("--quantize q4", { quantize: "q4" })],
    ...models.draft
      ? [{
        flags: "--draft none",
        models: { ...models, draft: undefined },
        settings: plain(settings),
      }]
      : [],
  ];
}

/** Without a draft nothing is drafted. */
function plain(settings: SizeSettings): SizeSettings {
  return { ...settings, tiers: [chain(0)] };
}

const FLAGS: SizeFlags = { maxBatch: "--max-batch", contextLength: "--context-length" };

/** Ever smaller batches or contexts, where the command has a flag for it. */
function smaller({ models, settings }: FitQuery, what: keyof SizeFlags, least: number): Change[] {
  const flag = (settings.sizeFlags ?? FLAGS)[what];
  if (flag === undefined) return [];
  return halves(settings[what] ?? 1, least).map((value) => ({
    flags: `${flag} ${value}`,
    models,
    settings: { ...settings, [what]: value },
  }));
}

const batches = (asked: FitQuery) => smaller(asked, "maxBatch", 1);
const contexts = (asked: FitQuery) => smaller(asked, "contextLength", SHORTEST_CONTEXT);

/** Everything that saves memory, but the context and the draft. */
function leanest({ models, settings }: FitQuery): Change {
  const { maxBatch: batch = 1, kvDtype = "f32" } = settings;
  const flag = (settings.sizeFlags ?? FLAGS).maxBatch;
  const lone = batch > 1 && flag !== undefined;
  return {
    flags: [
      "--quantize q4",
      ...models.draft ? ["--quantize-draft"] : [],
      ...kvDtype === "f32" ? ["--kv-dtype bf16"] : [],
      ...lone ? [`${flag} 1`] : [],
    ].join(" "),
    models,
    settings: {
      ...settings,
      quantize: "q4",
      quantizeDraft: models.draft !== undefined,
      kvDtype: kvDtype === "f32" ? "bf16" : kvDtype,
      maxBatch: lone ? 1 : batch,
    },
  };
}

/** The first change that is enough, of changes that save ever more; none where none is. */
function largest(
  of: readonly Change[],
  { asked: { gpu }, most }: { readonly asked: FitQuery; readonly most: number },
): Change[] {
  const found = of.find(({ models, settings }) => needOf({ models, settings, gpu }).total <= most);
  return found ? [found] : [];
}

/** Half of it, a quarter of it, ..., no less than `least`. */
function halves(value: number, least: number): number[] {
  const half = Math.floor(value / 2);
  return half < least ? [] : [half, ...halves(half, least)];
}
