import { defined } from "../defined.ts";
import { UsageError } from "../errors.ts";
import { type DeviceInfo, type Gpu, type GpuChoice, openGpu } from "../gpu/device.ts";
import { type GpuMemory, gpuMemory } from "../gpu/memory.ts";
import { checkQuantize } from "../model/config/quantize_choice.ts";
import { DEFAULT_CONTEXT, PAGE } from "../model/device_layout.ts";
import { lazyGrammars } from "../grammar/lazy.ts";
import { type AcceptThresholds, relaxing } from "../speculate/accept_thresholds.ts";
import { chain, distinctTiers, type DraftShape, isChain } from "../speculate/round_shape.ts";
import type { Runner } from "./device/runner.ts";
import { openRunner } from "./device/device_runner.ts";
import { checkRejection, hostDrafterOf, mayLeave, planOf } from "./drafting.ts";
import { predictionDrafter } from "../draft/algorithms.ts";
import type { HostDrafter } from "../draft/host_drafter.ts";
import { type Capacity, fitMemory, type FitQuery, loadOrAdvise } from "./load/fits.ts";
import { type LoadProgress, loadWeights, openModels } from "./load/load.ts";
import type { OpenedModels } from "./load/opened_models.ts";
import { type EngineLoop, engineLoop } from "./schedule/loop.ts";
import type { OutputConfig } from "./schedule/output.ts";
import { checkDrafter } from "./schedule/rounds/proposing.ts";
import { quantizeWarnings, weightReport } from "./load/quantize.ts";
import { openPaper } from "./load/paper.ts";
import { loadRandomWeights, openRandomModels } from "./load/random_models.ts";
import { cacheOf, noPrefixCache, type PrefixCache } from "./schedule/prefix_cache.ts";
import { observer } from "./schedule/observer.ts";
import { openScheduler, type SchedulerCounts } from "./schedule/scheduler.ts";
import { maxRequestTokens } from "./schedule/sequence_pages.ts";
import { allLayers, capacityOf } from "./load/sizes.ts";
import type { ModelConfig } from "../model/config/types.ts";
import { type EngineText, noText, openText } from "./load/text.ts";
import type { Engine } from "./engine.ts";
import type { LocalOptions } from "./options.ts";
import { unitsReport } from "./matrices/units_report.ts";
import { costsLine } from "./tune/costs/costs_line.ts";
import { costsOf } from "./tune/costs/costs_of.ts";
import type { MeasuredCosts } from "./tune/costs/measure.ts";
import { checkCosts, type EngineCosts, openCosts } from "./tune/costs/engine_costs.ts";
import { learningCosts, learnPrefill } from "./tune/costs/learning.ts";
import { tuneWeights } from "./tune/tuned.ts";
import type { Speculation, SpeculationPlan } from "./schedule/speculation.ts";

const RANDOM_SEED = 1;

/**
 * Rows of a prefill chunk on a software adapter. The values of 64 rows fit in its caches: 991 tokens of the fledgling
 * took 2.9 s, and 6.1 s with chunks of 256 rows (llvmpipe, two busy cores). Ctrl+C is handled after each chunk.
 */
const SOFTWARE_CHUNK_ROWS = 64;

/** Seconds for measuring costs at start, for a policy or a limit that uses them. */
const QUICK_SECONDS = 3;

/** What the engine runs on; tests give it less memory. */
export interface Machine {
  openGpu(choice?: GpuChoice): Promise<Gpu>;
  /** Undefined where it is not known. */
  gpuMemory(info: DeviceInfo, need: number): Promise<GpuMemory | undefined>;
}

/** An engine in this thread, with what it is made of. */
export interface LocalEngine extends Engine, Disposable {
  readonly text: EngineText;
  readonly runner: Runner;
  readonly outputs: OutputConfig;
  readonly counts: Readonly<SchedulerCounts>;
  /** What is kept of earlier requests. */
  readonly cache: PrefixCache;
  readonly speculation: Speculation;
  readonly costs: EngineCosts;
  /** Rows of a forward of prompts between two rounds, and the number that the caller has set, if any. */
  readonly chunkRows: number;
  readonly maxBatchedRows: number | undefined;
  readonly sloItlMs: number | undefined;
  /** Resolves once no request is in flight. */
  idle: EngineLoop["idle"];
}

/**
 * Opens device and models, loads the weights and makes the round programs of the tier that requests get by default, or
 * of all tiers if the policy is adaptive; with these, their packed rounds if the policy has some, and the rounds of
 * a host drafter. Programs of prompts are made here only for `preparePrompts`, or for an ITL limit with `maxBatch`
 * above 1. All other programs are made when they are first needed.
 *
 * @throws UsageError when there is no adapter, a checkpoint cannot be used or the GPU's memory is
 * too small: before loading where its size is known, else when a buffer cannot be allocated.
 */
