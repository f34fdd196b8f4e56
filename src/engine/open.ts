import { UsageError } from "../errors.ts";
import { type DeviceInfo, type Gpu, type GpuChoice, openGpu } from "../gpu/device.ts";
import type { KvDtype } from "../gpu/kv.ts";
import { type GpuMemory, gpuMemory } from "../gpu/memory.ts";
import { checkQuantize, type QuantizeChoice } from "../model/config/quantize_choice.ts";
import { DEFAULT_CONTEXT } from "../model/device_layout.ts";
import { lazyGrammars } from "../grammar/lazy.ts";
import { type AcceptThresholds, relaxing } from "../speculate/accept_thresholds.ts";
import { chain, distinctTiers, type DraftShape, isChain } from "../speculate/round_shape.ts";
import type { Runner } from "./device/runner.ts";
import { openRunner } from "./device/device_runner.ts";
import { checkRejection, drafterOf, type DraftingChoice, mayLeave, planOf } from "./drafting.ts";
import { predictionDrafter } from "../draft/algorithms.ts";
import { checkMemory, loadOrAdvise } from "./load/fits.ts";
import { type LoadProgress, loadWeights, type ModelChoice, openModels } from "./load/load.ts";
import { type EngineLoop, engineLoop } from "./schedule/loop.ts";
import type { OutputConfig } from "./schedule/output.ts";
import { checkDrafter } from "./schedule/rounds/proposing.ts";
import type { RoundsPerSync } from "./schedule/sync_interval.ts";
import { quantizeWarnings, type WeightReport, weightReport } from "./load/quantize.ts";
import { openPaper } from "./load/paper.ts";
import { loadRandomWeights, openRandomModels } from "./load/random_models.ts";
import { cacheOf, noPrefixCache, type PrefixCache } from "./schedule/prefix_cache.ts";
import type { ResidencyOptions } from "./schedule/residency.ts";
import type { RoundSample } from "./schedule/rounds/round_sample.ts";
import { observer } from "./schedule/observer.ts";
import { openScheduler, type SchedulerCounts } from "./schedule/scheduler.ts";
import { mostTokens } from "./schedule/sequence_pages.ts";
import { allLayers, capacityOf, type SizeFlags } from "./load/sizes.ts";
import { type EngineText, noText, openText } from "./load/text.ts";
import { type UnitsReport, unitsReport } from "./matrices/units_report.ts";
import { costsLine } from "./tune/costs/costs_line.ts";
import { costsOf } from "./tune/costs/costs_of.ts";
import {
  checkCosts,
  type CostsChoice,
  type EngineCosts,
  openCosts,
} from "./tune/costs/engine_costs.ts";
import { learningCosts, learnPrefill } from "./tune/costs/learning.ts";
import { type AutotuneChoice, type TunedReport, tuneWeights } from "./tune/tuned.ts";
import type { Speculation } from "./schedule/speculation.ts";

const RANDOM_SEED = 1;

/**
 * Rows of a prefill chunk on a software adapter. Its caches hold what 64 rows write: 991 tokens of the
 * fledgling took 2.9 s where chunks of 256 took 6.1 s (llvmpipe, two busy cores), and Ctrl+C is heard
 * after each.
 */
const SOFTWARE_CHUNK_ROWS = 64;

/** Of measuring costs at start, for a policy that goes by them. */
const QUICK_SECONDS = 3;

export interface OpenOptions extends ModelChoice, QuantizeChoice, DraftingChoice, GpuChoice {
  /** Requests may have a grammar, whose forced tokens are drafted: a tier for them is prepared. */
  readonly constrained?: boolean;
  /**
   * Requests may have a prediction, whichever drafter there is: room for rounds of its drafts is
   * prepared, their programs are made when first wanted.
   */
  readonly predictions?: boolean;
  /** Sequences in flight, 1 to 128; default 1. */
  readonly maxBatch?: number;
  /** Tokens whose keys and values are kept, over all sequences; default: what the batch can use. */
  readonly maxKvTokens?: number;
  /** Give the draft's memory to KV pages while nothing is drafted and pages are short; default false. */
  readonly elasticDraft?: boolean;
  /** When that is. */
  readonly residency?: Partial<ResidencyOptions>;
  /** Keep the keys and values of earlier requests for those that begin alike; default true. */
  readonly prefixCache?: boolean;
  /** As in PromptInput, of prompts that do not say; default false. */
  readonly allowSpecial?: boolean;
  /** How the keys and values of target and draft are kept; default f32. */
  readonly kvDtype?: KvDtype;
  /** Time the parts of each round on the device. */
  readonly profile?: boolean;
  /** Weights made up for the shapes of these config.json files: for timing. */
  readonly random?: { readonly target: string; readonly draft?: string };
  /** Accepted counts are drawn with these probabilities, not verified: for timing. */
  readonly simulateAcceptance?: readonly number[];
  readonly onRound?: (sample: RoundSample) => void;
  /** Rounds that are submitted at once, 1 to MOST_ROUNDS; default "auto". */
  readonly roundsPerSync?: RoundsPerSync;
  /** Tokens a sequence may hold; default: the model's most, at most 8192. */
  readonly contextLength?: number;
  /** The caller's flags for sizes, named where the GPU's memory is too small. */
  readonly sizeFlags?: SizeFlags;
  /** True when messages wait that only a turn of the event loop brings: the engine takes one then. */
  readonly mail?: () => boolean;
  /** Measure at first use which launches suit the adapter; default off. No result depends on it. */
  readonly autotune?: AutotuneChoice;
  /**
   * Cost table of rounds: a file, or "off" for none; absent: the cache's, which is measured where the
   * policy goes by costs and there is none. No text depends on it.
   */
  readonly costs?: CostsChoice;
  readonly onProgress?: (progress: LoadProgress) => void;
  readonly onWarning?: (line: string) => void;
}

