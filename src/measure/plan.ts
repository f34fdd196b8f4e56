import { hash32 } from "../speculate/noise.ts";
import { distinctTiers, type DraftShape, tierText } from "../speculate/round_shape.ts";
import type { NamedPolicy } from "../engine/schedule/speculation_choice.ts";
import type { Case, CellSpec, Setting } from "./runner.ts";

/** A setting and the name that its rows have. */
export interface Arm {
  readonly label: string;
  readonly setting: Setting;
}

/** What a sweep measures: in each case all arms, `blocks` times, in an order that is drawn for each block. */
export interface Plan {
  readonly cases: readonly Case[];
  /** The first is plain decoding, the second is plain decoding again (A/A). */
  readonly arms: readonly Arm[];
  readonly blocks: number;
  readonly seed: number;
}

/** The name of plain decoding, with which the other rows are compared. */
export const PLAIN = "plain";
/** The name of plain decoding measured again. The distance of its speed-up from 1 is noise. */
export const PLAIN_AGAIN = "plain (A/A)";

/** The arms of a sweep. 0 steps are plain decoding, which is always measured. */
export function armsOf(
  { numSteps, trees = [], policies = [] }: {
    readonly numSteps: readonly number[];
    readonly trees?: readonly DraftShape[];
    /** Policies, each with the text that names it. */
    readonly policies?: readonly (readonly [text: string, policy: NamedPolicy])[];
  },
): Arm[] {
  const fixed = [...new Set(numSteps)].filter((steps) => steps > 0).sort((a, b) => a - b);
  return [
    { label: PLAIN, setting: { kind: "plain" } },
    { label: PLAIN_AGAIN, setting: { kind: "plain" } },
    ...fixed.map((steps): Arm => ({
      label: `${steps} step${steps === 1 ? "" : "s"}`,
      setting: { kind: "static", numSteps: steps },
    })),
    ...distinctTiers(trees).map((tier): Arm => ({
      label: `tree ${tierText(tier)}`,
      setting: { kind: "tree", tier },
    })),
    ...[...new Map(policies)].map(([text, policy]): Arm => ({
      label: `policy ${text}`,
      setting: { kind: "policy", policy },
    })),
  ];
}

/** The arms in the order of one block: a Fisher-Yates shuffle keyed by seed, case and block. */
export function blockOrder<One>(
  arms: readonly One[],
  { seed, caseIndex, block }: { seed: number; caseIndex: number; block: number },
): One[] {
  const order = [...arms];
  const key = hash32(seed, caseIndex, block);
  for (let last = order.length - 1; last > 0; last--) {
    const at = hash32(key, last, 0) % (last + 1);
    [order[last], order[at]] = [order[at] as One, order[last] as One];
  }
  return order;
}

/** The measurement of an arm in a block. All arms of a block share a seed, at every batch size. */
export function cellSpec(
  one: Case,
  { setting, block, seed }: { setting: Setting; block: number; seed: number },
): CellSpec {
  return { ...one, setting, repeat: block, seed: hash32(seed, block, 0) };
}

/** Tokens of an answer while warming up: enough for a few rounds of the deepest tier. */
const WARM_UP_TOKENS = 16;

/** A short cell that fills caches and raises clocks; its result is not used. */
export function warmUpSpec(one: Case, setting: Setting, seed: number): CellSpec {
  const outputTokens = Math.min(one.outputTokens, WARM_UP_TOKENS);
  return { ...one, outputTokens, setting, repeat: -1, seed: hash32(seed, 0, 0) };
}

/** A case in words, for messages: `batch 2, 64 output tokens, temperature 0`. */
export function caseText(one: Case): string {
  return [
    `batch ${one.batch}`,
    ...one.promptTokens === undefined ? [] : [`${one.promptTokens} prompt tokens`],
    `${one.outputTokens} output tokens`,
    `temperature ${one.temperature}`,
    ...one.depth === 0 ? [] : [`depth ${one.depth}`],
    ...typeof one.roundsPerSync === "number" ? [`${one.roundsPerSync} rounds a sync`] : [],
  ].join(", ");
}
