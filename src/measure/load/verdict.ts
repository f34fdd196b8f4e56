import { ratioText } from "../formats.ts";
import type { Ratio } from "../statistics.ts";
import { tooFewText } from "../verdict_text.ts";
import type { LoadRow } from "./row.ts";
import { latency, type LoadSummary, paired, throughput } from "./summary.ts";

/** The measure that decides the verdict under a load; a larger `gain` is better. */
interface Measure {
  readonly name: string;
  readonly value: (row: LoadRow) => number;
  /** The ratio to the first policy, as the table shows it. */
  readonly ratioOf: (one: LoadSummary) => Ratio | null;
  readonly gain: (ratio: Ratio) => Ratio;
}

const THROUGHPUT: Measure = {
  name: "tokens/s",
  value: throughput,
  ratioOf: ({ throughputRatio }) => throughputRatio,
  gain: (ratio) => ratio,
};
/** The measure of open loops, where all policies that keep up with the arrivals have the same tokens/s. */
const LATENCY: Measure = {
  name: "mean E2E",
  value: latency,
  ratioOf: ({ latencyRatio }) => latencyRatio,
  gain: ({ ratio, low, high }) => ({
    ratio: 1 / ratio,
    low: high === null ? null : 1 / high,
    high: low === null ? null : 1 / low,
  }),
};

/** A policy compared with the first one. */
interface Standing extends Pick<LoadSummary, "label" | "rows"> {
  /** The ratio as the table shows it: `0.71x [0.65, 0.78]`. */
  readonly text: string;
  /** The ratio turned so that above 1 is better than the first policy. */
  readonly gain: Ratio;
}

/**
 * One line for each load that names the fastest policy: by tokens/s in a closed loop, by mean end-to-end latency in an
 * open loop. A policy is shown to be faster than the first one if its 95 % interval lies beyond the noise, which is the
 * interval of the first policy against itself, widened to contain 1.
 */
export function loadVerdicts(all: readonly LoadSummary[]): string[] {
  return verdictsByLoad(all).map(({ load, text }) => `${load}: ${text}`);
}

/** The verdict of each load that has one. */
export function verdictsByLoad(
  all: readonly LoadSummary[],
): { readonly load: string; readonly text: string }[] {
  return [...Map.groupBy(all, ({ load }) => load)].flatMap(([load, ofLoad]) => {
    const text = verdictText(ofLoad);
    return text === undefined ? [] : [{ load, text }];
  });
}

/** The verdict in words; undefined if there is nothing to compare. */
function verdictText(all: readonly LoadSummary[]): string | undefined {
  const [base] = all;
  if (base === undefined) return undefined;
  const measure = base.rows[0]?.max_concurrency === null ? LATENCY : THROUGHPUT;
  const others = all.filter((one) => one !== base && !one.again)
    .flatMap((one) => standingOf(one, measure))
    .toSorted((a, b) => b.gain.ratio - a.gain.ratio);
  const [first] = others;
  if (first === undefined) return undefined;
  if (others.some(({ gain }) => gain.low === null)) {
    return `no verdict: ${tooFewText(Math.min(...all.map(({ rows }) => rows.length)))}`;
  }
  const again = all.find((one) => one.again);
  const noise = again && standingOf(again, measure)[0];
  const low = Math.min(1, noise?.gain.low ?? 1);
  const high = Math.max(1, noise?.gain.high ?? 1);
  const beyond = `${base.label} against itself, ${noise?.text ?? "1.00x"}`;
  const best = others.find(({ gain }) => (gain.low ?? 0) > high);
  const place = ({ label, text }: Standing) => `${label}, ${measure.name} ${text} of ${base.label}`;
  if (best === undefined) {
    const open = others.find(({ gain }) => (gain.high ?? 0) >= low);
    if (open === undefined) {
      return `fastest is ${base.label}: all others are slower; the next is ${place(first)}`;
    }
    return `nothing is shown to be faster than ${base.label}: the best is ${
      place(open)
    }, and its ` +
      `interval overlaps the noise (${beyond}); --repeat ${2 * base.rows.length} narrows both`;
  }
  const tied = others.filter((one) =>
    one !== best && maySame(paired(one.rows, best.rows, measure.value))
  );
  return `fastest is ${place(best)}${tiedText(tied)}`;
}

function standingOf(one: LoadSummary, { ratioOf, gain }: Measure): Standing[] {
  const ratio = ratioOf(one);
  return ratio === null
    ? []
    : [{ label: one.label, rows: one.rows, text: ratioText(ratio), gain: gain(ratio) }];
}

/** Whether two policies may be the same, by the interval of the ratio between them. */
function maySame(ratio: Ratio | null): boolean {
  return (ratio?.low ?? 0) <= 1 && (ratio?.high ?? Infinity) >= 1;
}

function tiedText(tied: readonly Standing[]): string {
  if (tied.length === 0) return "";
  const names = tied.map(({ label, text }) => `${label} (${text})`).join(", ");
  return `; not shown to differ from it: ${names}`;
}