export async function openEngine(
  options: LocalOptions,
  machine: Machine = { openGpu, gpuMemory },
): Promise<LocalEngine> {
  const started = performance.now();
  using stack = new DisposableStack();
  const { model = {}, device = {}, limits = {}, speculation: speculating = {}, hooks = {} } =
    options;
  const { random } = model;
  const { drafter = hostDrafterOf(model, speculating), onWarning = () => {} } = hooks;
  if (drafter) checkDrafter(drafter, speculating);
  const predicting = drafter === undefined && limits.predictions ? predictionDrafter() : undefined;
  checkCosts(device.costs);
  if (!((limits.sloItlMs ?? 1) > 0)) {
    throw new UsageError(`Cannot use "--slo-itl-ms ${limits.sloItlMs}": it is a number above 0`);
  }
  using models = random ? openRandomModels(random, model.algorithm) : openModels(model);
  checkQuantize(model);
  for (const line of [...models.warnings, ...quantizeWarnings(models, model)]) onWarning(line);
  const { checkpoint, config } = models.target;
  const contextLength = contextOf(limits.contextLength, config.maxPositions);
  const text = random ? noText(checkpoint.name, config.vocabSize) : openText(checkpoint, {
    vocabSize: config.vocabSize,
    onWarning,
    allowSpecial: model.allowSpecial,
  });
  const draftAlgorithm = models.draft?.config.algorithm ?? "NONE";
  const algorithm = drafter?.name ?? draftAlgorithm;
  const plan = planOf(
    {
      plan: hooks.plan,
      speculate: speculating.speculate,
      maxBatch: limits.maxBatch,
      onWarning,
    },
    { algorithm: draftAlgorithm, architecture: config.architecture, drafter },
  );
  const tier = models.draft ? plan.tier : drafter?.shapes.at(-1) ?? plan.tier;
  const acceptThresholds = relaxing(speculating.acceptThresholds);
  if (speculating.rejection) {
    checkRejection(speculating.rejection, draftAlgorithm, plan.tiers, acceptThresholds);
  }
  const gpu = stack.use(await machine.openGpu(device));
  const planned: Planned = { models, gpu, plan, drafter, acceptThresholds };
  const sized = await sizeEngine(
    options,
    { ...planned, contextLength, predicted: predicting?.shapes },
    machine,
  );
  const { capacity, query: { paper } } = sized;
  const { runner, compileMs, tuned, units } = await loadOrAdvise(
    sized.query,
    () => loadRunner(options, planned, sized),
  );
  const { tokenizer, reasoning } = text;
  const outputs = {
    tokenizer,
    tokens: text.tokens,
    reasoning,
    name: checkpoint.name,
    vocabSize: config.vocabSize,
    eosTokenIds: endTokens(text, config),
    algorithm,
    contextLength,
    tier,
  };
  const { roundsPerSync = "auto", maxBatchedRows, sloItlMs } = limits;
  const cache = limits.prefixCache === false ? noPrefixCache() : cacheOf(runner, draftAlgorithm);
  const chunkRows = maxBatchedRows ??
    (gpu.info.software ? SOFTWARE_CHUNK_ROWS : capacity.prefillRows);
  const weights = weightReport(models, model, paper.measured.tensorBytes);
  const costs = openCosts({
    runner,
    chunkRows,
    depths: depthsOf(plan.tiers),
    choice: device.costs,
    of: costsOf(models, {
      gpu,
      weights,
      kvDtype: capacity.kvDtype,
      precision: device.precision,
      units,
    }),
    onWarning,
  });
  stack.defer(() => costs.keep());
  const measured = await measureWanted(costs, options, { plan, batch: capacity.batch, onWarning });
  hooks.signal?.throwIfAborted();
  const speculation = learningCosts(plan.speculation, costs);
  const { tokens, vocabSize, eosTokenIds } = outputs;
  const grammars = lazyGrammars({ tokens, vocabSize, eosTokenIds });
  stack.defer(grammars.close);
  const scheduler = openScheduler({
    runner,
    cache,
    outputs,
    speculation,
    // Without a draft model the steps limit the host's drafts, for which the runner has other shapes.
    tiers: models.draft ? plan.tiers : undefined,
    grammars,
    roundsPerSync,
    drafter: drafter ?? predicting,
    chunkRows,
    maxBatchedRows,
    sloItlMs,
    costs: () => costs.table,
    onPrefill: learnPrefill(costs),
    ...defined({ onRound: hooks.onRound, residency: hooks.residency }),
    onWarning,
    messageWaits: hooks.messageWaits,
  });
  const { submit, idle, close } = engineLoop(scheduler);
  stack.defer(close);
  const { hasChatTemplate, chatTemplate, generation } = text;
  const info = {
    name: checkpoint.name,
    draftName: models.draft?.checkpoint.name,
    algorithm,
    weights,
    tuned,
    units,
    kvDtype: capacity.kvDtype,
    kvTokens: capacity.pages * PAGE,
    requestTokens: maxRequestTokens(capacity),
    acceptThresholds,
    contextLength,
    maxContextLength: config.maxPositions,
    loadMs: performance.now() - started,
    compileMs,
    device: gpu.info,
    costsLine: measured && costsLine(measured, depthsOf(plan.tiers)),
    tier,
    tiers: { shapes: plan.tiers, bytes: sized.tierBytes },
    hasChatTemplate,
    chatTemplate,
    reasoning,
    generation,
  };
  const { counts } = scheduler;
  const status = () => ({
    counts: { ...counts },
    speculation: speculation.report,
    pages: { free: runner.pool.free + cache.evictable, total: runner.pool.total },
  });
  const owned = stack.move();
  const dispose = () => owned.dispose();
  return {
    info,
    text,
    runner,
    outputs,
    counts,
    cache,
    speculation,
    costs,
    chunkRows,
    maxBatchedRows,
    sloItlMs,
    submit,
    idle,
    // deno-lint-ignore require-await -- what is thrown rejects, as from another thread
    encodePrompt: async (input) => text.encodePrompt(input),
    // deno-lint-ignore require-await -- as above
    decode: async (ids) => text.decode(ids),
    // deno-lint-ignore require-await -- as above
    pieces: async (ids) => text.pieces(ids),
    get status() {
      return status();
    },
    readStatus: () => Promise.resolve(status()),
    ping: () => Promise.resolve(0),
    terminate: () => Promise.resolve(dispose()),
    [Symbol.dispose]: dispose,
    [Symbol.asyncDispose]: () => Promise.resolve(dispose()),
  };
}

