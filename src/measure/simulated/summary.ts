import type { ArmKind, ArmResult } from "../../simulate/compare/compare.ts";
import type { SimulationResult } from "../../simulate/run/tally.ts";
import { average, pairedRatio, type Percentiles, percentiles, type Ratio } from "../statistics.ts";

/** The results of one policy in one world, over all repeats. Its JSON is a public format. */
export interface SimulatedRow {
  readonly policy: string;
  readonly kind: ArmKind;
  /** Tokens per second, mean over the repeats. */
  readonly throughput: number;
  /** Throughput over that of the best static depth, paired by repeat. */
  readonly relative: Ratio;
  /** 1 - throughput / throughput of each oracle. */
  readonly regret: Regret;
  /** Tokens that the dynamic oracle generates more in the same time. */
  readonly regret_tokens: number;
  readonly rounds: number;
  readonly switches: number;
  readonly mean_depth: number;
  /** Null if there was no round. */
  readonly mean_accept_length: number | null;
  readonly mean_batch: number;
  readonly preemptions: number;
  readonly waits: number;
  readonly catch_ups: number;
  readonly catch_up_ms: number;
  readonly completed: number;
  readonly ttft_ms: Percentiles;
  readonly tpot_ms: Percentiles;
  readonly e2e_ms: Percentiles;
  /** Rounds by depth. */
  readonly rounds_by_depth: Readonly<Record<string, number>>;
}

/** Regret to each of three oracles. */
export interface Regret {
  /** Regret to the oracle that knows the acceptance probability of every draft. */
  readonly dynamic: number;
  /** Regret to the best depth for each batch size. */
  readonly per_batch: number;
  /** Regret to the best single depth. */
  readonly static: number;
}

/** The results of all policies in one world. */
export interface SimulatedTable {
  readonly world: string;
  readonly about: string;
  readonly best_static: string;
  /** The rows, with the given policies first. */
  readonly rows: readonly SimulatedRow[];
}

/**
 * The table of one world.
 *
 * @param repeats results of the arms in the same world with different seeds, [repeats][arms].
 */
export function simulatedTable(
  repeats: readonly (readonly ArmResult[])[],
  { world, about }: Pick<SimulatedTable, "world" | "about">,
): SimulatedTable {
  const [first = []] = repeats;
  const arms = first.map(({ arm }, at) => ({
    arm,
    results: repeats.map((repeat) => (repeat[at] as ArmResult).result),
  }));
  const named = (name: string) =>
    arms.find(({ arm }) => arm.name === name && arm.kind === "oracle");
  const statics = arms.filter(({ arm }) => arm.kind === "static");
  const best = statics.toSorted((a, b) => mean(b.results) - mean(a.results))[0] ?? arms[0];
  if (best === undefined) throw new Error("no arm ran");
  const references = {
    dynamic: (named("oracle") ?? best).results,
    per_batch: (named("oracle:batch") ?? best).results,
    static: best.results,
  };
  const rows = arms.map(({ arm, results }) =>
    rowOf({ policy: arm.name, kind: arm.kind }, results, references)
  );
  return { world, about, best_static: best.arm.name, rows };
}

function rowOf(
  of: Pick<SimulatedRow, "policy" | "kind">,
  results: readonly SimulationResult[],
  references: { readonly [Key in keyof Regret]: readonly SimulationResult[] },
): SimulatedRow {
  const throughput = mean(results);
  // Where nothing takes time there is no throughput, and no regret: prompts of the toy machine, one-token answers.
  const regret = (reference: readonly SimulationResult[]) =>
    throughput === mean(reference) ? 0 : 1 - throughput / mean(reference);
  const averaged = (of: (result: SimulationResult) => number) => average(results.map(of));
  const lengths = results.flatMap(({ meanAcceptLength }) => meanAcceptLength ?? []);
  const finished = results.flatMap(({ finished }) => finished);
  return {
    ...of,
    throughput,
    relative: pairedRatio(
      results.map(({ throughput }, at) =>
        Math.log(throughput / (references.static[at]?.throughput ?? throughput))
      ),
    ),
    regret: {
      dynamic: regret(references.dynamic),
      per_batch: regret(references.per_batch),
      static: regret(references.static),
    },
    regret_tokens: average(
      results.map(({ throughput, ms }, at) =>
        ((references.dynamic[at]?.throughput ?? throughput) - throughput) * ms / 1000
      ),
    ),
    rounds: averaged(({ rounds }) => rounds),
    switches: averaged(({ switches }) => switches),
    mean_depth: averaged(({ meanDepth }) => meanDepth),
    mean_accept_length: lengths.length === 0 ? null : average(lengths),
    mean_batch: averaged(({ meanBatch }) => meanBatch),
    preemptions: averaged(({ preemptions }) => preemptions),
    waits: averaged(({ waits }) => waits),
    catch_ups: averaged(({ catchUps }) => catchUps),
    catch_up_ms: averaged(({ catchUpMs }) => catchUpMs),
    completed: averaged(({ finished }) => finished.length),
    ttft_ms: percentiles(finished.map(({ ttftMs }) => ttftMs)),
    tpot_ms: percentiles(finished.flatMap(({ tpotMs }) => tpotMs ?? [])),
    e2e_ms: percentiles(finished.map(({ e2eMs }) => e2eMs)),
    rounds_by_depth: roundsByDepth(results),
  };
}

function mean(results: readonly SimulationResult[]): number {
  return average(results.map(({ throughput }) => throughput));
}

function roundsByDepth(results: readonly SimulationResult[]): Record<string, number> {
  const rounds: Record<string, number> = {};
  for (const { depths } of results) {
    for (const { depth, rounds: count } of depths) {
      rounds[depth] = (rounds[depth] ?? 0) + count / results.length;
    }
  }
  return rounds;
}
