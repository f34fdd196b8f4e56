import type { RoundRequest, Runner } from "../../src/engine/device/runner.ts";
import { openRunner } from "../../src/engine/device/device_runner.ts";
import {
  type OpenSequence,
  openSequence,
  prefillPrompt,
} from "../../src/engine/device/single_sequence.ts";
import type { Sequence } from "../../src/engine/device/sequence.ts";
import { loadWeights, openModels } from "../../src/engine/load/load.ts";
import type { Gpu } from "../../src/gpu/device.ts";
import { openGpu } from "../gpu/shared.ts";
import type { KvDtype } from "../../src/gpu/kv.ts";
import { PAGE } from "../../src/model/device_layout.ts";
import type { QuantizeChoice } from "../../src/model/config/quantize_choice.ts";
import { chain, chains, type DraftShape } from "../../src/speculate/round_shape.ts";
import type { Sampling } from "../../src/speculate/sampling.ts";

/** One case of golden.json (tests/golden/fledgling.json), made by PyTorch when the model was trained. */
export interface GoldenCase {
  readonly task: string;
  readonly prompt: string;
  readonly prompt_ids: number[];
  readonly greedy_ids: number[];
  readonly text: string;
  readonly min_margin: number;
  readonly first_logits: { readonly ids: number[]; readonly values: number[] };
  readonly draft: Record<"eagle3" | "eagle1", {
    readonly accepted_per_round: number[];
    readonly first_round: number[];
  }>;
}

/** The fledgling's end of turn. */
export const EOS = 1;

export function goldenCases(): GoldenCase[] {
  const path = new URL("../golden/fledgling.json", import.meta.url);
  return JSON.parse(Deno.readTextFileSync(path)).cases;
}

/** The embedded target with one of its heads, `batch` slots wide. */
export async function openFledgling(
  kind: "eagle3" | "eagle1",
  batch: number,
  gpu?: Gpu,
  { kvDtype = "f32", shapes = chains([0, 1, 2, 3, 4, 5, 6, 7]), confident, promptRun, ...quantize }:
    & QuantizeChoice
    & {
      readonly kvDtype?: KvDtype;
      readonly shapes?: readonly DraftShape[];
      readonly confident?: boolean;
      readonly promptRun?: number;
    } = {},
): Promise<Runner> {
  using models = openModels({ algorithm: kind === "eagle3" ? "EAGLE3" : "EAGLE" });
  const opened = gpu ?? await openGpu();
  const contextLength = 512;
  return await openRunner(opened, await loadWeights(opened, models, quantize), {
    batch,
    shapes,
    prefillRows: 256,
    contextLength,
    pages: batch * (contextLength + 2 * 8) / PAGE,
    kvDtype,
    confident,
    ...promptRun === undefined ? {} : { promptRun },
  });
}

/** A sequence with pages for the whole context. */
export function openWhole(runner: Runner): OpenSequence {
  const sequence = openSequence(runner);
  if (!runner.reserve(sequence, runner.capacity.contextLength)) throw new Error("no room");
  return sequence;
}

/** A finished sequence: its tokens, and per round how many drafts were accepted. */
export interface Decoded {
  readonly ids: number[];
  readonly accepted: number[];
  readonly drafts: number[][];
}

/**
 * Decodes the prompts side by side, one sequence each, until EOS or `most` tokens. Lanes that end
 * early go on as ballast, so that every round has the same batch.
 */
export async function decode(
  runner: Runner,
  sequences: readonly Sequence[],
  prompts: readonly (readonly number[])[],
  { numSteps, most, sampling, perSync = 1, verifying = () => ({}) }: {
    readonly numSteps: number;
    readonly most: number;
    readonly sampling: readonly Sampling[];
    /** Rounds without the host; with more than one the device stops lanes at EOS. */
    readonly perSync?: number;
    /** What is verified in the next group of rounds; of another shape than a chain of `numSteps`. */
    readonly verifying?: () => Partial<Pick<RoundRequest, "depths" | "verify" | "shape">>;
  },
): Promise<Decoded[]> {
  const outputs: Decoded[] = [];
  for (const [i, sequence] of sequences.entries()) {
    const ids = prompts[i] ?? [];
    const stopIds = perSync > 1 ? [EOS] : [];
    runner.setSampling(sequence, sampling[i % sampling.length] as Sampling, { stopIds });
    // What is stored of the prompt stays, and its last token is run again; a state of fixed size has gone on since.
    const from = runner.recurrent || sequence.stored < ids.length ? 0 : ids.length - 1;
    const first = await prefillPrompt(runner, sequence, ids, from);
    outputs.push({ ids: [first], accepted: [], drafts: [] });
  }
  const ended = ({ ids }: Decoded) => ids.at(-1) === EOS || ids.length >= most;
  while (!outputs.every(ended)) {
    const asked = { shape: chain(numSteps), count: perSync, ...verifying() };
    const rounds = await runner.rounds(sequences, asked);
    for (const [i, lane] of rounds.flatMap(({ sequences }) => [...sequences.entries()])) {
      const output = outputs[i] as Decoded;
      if (ended(output)) continue;
      const stop = lane.ids.indexOf(EOS);
      const kept = lane.ids.slice(0, stop < 0 ? undefined : stop + 1);
      output.ids.push(...kept.slice(0, most - output.ids.length));
      output.accepted.push(Math.min(lane.accepted, kept.length));
      output.drafts.push([...lane.drafts]);
    }
  }
  return outputs;
}
