import { defined } from "../../defined.ts";
import { type Arrival, closedLoop, type Extent } from "../../arrivals/arrival.ts";
import { openLoop } from "../../arrivals/open_loop.ts";
import { constantRate, parseSchedule } from "../../arrivals/schedule.ts";
import { readTrace } from "../../arrivals/trace.ts";
import type { AcceptanceModel } from "../../simulate/acceptance/model.ts";
import { acceptanceOf } from "../../simulate/acceptance/text.ts";
import type { World } from "../../simulate/compare/compare.ts";
import { fixedBatch, type Scenario, SCENARIOS, staged } from "../../simulate/compare/scenario.ts";
import { SCENARIO_NAMES } from "../../simulate/compare/scenario_names.ts";
import type { RecordedMachine } from "../../simulate/compare/recording.ts";
import { UsageError } from "../../errors.ts";
import type { PriceSource } from "../../simulate/costs/machine_prices.ts";
import { closedSource, openSource, type Source } from "../../simulate/run/source.ts";
import type { Machine } from "../../simulate/run/simulation.ts";
import { readNamed } from "../bench/files.ts";
import { requestRateOf } from "../options/measure/request_rate_option.ts";
import { traceOf } from "../options/measure/trace_option.ts";
import type { SimulateOptions } from "../options/options.ts";
import { ownAcceptance, type Recorded, replayOf } from "./recorded.ts";

/** A kind of world; each repeat has its own. */
export interface WorldKind {
  readonly name: string;
  readonly about: string;
  /** @param seed u32 of the repeat. */
  make(seed: number): World;
}

const DEFAULT_BATCH = 8;
const DEFAULT_CHUNK = 256;
const DEFAULT_REQUESTS = 256;
const DEFAULT_ROUNDS = 3000;
const DEFAULT_ACCEPTANCE = "geometric:0.7,spread=0.6,tokens=1";

/** The worlds that the flags ask for. @throws UsageError */
export function worldsOf(
  options: SimulateOptions,
  { prices, recorded }: { readonly prices: PriceSource; readonly recorded: Recorded | undefined },
): WorldKind[] {
  const { requestRate, trace, concurrency, batches } = options;
  const models = acceptancesOf(options, recorded);
  if (batches !== undefined) {
    const all = models.flatMap((model) =>
      batches.map((batch) => {
        const scenario = fixedBatch(batch, model);
        return models.length > 1 ? { ...scenario, name: `${batch}, ${model.name}` } : scenario;
      })
    );
    return all.map((scenario) => scenarioWorld(scenario, options, prices));
  }
  const loaded = recorded ?? requestRate ?? trace ?? concurrency;
  return loaded === undefined
    ? scenariosOf(options, prices)
    : models.map((acceptance) => loadWorld(options, { prices, recorded, acceptance }));
}

/** @throws UsageError */
function acceptancesOf(
  { acceptance = DEFAULT_ACCEPTANCE }: SimulateOptions,
  recorded: Recorded | undefined,
): AcceptanceModel[] {
  if (recorded) return [ownAcceptance(recorded)];
  return acceptance.split(";").map((text) => acceptanceOf(text.trim(), replayOf));
}

function scenariosOf(options: SimulateOptions, prices: PriceSource): WorldKind[] {
  const { scenario: names } = options;
  const all = names.length === 0 || names.includes("all");
  const known: readonly string[] = ["all", ...SCENARIO_NAMES];
  const unknown = names.find((name) => !known.includes(name));
  if (unknown !== undefined) {
    throw new UsageError(`Cannot use "--scenario ${unknown}": allowed is ${known.join(", ")}`);
  }
  return SCENARIOS.filter(({ name }) => all || names.includes(name))
    .map((scenario) => scenarioWorld(scenario, options, prices));
}

function scenarioWorld(
  scenario: Scenario,
  options: SimulateOptions,
  prices: PriceSource,
): WorldKind {
  const { rounds = DEFAULT_ROUNDS } = options;
  const { name, about } = scenario;
  return {
    name,
    about,
    make(seed) {
      // A table of rates needs the acceptance, which repeats itself: any unit of time will do.
      const tokens = 2 * rounds * scenario.typicalBatch;
      const pricing = prices(scenario.acceptance(1), { tokens, seed });
      const { source, acceptance, maxBatch, until } = staged(scenario, pricing, { rounds, seed });
      // With several rounds per sync, the batch of a group of rounds would outlive its time.
      const machine = machineOf(options, { maxBatch, roundsPerSync: 1 });
      return { pricing, source, acceptance, machine, until, seed };
    },
  };
}