/** What is known before anything is allocated. */
interface Planned {
  readonly models: OpenedModels;
  readonly gpu: Gpu;
  readonly plan: SpeculationPlan;
  readonly drafter: HostDrafter | undefined;
  readonly acceptThresholds: AcceptThresholds | undefined;
}

/** Sizes of all buffers, and what was asked for, to advise on where they do not fit. */
interface Sized {
  readonly capacity: Capacity;
  readonly query: FitQuery;
  readonly elasticDraft: boolean;
  /** Working memory that the tiers take besides plain decoding's. */
  readonly tierBytes: number;
}

/** Decides the sizes of all buffers by what the GPU has. @throws UsageError where it is known to be too little. */
async function sizeEngine(
  { model, device = {}, limits = {}, speculation = {}, hooks = {} }: LocalOptions,
  { models, gpu, plan, drafter, acceptThresholds, contextLength, predicted }: Planned & {
    readonly contextLength: number;
    /** Shapes of rounds that verify a request's prediction. */
    readonly predicted: HostDrafter["shapes"] | undefined;
  },
  machine: Machine,
): Promise<Sized> {
  const { onWarning = () => {} } = hooks;
  const layers = allLayers(models);
  const settings = {
    ...model,
    ...limits,
    contextLength,
    rejection: speculation.rejection,
    drafter,
    predicted,
    tiers: plan.tiers,
    confident: plan.confident,
  };
  const elasticDraft = limits.elasticDraft === true && mayLeave(
    models.draft?.config.algorithm ?? "NONE",
    capacityOf(settings, gpu, layers).shapes,
    onWarning,
  );
  const relaxed = acceptThresholds !== undefined;
  const allocated = { ...settings, precision: device.precision, elasticDraft, relaxed };
  const paper = openPaper(models, allocated, gpu);
  const query = { models, settings: allocated, gpu, paper };
  const { capacity, known } = await fitMemory(
    query,
    machine.gpuMemory,
    limits.gpuMemoryUtilization,
  );
  const maxKvTokens = capacity.pages * PAGE;
  if (!known && limits.maxKvTokens === undefined && capacity.batch > 1) {
    onWarning(
      `the memory of ${gpu.info.adapter} is not known: the KV cache has ${maxKvTokens} tokens, ` +
        `a whole context for each of ${capacity.batch} requests; --max-kv-tokens sets another number`,
    );
  }
  const fitted = { ...allocated, maxKvTokens };
  const plain = capacityOf({ ...fitted, tiers: [chain(0)] }, gpu, layers);
  return {
    capacity,
    query: { ...query, settings: fitted },
    elasticDraft,
    tierBytes: paper.need(capacity).scratch - paper.need(plain).scratch,
  };
}

