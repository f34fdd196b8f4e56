import { acceptanceOf } from "../options/acceptance_option.ts";
import { isHostAlgorithm } from "../../draft/algorithms.ts";
import { drafterOf } from "../options/drafter_option.ts";
import type { Drafting, LaunchRequest } from "./launch_request.ts";
import { type EngineCommand, type Flag, flag, ownNotes } from "./command.ts";

/** Where SGLang's server reads the adaptive config from. */
export const CONFIG_FLAG = "--speculative-adaptive-config";

/**
 * The command for SGLang's `launch_server`. Eyrie's flags have SGLang's names, so most are copied unchanged.
 * Source: python/sglang/srt/arg_groups/fields/spec.py and speculative_hook.py.
 */
export function sglangCommand(asked: LaunchRequest): EngineCommand {
  const { model, drafting, options } = asked;
  const speculation = drafting === undefined ? NONE : speculationOf(asked, drafting);
  return {
    program: ["python3", "-m", "sglang.launch_server"],
    flags: [
      ["--model-path", model.path],
      ...flag("--revision", model.revision),
      ...flag("--served-model-name", options.servedModelName),
      ...flag("--host", options.host),
      ...flag("--port", options.port),
      ...flag("--context-length", options.contextLength),
      ...flag("--max-running-requests", options.maxBatch),
      ...speculation.flags,
    ],
    ...speculation.config ? { config: speculation.config } : {},
    notes: [...speculation.notes, ...ownNotes(asked)],
  };
}

type Speculation = Pick<EngineCommand, "flags" | "config" | "notes">;

const NONE: Speculation = { flags: [], notes: [] };

function speculationOf(asked: LaunchRequest, drafting: Drafting): Speculation {
  const { algorithm, draft } = drafting;
  if (isHostAlgorithm(algorithm)) return textSpeculation(asked, algorithm);
  const depth = depthFlags(asked);
  const rest = otherFlags(asked, drafting);
  return {
    flags: [
      ["--speculative-algorithm", algorithm],
      ...flag("--speculative-draft-model-path", draft?.path),
      ...flag("--speculative-draft-model-revision", draft?.revision),
      ...depth.flags,
      ...rest.flags,
    ],
    ...depth.config ? { config: depth.config } : {},
    notes: [...depth.notes, ...rest.notes],
  };
}

/** SGLang drafts from the text with a trie. With breadth 1 it drafts chains, as Eyrie does. */
function textSpeculation({ depth, options }: LaunchRequest, algorithm: string): Speculation {
  const rows = depth.kind === "fixed" ? depth.tier?.rows : undefined;
  const range = drafterOf(options.drafter)?.ngram;
  return {
    flags: [
      ["--speculative-algorithm", "NGRAM"],
      ...flag("--speculative-num-draft-tokens", rows),
      ["--speculative-ngram-max-bfs-breadth", 1],
    ],
    notes: [
      ...algorithm === "NGRAM" ? [] : [`${algorithm} has no equivalent in SGLang: NGRAM drafts`],
      ...range === undefined ? [] : ["min and max of --drafter have no equivalent in SGLang"],
    ],
  };
}

function depthFlags({ depth }: LaunchRequest): Speculation {
  if (depth.kind === "adaptive") {
    const { json, notes } = withoutTrees(depth.json);
    return {
      flags: [
        ["--speculative-num-steps", depth.numSteps],
        ["--speculative-eagle-topk", 1],
        ["--speculative-num-draft-tokens", depth.numSteps + 1],
        ["--speculative-adaptive"],
      ],
      config: json,
      notes,
    };
  }
  // Without all three SGLang chooses them by the architecture, as --draft-tree auto does.
  if (depth.tier === undefined) return NONE;
  const { depth: steps, width, rows } = depth.tier;
  return {
    flags: [
      ["--speculative-num-steps", steps],
      ["--speculative-eagle-topk", width],
      ["--speculative-num-draft-tokens", rows],
    ],
    notes: [],
  };
}

/** Replaces candidate trees, which only Eyrie has, by chains of the same number of steps. */
function withoutTrees(
  json: Readonly<Record<string, unknown>>,
): { readonly json: Readonly<Record<string, unknown>>; readonly notes: readonly string[] } {
  let found = false;
  const entries = Object.entries(json).map(([key, value]) => {
    if (typeof value !== "object" || value === null || !("candidate_trees" in value)) {
      return [key, value];
    }
    found = true;
    const { candidate_trees: trees, candidate_steps: steps = [], ...rest } = value as {
      candidate_trees: readonly (readonly number[])[];
      candidate_steps?: readonly number[];
    };
    const all = new Set([...steps, ...trees.flatMap(([depth]) => depth ?? [])]);
    return [key, { candidate_steps: [...all].toSorted((a, b) => a - b), ...rest }];
  });
  const note = "candidate_trees have no equivalent in SGLang: chains of as many steps";
  return { json: Object.fromEntries(entries), notes: found ? [note] : [] };
}

function otherFlags({ options }: LaunchRequest, { algorithm }: Drafting): Speculation {
  const { tokenMap } = options;
  const { rejection, relaxed } = acceptanceOf(options.acceptance) ?? {};
  const eagle = algorithm !== "STANDALONE";
  const rules = {
    token: ["--speculative-use-rejection-sampling"],
    block: ["--speculative-use-block-verification"],
  };
  const asked = rejection === undefined ? [] : rules[rejection];
  return {
    flags: [
      ...flag("--speculative-token-map", tokenMap),
      ...flag("--speculative-accept-threshold-single", relaxed?.single),
      ...flag("--speculative-accept-threshold-acc", relaxed?.acc),
      ...eagle ? asked.map((name): Flag => [name]) : [],
    ],
    notes: eagle ? [] : asked.map((name) => `SGLang has ${name} for EAGLE heads alone`),
  };
}