/** What the engine runs on; tests give it less memory. */
export interface Machine {
  openGpu(choice?: GpuChoice): Promise<Gpu>;
  /** Undefined where it is not known. */
  gpuMemory(info: DeviceInfo, need: number): Promise<GpuMemory | undefined>;
}

/** A target, its draft and a device, ready for requests. */
export interface Engine extends EngineText, Disposable {
  /** The target's checkpoint. */
  readonly name: string;
  readonly draftName: string | undefined;
  readonly algorithm: OutputConfig["algorithm"];
  readonly weights: WeightReport;
  /** What `autotune` did; undefined where it was not asked for or there is no hardware. */
  readonly tuned: TunedReport | undefined;
  /** What the device's matrix units multiply; undefined where there are none, or they are not used. */
  readonly units?: UnitsReport | undefined;
  /** How keys and values are kept. */
  readonly kvDtype: KvDtype;
  /** Where acceptance is relaxed: the text is not lossless. */
  readonly acceptThresholds: AcceptThresholds | undefined;
  /** Tokens a sequence may hold, prompt and output. */
  readonly contextLength: number;
  /** As in EngineFacts. */
  readonly requestTokens?: number | undefined;
  readonly loadMs: number;
  /** The part of loadMs in which kernels were compiled and ran once. */
  readonly compileMs: number;
  readonly device: DeviceInfo;
  readonly core: Runner;
  readonly outputs: OutputConfig;
  readonly counts: Readonly<SchedulerCounts>;
  /** What is kept of earlier requests. */
  readonly cache: PrefixCache;
  readonly speculation: Speculation;
  readonly costs: EngineCosts;
  /** Tokens of a prompt between two rounds. */
  readonly chunkRows: number;
  /** What rounds cost, in a line, where that was measured for the policy. */
  readonly costsLine: string | undefined;
  /** Of a request that asks for no number of steps. */
  readonly tier: DraftShape;
  /** The tiers that were built and the bytes they add. */
  readonly tiers: { readonly shapes: readonly DraftShape[]; readonly bytes: number };
  /**
   * Runs a request beside all others and yields its events; see EngineLoop. Its text depends on
   * nothing but the request.
   */
  generate: EngineLoop["generate"];
  submit: EngineLoop["submit"];
  /** Resolves once no request is in flight. */
  idle: EngineLoop["idle"];
}

/**
 * Opens device and models, loads the weights and makes the programs of prompts and of the tier that
 * requests get by default, where the policy is adaptive of all tiers; others when a round wants them.
 *
 * @throws UsageError when there is no adapter, a checkpoint cannot be used or the GPU's memory is
 * too small: before loading where its size is known, else when a buffer cannot be allocated.
 */
