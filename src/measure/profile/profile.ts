import type { PartSamples } from "../../engine/check/profile.ts";
import { median, sum } from "../statistics.ts";

/** All dispatches of a part that have one label (layers taken together) and one kernel. */
export interface ProfileRow {
  readonly part: PartSamples["part"];
  /** "layers.*.qkv" */
  readonly label: string;
  readonly kernel: string;
  /** Dispatches a round. */
  readonly calls: number;
  /** Median device time of a dispatch, microseconds. */
  readonly us: number;
  /** Device time a round, the median over rounds. */
  readonly ms: number;
  /** Of the part's sum, 0 to 1. */
  readonly share: number;
  /** At least moved a round; null where no kernel said. */
  readonly bytes: number | null;
  readonly flops: number | null;
  /** 10^9 a second. */
  readonly gbps: number | null;
  readonly gflops: number | null;
  /** Time that `bytes` take at full bandwidth over the time taken, 0 to 1. */
  readonly ofFloor: number | null;
}

export interface ProfilePart {
  readonly part: PartSamples["part"];
  readonly dispatches: number;
  /** Sum of the dispatches' times, each in a pass of its own; the median over rounds. */
  readonly kernelMs: number;
  /** All dispatches in one pass: with the gaps between them, without the passes' own cost. */
  readonly passMs: number;
  /** Time that the bytes of all dispatches take at full bandwidth, where that is known. */
  readonly floorMs: number | null;
  /** Longest first. */
  readonly rows: readonly ProfileRow[];
}

/** "layers.3.qkv" is "layers.*.qkv": numbers that count layers or steps go. */
export function withoutNumbers(label: string): string {
  return label.replaceAll(/\.\d+(?=\.|$)/g, ".*");
}

/** Sums a part's dispatches up by label and kernel; `bandwidth` in 10^9 bytes a second. */
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

/** Null where no launch of the group said. */
function total<K extends "bytes" | "flops">(
  group: readonly { readonly [key in K]: number | undefined }[],
  key: K,
): number | null {
  const said = group.flatMap((launch) => launch[key] ?? []);
  return said.length === 0 ? null : sum(said);
}

/** Null where one of them is not known or took no time that the clock could see. */
function over(value: number | null, by: number): number | null {
  return value === null || by <= 0 ? null : value / by;
}
