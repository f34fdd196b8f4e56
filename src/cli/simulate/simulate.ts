import { type SimulatedTable, simulatedTable } from "../../measure/simulated/summary.ts";
import { simulatedTerminal, simulatedText } from "../../measure/simulated/text.ts";
import {
  type Arm,
  type ArmResult,
  armsOf,
  compare,
  DEPTH_ORACLE,
  isPriced,
  ORACLE,
  policyArm,
} from "../../simulate/compare/compare.ts";
import { measuredThroughput } from "../../simulate/compare/recording.ts";
import { pricesOf, type PriceSource } from "../../simulate/costs/machine_prices.ts";
import { POLICIES } from "../../speculate/policies/registry.ts";
import type { SimulateOptions } from "../options/options.ts";
import { policyOf, policyTexts } from "../options/policy_option.ts";
import { INTERRUPTED, type Io } from "../terminal/io.ts";
import { optionalOutput } from "../terminal/output_file.ts";
import { type StatusLine, statusLine } from "../terminal/progress.ts";
import { warn } from "../terminal/warn.ts";
import { namedPrices } from "./costs.ts";
import { readRecorded, type Recorded } from "./recorded.ts";
import { type WorldKind, worldsOf } from "./worlds.ts";

/** Lets the event loop run between arms, so that Ctrl+C is noticed. */
const heard = () => new Promise<void>((resolve) => setTimeout(resolve, 0));

/** `eyrie simulate`: policies side by side in simulated worlds. */
export async function runSimulate(options: SimulateOptions, io: Io): Promise<number> {
  const { format, repeat: repeats, seed, quiet } = options;
  const recorded = options.recorded === undefined ? undefined : readRecorded(options.recorded);
  const { costs, prices } = pricesFor(options.costs, recorded);
  const worlds = worldsOf(options, { prices, recorded });
  const ran = recorded?.recording.machine?.policy;
  const { policies, unpriced } = policiesOf(options.policies, ran, worlds[0]);
  if (unpriced.length > 0) {
    const names = unpriced.join(", ");
    warn(`left out, because they draft steps that the cost table lacks: ${names}`, { io, quiet });
  }
  const file = optionalOutput(options.output, options);
  const status = statusLine(io.stderr, { shown: !quiet });
  const tables: SimulatedTable[] = [];
  for (const world of worlds) {
    const found = await runWorld(world, { policies, options, status, io });
    if (found === undefined) {
      status.clear();
      return INTERRUPTED;
    }
    tables.push(simulatedTable(found, { world: world.name, about: world.about }));
  }
  status.clear();
  const [first] = tables[0]?.rows ?? [];
  const measured = recorded && measuredThroughput(recorded.recording);
  const simulated = first?.throughput ?? 0;
  const facts = { costs, repeats, seed };
  const validation = measured === undefined ? {} : {
    validation: { policy: first?.policy, simulated, measured, ratio: simulated / measured },
  };
  const fits = io.stdout.isTerminal && format === undefined && file === undefined;
  const tablesText = () =>
    fits
      ? simulatedTerminal(tables, facts, { columns: io.stdout.columns() })
      : simulatedText(tables, facts);
  const text = format === "json"
    ? `${JSON.stringify({ ...facts, ...validation, tables }, null, 2)}\n`
    : tablesText() +
      (measured === undefined ? "" : validationText({ ...first, simulated, measured }));
  if (file === undefined) io.stdout.write(text);
  else file.write(text);
  return 0;
}

function validationText(
  { policy = "", simulated, measured }: {
    readonly policy?: string;
    readonly simulated: number;
    readonly measured: number;
  },
): string {
  const off = 100 * (simulated / measured - 1);
  return `\n${policy}: simulated ${simulated.toFixed(1)} tok/s, measured ${measured.toFixed(1)} ` +
    `tok/s, ${off >= 0 ? "+" : ""}${off.toFixed(1)} %\n`;
}

/** The result of every arm, by repeat; undefined where it was interrupted. */
async function runWorld(
  world: WorldKind,
  { policies, options: { repeat, seed }, status, io }: {
    readonly policies: readonly Arm[];
    readonly options: SimulateOptions;
    readonly status: Pick<StatusLine, "simulate">;
    readonly io: Io;
  },
): Promise<ArmResult[][] | undefined> {
  const found: ArmResult[][] = [];
  for (let at = 0; at < repeat; at++) {
    const made = world.make((seed + at) >>> 0);
    const arms = armsOf(policies, made.pricing);
    const results: ArmResult[] = [];
    for (const result of compare(made, arms)) {
      results.push(result);
      status.simulate(world.name, at * arms.length + results.length, repeat * arms.length);
      await heard();
      if (io.signal.aborted) return undefined;
    }
    found.push(results);
  }
  return found;
}

/** All registered policies under their first names, except static: its depths are compared anyway. */
function distinctPolicies(): string[] {
  const kinds = Object.entries(POLICIES);
  return kinds.filter(([name, kind], at) =>
    name !== "static" && kinds.findIndex(([, each]) => each === kind) === at
  ).map(([name]) => name);
}

/** The prices that `costs` names, or else those of the recording, or of the toy machine. */
function pricesFor(
  asked: string | undefined,
  recorded: Recorded | undefined,
): { readonly costs: string; readonly prices: PriceSource } {
  const own = recorded?.recording.machine?.costs ?? undefined;
  if (asked === undefined && recorded && own) {
    return { costs: recorded.path, prices: pricesOf(own) };
  }
  const costs = asked ?? "toy";
  return { costs, prices: namedPrices(costs) };
}

/**
 * The policies that are given, else the one that ran where a recording names it, else all whose steps have costs in
 * the world, and the others.
 */
function policiesOf(
  given: readonly string[],
  recorded: string | undefined,
  kind: WorldKind | undefined,
): { readonly policies: readonly Arm[]; readonly unpriced: readonly string[] } {
  const asked = given.length > 0 ? policyTexts(given) : recorded === undefined ? [] : [recorded];
  if (asked.length > 0) return { policies: policyArms(asked), unpriced: [] };
  const world = kind?.make(0);
  const { priced = [], unpriced = [] } = Object.groupBy(
    distinctPolicies(),
    (name) => world === undefined || isPriced(name, world) ? "priced" : "unpriced",
  );
  return { policies: policyArms(priced), unpriced };
}

const ORACLES = [ORACLE, DEPTH_ORACLE];

function policyArms(names: readonly string[]): Arm[] {
  return [...new Set(names)].map((text) => {
    const oracle = ORACLES.find(({ name }) => name === text);
    if (oracle !== undefined) return oracle;
    const { policy, options } = policyOf(text, "--policy", ORACLES.map(({ name }) => name));
    return policyArm(policy, options ?? {}, text);
  });
}
