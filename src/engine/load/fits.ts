/** Whether the models fit the GPU's memory, and what would. */
import { UsageError } from "../../errors.ts";
import { type DeviceInfo, OutOfMemory } from "../../gpu/device.ts";
import type { Quantization } from "../../gpu/weight_format.ts";
import { type GpuMemory, WORTH_ASKING } from "../../gpu/memory.ts";
import type { Adapter } from "../../gpu/paper.ts";
import { chain } from "../../speculate/round_shape.ts";
import { PAGE } from "../../model/device_layout.ts";
import { bytesText } from "../../text/numbers.ts";
import { type MemoryNeed, openPaper, type PaperEngine, type PaperModels } from "./paper.ts";
import { allLayers, capacityOf, type SizeFlags, type SizeSettings } from "./sizes.ts";

/** Models, what they are opened with and on what. */
export interface FitQuery {
  readonly models: PaperModels;
  readonly settings: SizeSettings;
  readonly gpu: Adapter;
  /** These models, their weights as these settings make them. */
  readonly paper: PaperEngine;
}

/** Other settings, as flags, and what they take. */
export interface Way {
  readonly flags: string;
  readonly bytes: number;
}

/** Changed settings and the flags that make the change. */
interface Change extends FitQuery {
  readonly flags: string;
}

/** No context worth having is shorter. */
const SHORTEST_CONTEXT = 512;

/**
 * Default share of the GPU's memory that an engine may take: the rest is for the driver and for what requests need
 * later (masks, penalties). If the GPU shares its memory with other programs, more is left to them.
 */
const UTILIZATION = 0.9;
const SHARED_UTILIZATION = 0.7;

/**
 * Decides how many KV pages an engine has: `settings.maxKvTokens` if it is given. Otherwise there are enough pages for
 * the whole batch, each sequence with a whole context, or as many as fit in the memory that the engine may take, but
 * never fewer than one sequence needs:
 *
 *     memory of a card: utilization * total, at most what is free
 *     memory that is shared: utilization * free
 *
 * If the memory is not known, there are enough pages for the whole batch.
 *
 * @param utilization 0 to 1; default: UTILIZATION, or SHARED_UTILIZATION of shared memory.
 * @returns the sizes, and whether the GPU's memory is known or large enough in any case.
 * @throws UsageError where it is known that the GPU's memory is too small, with what would fit.
 */
export async function fitMemory(
  asked: FitQuery,
  ask: (info: DeviceInfo, need: number) => Promise<GpuMemory | undefined>,
  utilization?: number,
): Promise<{ readonly capacity: Capacity; readonly known: boolean }> {
  const { settings, paper, gpu } = asked;
  const wanted = sizesOf(asked);
  const need = paper.need(wanted);
  const memory = await ask(gpu.info, utilization === undefined ? need.total : Infinity);
  if (memory === undefined) {
    return { capacity: wanted, known: utilization === undefined && need.total < WORTH_ASKING };
  }
  const { free, total, shared = false } = memory;
  const least = resized("", asked, { kvFor: "request" });
  const leastNeed = needOf(least);
  const has = `the GPU has ${bytesText(free)} free of ${bytesText(total)}`;
  if (leastNeed.total > free) throw tooLarge(least, { need: leastNeed, why: has, most: free });
  if (settings.maxKvTokens !== undefined) return { capacity: wanted, known: true };
  const share = utilization ?? (shared ? SHARED_UTILIZATION : UTILIZATION);
  const most = shared ? share * free : Math.min(share * total, free);
  if (utilization !== undefined && leastNeed.total > most) {
    const why = `${utilization} of the GPU's memory is ${bytesText(most)}`;
    throw tooLarge(least, { need: leastNeed, why, most });
  }
  const pages = need.total <= most ? wanted.pages : largestWithin(
    most,
    (pages) => paper.need({ ...wanted, pages }).total,
    { least: sizesOf(least).pages, tooMany: wanted.pages },
  );
  return { capacity: { ...wanted, pages }, known: true };
}

/**
 * The most pages that take at most `most` bytes, or `least`. Bytes grow almost linearly with the pages, so
 * interpolation finds the number in a few steps; each step allocates an engine on paper.
 */
function largestWithin(
  most: number,
  bytesOf: (pages: number) => number,
  { least, tooMany }: { readonly least: number; readonly tooMany: number },
): number {
  let low = { pages: least, bytes: bytesOf(least) };
  let high = { pages: tooMany, bytes: bytesOf(tooMany) };
  while (high.pages - low.pages > 1) {
    const share = (most - low.bytes) / (high.bytes - low.bytes);
    const guess = low.pages + Math.floor(share * (high.pages - low.pages));
    const pages = Math.max(low.pages + 1, Math.min(high.pages - 1, guess));
    const found = { pages, bytes: bytesOf(pages) };
    if (found.bytes <= most) low = found;
    else high = found;
  }
  return low.pages;
}

/**
 * Returns what `load` makes.
 *
 * @throws UsageError with settings that take less, if the GPU has no memory for a buffer.
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
 * Settings that take at most `most` bytes. Each change is tried alone, with the batch or context as large as halving
 * finds; if none is enough, they are combined (`leanest`), with a shorter context if that is needed.
 */