/** Loads the weights, chooses launches, and makes the programs that the first requests need. */
async function loadRunner(
  { model = {}, device = {}, limits = {}, speculation = {}, hooks = {} }: LocalOptions,
  { models, gpu, plan, drafter, acceptThresholds }: Planned,
  { capacity, query: { paper }, elasticDraft }: Sized,
) {
  const { onWarning = () => {} } = hooks;
  const onProgress = (progress: LoadProgress) => {
    hooks.signal?.throwIfAborted();
    hooks.onProgress?.(progress);
  };
  const loading = {
    ...model,
    precision: device.precision,
    maxBatch: limits.maxBatch,
    elasticDraft,
    measured: paper.measured,
    onProgress,
  };
  const loaded = model.random
    ? await loadRandomWeights(gpu, models, RANDOM_SEED, loading)
    : await loadWeights(gpu, models, loading);
  const { weights, report: tuned } = await tuneWeights(gpu, loaded, {
    ...defined({ autotune: device.autotune }),
    onWarning,
  });
  const runner = await openRunner(gpu, weights, capacity, {
    profile: device.profile ?? false,
    ...defined({ messageWaits: hooks.messageWaits, acceptance: speculation.simulateAcceptance }),
    thresholds: acceptThresholds,
    promptTarget: hooks.promptTarget,
    meanwhile: drafter?.meanwhile &&
      observer(`the drafter "${drafter.name}"`, drafter.meanwhile, onWarning),
    onCompile: (compiled) => onProgress({ label: "kernels", unit: "kernels", ...compiled }),
  });
  const warming = performance.now();
  const { warmed = [plan.tier], packed } = plan;
  await runner.warmUp(warmed);
  // With an ITL limit, forwards of prompts have all sizes; their programs should not be made while requests wait.
  const anySize = limits.sloItlMs !== undefined && capacity.batch > 1;
  if (limits.preparePrompts || anySize) await runner.warmUpPrompts();
  if (packed) await runner.warmUpPacked(warmed);
  if (drafter) await runner.warmUp([chain(0), ...drafter.shapes], true, warmed);
  const compileMs = performance.now() - warming;
  return { runner, compileMs, tuned, units: unitsReport(gpu, weights, capacity) };
}

/**
 * Measures costs if the policy or an ITL limit goes by them and there are none.
 *
 * @returns what was measured; undefined where nothing was, or prompts alone.
 */
async function measureWanted(
  costs: EngineCosts,
  { device = {}, limits = {}, hooks = {} }: LocalOptions,
  { plan, batch, onWarning }: {
    readonly plan: SpeculationPlan;
    readonly batch: number;
    readonly onWarning: (line: string) => void;
  },
): Promise<MeasuredCosts | undefined> {
  // With one request at a time, no request waits for another's prompt.
  const limited = limits.sloItlMs !== undefined && batch > 1;
  const lacking = (plan.costs || limited) && costs.table === undefined && device.costs !== "off";
  const asked = { seconds: QUICK_SECONDS, ...defined({ signal: hooks.signal }) };
  const measured = lacking
    ? await costs.measure({ ...asked, prompts: limited ? "all" : "few" })
    : undefined;
  // A cost file that the caller names is used as it is.
  if (limited && costs.table && !costs.hasPrompts && device.costs === undefined) {
    await costs.measurePrompts(asked);
  }
  if (limited && !costs.hasPrompts) {
    onWarning(
      "--slo-itl-ms may not be held: it is not known what prompts as long as a chunk cost here",
    );
  }
  return measured;
}

/**
 * Tokens that end an answer: those of the config, those that end a message of the reasoning format, and the
 * tokenizer's, which some checkpoints do not have among the config's (a fine-tuned base model, say).
 */
function endTokens(
  { tokenizer, reasoning }: Pick<EngineText, "tokenizer" | "reasoning">,
  { eosTokenIds, vocabSize }: Pick<ModelConfig, "eosTokenIds" | "vocabSize">,
): number[] {
  const own = tokenizer.eosToken === undefined ? undefined : tokenizer.idOf(tokenizer.eosToken);
  const all = [...eosTokenIds, ...reasoning.stops ?? [], ...own === undefined ? [] : [own]];
  return [...new Set(all)].filter((id) => id < vocabSize);
}

/** Draft levels of the chains among the tiers, ascending. */
function depthsOf(tiers: readonly DraftShape[]): number[] {
  return distinctTiers([chain(0), ...tiers.filter(isChain)]).map(({ depth }) => depth);
}

function contextOf(asked: number | undefined, most: number): number {
  if (asked !== undefined && asked > most) {
    throw new UsageError(
      `Cannot use --context-length ${asked}: the model has at most ${most} positions`,
    );
  }
  return asked ?? Math.min(most, DEFAULT_CONTEXT);
}
