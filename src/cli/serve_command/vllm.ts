import { startSlot } from "../../speculate/adaptive.ts";
import { NGRAM_RANGE } from "../../draft/ngram.ts";
import { acceptanceOf } from "../options/acceptance_option.ts";
import { drafterOf } from "../options/drafter_option.ts";
import type { AdaptiveConfig } from "../../speculate/adaptive_config.ts";
import { isChain } from "../../speculate/round_shape.ts";
import type { Drafting, LaunchRequest } from "./launch_request.ts";
import { type EngineCommand, flag, ownNotes } from "./command.ts";

/** Names of vLLM's `method`. */
const METHODS: Readonly<Record<Drafting["algorithm"], string>> = {
  EAGLE: "eagle",
  EAGLE3: "eagle3",
  NEXTN: "mtp",
  STANDALONE: "draft_model",
  NGRAM: "ngram",
  SUFFIX: "suffix",
};

/**
 * `vllm serve` with its `--speculative-config`. Source: vllm/config/speculative.py and
 * docs/features/speculative_decoding.
 */
export function vllmCommand(asked: LaunchRequest): EngineCommand {
  const { model, drafting, options } = asked;
  const speculation = drafting && speculationOf(asked, drafting);
  return {
    program: ["vllm", "serve", model.path],
    flags: [
      ...flag("--revision", model.revision),
      ...flag("--served-model-name", options.servedModelName),
      ...flag("--host", options.host),
      ...flag("--port", options.port),
      ...flag("--max-model-len", options.contextLength),
      ...flag("--max-num-seqs", options.maxBatch),
      ...flag("--speculative-config", speculation && JSON.stringify(speculation.config)),
    ],
    notes: [...speculation?.notes ?? [], ...ownNotes(asked)],
  };
}

interface Speculation {
  readonly config: Readonly<Record<string, unknown>>;
  readonly notes: readonly string[];
}

function speculationOf(asked: LaunchRequest, { algorithm, draft }: Drafting): Speculation {
  const { options } = asked;
  const depth = depthOf(asked);
  const { rejection } = acceptanceOf(options.acceptance) ?? {};
  return {
    config: {
      method: METHODS[algorithm],
      ...draft === undefined ? {} : { model: draft.path },
      ...draft?.revision === undefined ? {} : { revision: draft.revision },
      ...depth.config,
      ...algorithm === "NGRAM" ? lookup(options) : {},
      ...rejection === undefined ? {} : { draft_sample_method: "probabilistic" },
      ...rejection === "block" ? { rejection_sample_method: "block" } : {},
    },
    notes: [...depth.notes, ...lacking(asked)],
  };
}

/** The n-gram lengths that Eyrie matches. */
function lookup({ drafter }: LaunchRequest["options"]) {
  const { min, max } = drafterOf(drafter)?.ngram ?? NGRAM_RANGE;
  return { prompt_lookup_min: min, prompt_lookup_max: max };
}

function depthOf({ depth, options }: LaunchRequest): Speculation {
  if (depth.kind === "fixed") {
    const { tier } = depth;
    const steps = tier?.depth ?? 3;
    const chain = tier !== undefined && isChain(tier);
    const note = `trees have no equivalent in vLLM: it drafts chains of ${steps}`;
    return { config: { num_speculative_tokens: steps }, notes: chain ? [] : [note] };
  }
  if (depth.config === undefined) {
    const note = "--policy throughput-aware has no equivalent in vLLM: every round drafts " +
      `${depth.numSteps} steps`;
    return { config: { num_speculative_tokens: depth.numSteps }, notes: [note] };
  }
  return bySize(depth.config, { initial: depth.numSteps, maxBatch: options.maxBatch });
}

/** Default upper batch size of the last entry; vLLM uses that entry for larger batches too. */
const MAX_REQUESTS = 1024;

/** Gives each batch size the steps that the controller starts with, because vLLM does not adapt them. */
function bySize(
  config: AdaptiveConfig,
  { initial, maxBatch }: { readonly initial: number; readonly maxBatch: number | undefined },
): Speculation {
  const { slots } = config;
  const ranges = slots.map((slot, i): [number, number, number] => {
    // The first entry also covers batches smaller than its own.
    const from = i === 0 ? 1 : slot.batchSize;
    const next = slots[i + 1]?.batchSize;
    const to = next === undefined ? Math.max(from, maxBatch ?? MAX_REQUESTS) : next - 1;
    return [from, to, startSlot(slot, initial).current];
  });
  const steps = ranges.map(([, , steps]) => steps);
  const most = Math.max(...steps, 1);
  const chosen = slots.some(({ candidateSteps }) => candidateSteps.length > 1);
  const note =
    "vLLM does not adapt to what is accepted: each batch size drafts what the adaptive " +
    `config begins with, ${ranges.map(([from, , k]) => `${k} from ${from}`).join(", ")}`;
  return {
    config: {
      num_speculative_tokens: most,
      ...new Set([...steps, most]).size > 1
        ? { num_speculative_tokens_per_batch_size: ranges }
        : {},
    },
    notes: chosen ? [note] : [],
  };
}

/** Flags that vLLM has nothing for. */
function lacking({ options }: LaunchRequest): string[] {
  const { tokenMap } = options;
  const { relaxed } = acceptanceOf(options.acceptance) ?? {};
  return [
    ...tokenMap === undefined ? [] : ["--token-map"],
    ...relaxed === undefined ? [] : ["--acceptance relaxed"],
  ].map((name) => `${name} has no equivalent in vLLM`);
}