export async function openEngine(
  options: OpenOptions,
  machine: Machine = { openGpu, gpuMemory },
): Promise<Engine> {
  const started = performance.now();
  using stack = new DisposableStack();
  const { random, drafter = drafterOf(options) } = options;
  if (drafter) checkDrafter(drafter, options);
  const predicting = drafter === undefined && options.predictions ? predictionDrafter() : undefined;
  checkCosts(options.costs);
  using models = random ? openRandomModels(random, options.algorithm) : openModels(options);
  checkQuantize(options);
  const warnings = [...models.warnings, ...quantizeWarnings(models, options)];
  for (const line of warnings) options.onWarning?.(line);
  const { checkpoint, config } = models.target;
  const contextLength = contextOf(options.contextLength, config.maxPositions);
  const text = random ? noText(checkpoint.name) : openText(checkpoint, {
    vocabSize: config.vocabSize,
    onWarning: options.onWarning,
    allowSpecial: options.allowSpecial,
  });
  const device = models.draft?.config.algorithm ?? "NONE";
  const algorithm = drafter?.name ?? device;
  const { architecture } = config;
  const plan = planOf(options, { algorithm: device, architecture, drafter });
  const { tiers, warmed = [plan.tier], confident } = plan;
  const tier = models.draft ? plan.tier : drafter?.shapes.at(-1) ?? plan.tier;
  const acceptThresholds = relaxing(options.acceptThresholds);
  if (options.rejection) {
    checkRejection(options.rejection, device, tiers, acceptThresholds);
  }
  const gpu = stack.use(await machine.openGpu(options));
  const predicted = predicting?.shapes;
  const settings = { ...options, drafter, predicted, contextLength, tiers, confident };
  const capacity = capacityOf(settings, gpu, allLayers(models));
  const plain = capacityOf({ ...settings, tiers: [chain(0)] }, gpu, allLayers(models));
  const { onWarning = () => {} } = options;
  const elasticDraft = options.elasticDraft && mayLeave(device, capacity.shapes, onWarning);
  const relaxed = acceptThresholds !== undefined;
  const allocated = { ...settings, elasticDraft, relaxed };
  const paper = openPaper(models, allocated, gpu);
  const loading = { ...options, elasticDraft, measured: paper.measured };
  const asked = { models, settings: allocated, gpu, paper };
  await checkMemory(asked, machine.gpuMemory);
  const { core, compileMs, tuned, units } = await loadOrAdvise(asked, async () => {
    const loaded = random
      ? await loadRandomWeights(gpu, models, RANDOM_SEED, loading)
      : await loadWeights(gpu, models, loading);
    const { weights, report } = await tuneWeights(gpu, loaded, options);
    const opened = await openRunner(gpu, weights, capacity, {
      profile: options.profile ?? false,
      ...options.mail ? { mail: options.mail } : {},
      ...options.simulateAcceptance ? { acceptance: options.simulateAcceptance } : {},
      thresholds: acceptThresholds,
      meanwhile: drafter?.meanwhile &&
        observer(`the drafter "${drafter.name}"`, drafter.meanwhile, onWarning),
      onCompile: ({ done, total }) =>
        options.onProgress?.({ label: "kernels", unit: "kernels", bytes: done, total }),
    });
    const warming = performance.now();
    await opened.warmUp(warmed);
    if (plan.packs) await opened.warmUpPacked(warmed);
    if (drafter) await opened.warmUp([chain(0), ...drafter.shapes], true, warmed);
    const compileMs = performance.now() - warming;
    return { core: opened, compileMs, tuned: report, units: unitsReport(gpu, weights, capacity) };
  });
  const { name } = checkpoint;
  const { eosTokenIds, vocabSize } = config;
  const { tokenizer, reasoning } = text;
  const limits = { contextLength, tier };
  const outputs = {
    tokenizer,
    tokens: text.tokens,
    reasoning,
    name,
    vocabSize,
    eosTokenIds,
    algorithm,
    ...limits,
  };
  const { onRound, roundsPerSync = "auto", residency } = options;
  const cache = options.prefixCache === false ? noPrefixCache() : cacheOf(core, device);
  const chunkRows = gpu.info.software ? SOFTWARE_CHUNK_ROWS : capacity.prefillRows;
  const weights = weightReport(models, options, paper.measured.tensorBytes);
  const costs = openCosts({
    core,
    chunkRows,
    depths: depthsOf(tiers),
    choice: options.costs,
    of: costsOf(models, {
      gpu,
      weights,
      kvDtype: capacity.kvDtype,
      precision: options.precision,
      maxBatch: options.maxBatch,
    }),
    ...options.onWarning ? { onWarning: options.onWarning } : {},
  });
  stack.defer(() => costs.keep());
  const measured = plan.costs && costs.table === undefined && options.costs !== "off"
    ? await costs.measure({ seconds: QUICK_SECONDS })
    : undefined;
  const speculation = learningCosts(plan.speculation, costs);
  const grammars = lazyGrammars({ tokens: text.tokens, vocabSize, eosTokenIds });
  stack.defer(grammars.close);
  const scheduler = openScheduler({
    core,
    cache,
    outputs,
    speculation,
    grammars,
    roundsPerSync,
    drafter: drafter ?? predicting,
    chunkRows,
    costs: () => costs.table,
    onPrefill: learnPrefill(costs),
    ...onRound ? { onRound } : {},
    ...residency ? { residency } : {},
    onWarning,
    mail: options.mail,
  });
  const { generate, submit, idle, close } = engineLoop(scheduler);
  stack.defer(close);
  const owned = stack.move();
  return {
    name,
    draftName: models.draft?.checkpoint.name,
    algorithm,
    weights,
    tuned,
    units,
    kvDtype: capacity.kvDtype,
    requestTokens: mostTokens(capacity),
    acceptThresholds,
    contextLength,
    loadMs: performance.now() - started,
    compileMs,
    device: gpu.info,
    core,
    outputs,
    counts: scheduler.counts,
    cache,
    speculation,
    costs,
    chunkRows,
    costsLine: measured && costsLine(measured, depthsOf(tiers)),
    tier,
    tiers: {
      shapes: tiers,
      bytes: paper.need(capacity).scratch - paper.need(plain).scratch,
    },
    ...text,
    generate,
    submit,
    idle,
    [Symbol.dispose]: () => owned.dispose(),
  };
}

/** Draft levels of the chains among the tiers, rising. */
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
