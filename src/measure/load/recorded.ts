import { refinedTo } from "../../speculate/costs/refine.ts";
import type { CostTable } from "../../speculate/costs/table.ts";
import type { Recording } from "../../simulate/compare/recording.ts";
import type { LoadCellSpec } from "./plan.ts";
import type { LoadCellResult } from "./session.ts";

/**
 * A measurement in the format that `eyrie simulate --recording` reads; undefined if there are no rounds.
 *
 * @param policy in the syntax of `--policy`.
 */
export function recordingOf(
  result: LoadCellResult,
  policy: string,
): Recording | undefined {
  const { requests, rounds, machine } = result;
  if (rounds.length === 0) return undefined;
  return {
    ...machine && { machine: { policy, ...machine, costs: costsOf(result) } },
    requests: requests.map(({ dueMs, promptTokens = 0, outputTokens, cachedTokens }) => (
      { atMs: dueMs, promptTokens, outputTokens, ...cachedTokens ? { cachedTokens } : {} }
    )),
    rounds: rounds.map(({ beganMs, ms, numSteps, batch, requests, drafts, accepted }) => (
      { tMs: beganMs + ms, batch, numSteps, accepted, ms, drafted: drafts, requests }
    )),
  };
}

/** The cost table, refined so that it gives the mean times of this measurement. */
function costsOf({ machine, requests, rounds, prefills = [] }: LoadCellResult): CostTable | null {
  const costs = machine?.costs ?? null;
  if (costs === null) return null;
  const positions = requests.map(({ promptTokens = 0 }) => promptTokens);
  const priced = rounds.map((round) => {
    const { batch, numSteps: steps, together: roundsPerSync, requests, accepted, ms } = round;
    const drafts = round.drafts.reduce((a, b) => a + b, 0);
    const cells = requests.reduce((sum, request) => sum + (positions[request] ?? 0), 0);
    for (const [i, request] of requests.entries()) {
      positions[request] = (positions[request] ?? 0) + (accepted[i] ?? 0) + 1;
    }
    return { round: { batch, steps, cells, drafts, roundsPerSync }, ms };
  });
  return refinedTo(costs, { rounds: priced, prefills });
}

/** The name of a measurement's file, from load, policy and block: `4-req-s_ema_1.jsonl`. */
export function recordingName({ one, arm, block }: LoadCellSpec): string {
  const plain = (text: string) => text.replaceAll(/[^\w.=]+/g, "-").replaceAll(/^-|-$/g, "");
  return `${plain(one.name)}_${plain(arm.label)}_${block + 1}.jsonl`;
}
