import type { PartSamples } from "../../engine/check/profile.ts";
import { median, sum } from "../statistics.ts";

/** All dispatches of a part that have one label (layers taken together) and one kernel. */
export interface ProfileRow {
  readonly part: PartSamples["part"];
  /** The label with numbers of layers and steps replaced: `layers.*.qkv`. */
  readonly label: string;
  readonly kernel: string;
  /** Dispatches per round. */
  readonly calls: number;
  /** Median device time of a dispatch in microseconds. */
  readonly us: number;
  /** Median device time per round in milliseconds. */
  readonly ms: number;
  /** Share of the part's device time, 0 to 1. */
  readonly share: number;
  /** The least bytes moved per round; null if no kernel states them. */
  readonly bytes: number | null;
  readonly flops: number | null;
  /** 10^9 bytes per second. */
  readonly gbps: number | null;
  readonly gflops: number | null;
  /** Time for `bytes` at full bandwidth over the measured time, 0 to 1. */
  readonly ofFloor: number | null;
}

/** The dispatches of one part of a round, or of a prefill. */
export interface ProfilePart {
  readonly part: PartSamples["part"];
  readonly dispatches: number;
  /** Sum of the dispatches' times, each in a pass of its own; the median over rounds. */
  readonly kernelMs: number;
  /** Time of all dispatches in one pass: with the gaps between them, without the cost of a pass for each. */
  readonly passMs: number;
  /** Time for the bytes of all dispatches at full bandwidth; null if it is not known. */
  readonly floorMs: number | null;
  /** Longest first. */
  readonly rows: readonly ProfileRow[];
}

/** The label without the numbers of layers and steps: `layers.3.qkv` becomes `layers.*.qkv`. */
export function withoutNumbers(label: string): string {
  return label.replaceAll(/\.\d+(?=\.|$)/g, ".*");
}

/** Sums the dispatches of a part by label and kernel. `bandwidth` is in 10^9 bytes per second. */
export function profilePart(samples: PartSamples, bandwidth: number | undefined): ProfilePart {
  const { part, launches, launchMs, passMs } = samples;
  const kernelMs = median(launchMs.map(sum));
  const keyed = launches.map((launch, at) => ({
    ...launch,
    at,
    name: withoutNumbers(launch.label),
  }));
  const groups = Map.groupBy(keyed, ({ name, kernel }) => `${name} ${kernel}`);
  const rows = [...groups.values()].map((group): ProfileRow => {
    const { name, kernel } = group[0] as typeof keyed[number];
    const rounds = launchMs.map((ms) => group.map(({ at }) => ms[at] ?? 0));
    const ms = median(rounds.map(sum));
    const [bytes, flops] = [total(group, "bytes"), total(group, "flops")];
    return {
      part,
      label: name,
      kernel,
      calls: group.length,
      us: median(rounds.flat()) * 1000,
      ms,
      share: over(ms, kernelMs) ?? 0,
      bytes,
      flops,
      gbps: over(bytes, ms * 1e6),
      gflops: over(flops, ms * 1e6),
      ofFloor: over(bytes, ms * 1e6 * (bandwidth ?? 0)),
    };
  });
  return {
    part,
    dispatches: launches.length,
    kernelMs,
    passMs: median(passMs),
    floorMs: over(total(launches, "bytes"), 1e6 * (bandwidth ?? 0)),
    rows: rows.toSorted((a, b) => b.ms - a.ms),
  };
}

/** The sum over a group; null if no dispatch of it states the value. */
function total<K extends "bytes" | "flops">(
  group: readonly { readonly [key in K]: number | undefined }[],
  key: K,
): number | null {
  const said = group.flatMap((launch) => launch[key] ?? []);
  return said.length === 0 ? null : sum(said);
}

/** The quotient; null if the value is not known or the time is 0. */
function over(value: number | null, by: number): number | null {
  return value === null || by <= 0 ? null : value / by;
}
