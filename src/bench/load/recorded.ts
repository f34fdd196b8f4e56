import type { Recording } from "../../simulate/compare/recording.ts";
import type { LoadCellSpec } from "./plan.ts";
import type { LoadCellResult } from "./session.ts";

/**
 * A measurement as `eyrie simulate --recorded` reads it; undefined where no rounds were seen.
 *
 * @param policy as `--policies` takes it.
 */
export function recordingOf(
  { requests, rounds, machine }: LoadCellResult,
  policy: string,
): Recording | undefined {
  if (rounds.length === 0) return undefined;
  return {
    ...machine && { machine: { policy, ...machine } },
    requests: requests.map(({ dueMs, promptTokens, outputTokens, cachedTokens }) => (
      { atMs: dueMs, promptTokens, outputTokens, ...cachedTokens ? { cachedTokens } : {} }
    )),
    rounds: rounds.map(({ beganMs, ms, numSteps, batch, requests, drafts, accepted }) => (
      { tMs: beganMs + ms, batch, numSteps, accepted, ms, drafted: drafts, requests }
    )),
  };
}

/** Name of a measurement's file: load, policy and block, such as `4-req-s_ema_1.jsonl`. */
export function recordingName({ one, arm, block }: LoadCellSpec): string {
  const plain = (text: string) => text.replaceAll(/[^\w.=]+/g, "-").replaceAll(/^-|-$/g, "");
  return `${plain(one.name)}_${plain(arm.label)}_${block + 1}.jsonl`;
}