/** @param usual values for flags that were not given. */
function machineOf(options: SimulateOptions, usual: Partial<RecordedMachine>): Machine {
  const { noise, confidenceNoise } = options;
  return {
    maxBatch: options.maxBatch ?? usual.maxBatch ?? DEFAULT_BATCH,
    kvTokens: options.maxKvTokens ?? usual.kvTokens ?? Infinity,
    chunkRows: options.prefillRows ?? usual.prefillRows ?? DEFAULT_CHUNK,
    maxBatchedRows: options.prefillRows === undefined ? usual.maxBatchedRows : undefined,
    sloItlMs: usual.sloItlMs,
    roundsPerSync: options.roundsPerSync ?? usual.roundsPerSync ?? "auto",
    noise,
    confidenceNoise,
  };
}

function loadWorld(
  options: SimulateOptions,
  { prices, recorded, acceptance }: {
    readonly prices: PriceSource;
    readonly recorded: Recorded | undefined;
    readonly acceptance: AcceptanceModel;
  },
): WorldKind {
  const { rounds } = options;
  const load = recorded ? recordedLoad(recorded) : loadOf(options);
  return {
    name: load.name,
    about: `acceptance ${acceptance.name}`,
    make: (seed) => ({
      pricing: prices(acceptance, { tokens: 0, seed }),
      acceptance,
      seed,
      source: () => load.source(seed),
      machine: machineOf(options, recorded?.recording.machine ?? {}),
      until: rounds === undefined ? {} : { rounds },
    }),
  };
}

interface Load {
  readonly name: string;
  source(seed: number): Source;
}

function recordedLoad({ recording: { requests }, path }: Recorded): Load {
  const sorted = requests.map((request, seed) => ({ ...request, seed }))
    .toSorted((a, b) => a.atMs - b.atMs);
  const first = sorted[0]?.atMs ?? 0;
  const arrivals = sorted.map((request) => ({ ...request, atMs: request.atMs - first }));
  return { name: path, source: () => openSource(arrivals, { promptTokens: 1, outputTokens: 1 }) };
}

function loadOf(options: SimulateOptions): Load {
  const { promptTokens, outputTokens, concurrency, trace, burstiness } = options;
  const lengths = { promptTokens, outputTokens };
  const extent = extentOf(options);
  if (concurrency !== undefined) {
    const { requests = DEFAULT_REQUESTS } = extent;
    return {
      name: `closed loop of ${concurrency}`,
      source: (seed) => closedSource(closedLoop({ seed, requests }), concurrency, lengths),
    };
  }
  const { name, arrivals } = trace === undefined
    ? ratedArrivals(options.requestRate ?? "1", { burstiness, extent })
    : tracedArrivals(trace, extent);
  return {
    name,
    source(seed) {
      const list = arrivals(seed);
      if (list.length > 0) return openSource(list, lengths);
      throw new UsageError(
        `Cannot simulate "${name}": no request arrives with seed ${seed}; give a longer --duration`,
      );
    },
  };
}

/** The arrivals of an open loop by seed. */
interface Arrivals {
  readonly name: string;
  arrivals(seed: number): Arrival[];
}

function tracedArrivals(trace: string, extent: Extent): Arrivals {
  const { path, timeScale } = traceOf(trace, ["time"]) ?? { path: trace, timeScale: 1 };
  const text = readNamed(path);
  return {
    name: trace,
    arrivals: (seed) => readTrace(text, { path, seed, timeScale, ...extent }),
  };
}

function ratedArrivals(
  requestRate: string,
  { burstiness, extent }: { readonly burstiness: number; readonly extent: Extent },
): Arrivals {
  const rate = requestRateOf(requestRate);
  const [perSecond = 1] = rate?.kind === "constant" ? rate.perSecond : [];
  const schedule = rate?.kind === "schedule" ? parseSchedule(requestRate) : constantRate(perSecond);
  return {
    name: rate?.kind === "schedule" ? `rates ${requestRate}` : `${perSecond} requests/s`,
    arrivals: (seed) => openLoop({ schedule, seed, burstiness, ...extent }),
  };
}

function extentOf({ numRequests, duration, trace }: SimulateOptions): Extent {
  const durationMs = duration === undefined ? undefined : duration * 1000;
  const whole = trace === undefined && duration === undefined;
  const requests = numRequests ?? (whole ? DEFAULT_REQUESTS : undefined);
  return {
    ...defined({ requests, durationMs }),
  };
}