export function waysToFit(asked: FitQuery, most: number): Way[] {
  const singles = [
    ...changes(asked),
    ...largest(batches(asked), most),
    ...largest(contexts(asked), most),
  ].map(wayOf).filter(({ bytes }) => bytes <= most);
  if (singles.length > 0) return singles;
  const lean = leanest(asked);
  const shorter = contexts(lean).map((change) => ({
    ...change,
    flags: `${lean.flags} ${change.flags}`,
  }));
  return largest([lean, ...shorter], most).map(wayOf);
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

function needOf(query: FitQuery): MemoryNeed {
  return query.paper.need(sizesOf(query));
}

/** Sizes of everything on the device. */
export type Capacity = ReturnType<typeof capacityOf>;

function sizesOf({ models, settings, gpu }: FitQuery): Capacity {
  return capacityOf(settings, gpu, allLayers(models));
}

function wayOf(change: Change): Way {
  return { flags: change.flags, bytes: needOf(change).total };
}

/** Settings that are either made or not. */
function changes(asked: FitQuery): Change[] {
  const { models, settings } = asked;
  const { quantize, kvDtype = "f32" } = settings;
  const quantized = (to: Quantization) =>
    remeasured(`--quantize ${to}`, asked, models, { ...settings, quantize: to });
  return [
    ...kvDtype === "f32" ? [resized("--kv-dtype bf16", asked, { kvDtype: "bf16" })] : [],
    ...quantize === undefined ? [quantized("q8")] : [],
    ...quantize === "q4" ? [] : [quantized("q4")],
    ...fewerPages(asked),
    ...models.draft
      ? [
        // Without a draft nothing is drafted.
        remeasured("--draft none", asked, { ...models, draft: undefined }, {
          ...settings,
          tiers: [chain(0)],
        }),
      ]
      : [],
  ];
}

/** Returns the change of an engine with the same weights and other sizes. */
function resized(flags: string, asked: FitQuery, to: Partial<SizeSettings>): Change {
  return { ...asked, flags, settings: { ...asked.settings, ...to } };
}

/** Other weights. */
function remeasured(
  flags: string,
  { gpu }: FitQuery,
  models: PaperModels,
  settings: SizeSettings,
): Change {
  return { flags, models, settings, gpu, paper: openPaper(models, settings, gpu) };
}

const FLAGS: SizeFlags = {
  maxBatch: "--max-batch",
  contextLength: "--context-length",
  maxKvTokens: "--max-kv-tokens",
};

/** As few KV pages as one sequence with a whole context needs, where there are more. */
function fewerPages(asked: FitQuery): Change[] {
  const { settings } = asked;
  const flag = (settings.sizeFlags ?? FLAGS).maxKvTokens;
  const one = sizesOf(resized("", asked, { maxKvTokens: undefined, kvFor: "request" })).pages;
  if (flag === undefined || one >= sizesOf(asked).pages) return [];
  const maxKvTokens = one * PAGE;
  return [resized(`${flag} ${maxKvTokens}`, asked, { maxKvTokens })];
}

/** Ever smaller batches or contexts, where the command has a flag for it. */
function smaller(asked: FitQuery, what: keyof SizeFlags, least: number): Change[] {
  const { settings } = asked;
  const flag = (settings.sizeFlags ?? FLAGS)[what];
  if (flag === undefined) return [];
  return halves(settings[what] ?? 1, least).map((value) =>
    resized(`${flag} ${value}`, asked, { [what]: value })
  );
}

const batches = (asked: FitQuery) => smaller(asked, "maxBatch", 1);
const contexts = (asked: FitQuery) => smaller(asked, "contextLength", SHORTEST_CONTEXT);

/** All changes that save memory together, except a shorter context and no draft. */
function leanest(asked: FitQuery): Change {
  const { models, settings } = asked;
  const { maxBatch: batch = 1, kvDtype = "f32" } = settings;
  const flag = (settings.sizeFlags ?? FLAGS).maxBatch;
  const lone = batch > 1 && flag !== undefined;
  const flags = [
    "--quantize q4",
    ...models.draft ? ["--quantize-draft"] : [],
    ...kvDtype === "f32" ? ["--kv-dtype bf16"] : [],
    ...lone ? [`${flag} 1`] : [],
  ].join(" ");
  return remeasured(flags, asked, models, {
    ...settings,
    quantize: "q4",
    quantizeDraft: models.draft !== undefined,
    kvDtype: kvDtype === "f32" ? "bf16" : kvDtype,
    maxBatch: lone ? 1 : batch,
  });
}

/** The first change that is enough, of changes that save ever more; an empty list if none is. */
function largest(of: readonly Change[], most: number): Change[] {
  const found = of.find((change) => needOf(change).total <= most);
  return found ? [found] : [];
}

/** Half of it, a quarter of it, ..., no less than `least`. */
function halves(value: number, least: number): number[] {
  const half = Math.floor(value / 2);
  return half < least ? [] : [half, ...halves(half, least)];
}
