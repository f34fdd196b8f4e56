import { HOST_DRAFT_TOKENS, isHostAlgorithm } from "../../draft/algorithms.ts";
import { UsageError } from "../../errors.ts";
import { MAIN, parsePlace } from "../../hub/names.ts";
import { chain } from "../../speculate/round_shape.ts";
import { knownPair } from "../open/drafts.ts";
import { isThere } from "../open/is_there.ts";
import { treeOf } from "../open/speculation.ts";
import { type DrafterName, drafterOf } from "../options/drafter_option.ts";
import type { ServeCommandOptions } from "../options/options.ts";
import { type Depth, depthOf, PLAIN } from "./depth.ts";

/** A checkpoint as other programs name it: a name of the hub or a folder. */
export interface Checkpoint {
  readonly path: string;
  readonly revision: string | undefined;
}

type Algorithm = Exclude<DrafterName, "NONE" | "HYBRID">;

/** Who drafts. */
export interface Drafting {
  readonly algorithm: Algorithm;
  readonly draft: Checkpoint | undefined;
}

/** What is to be started, of all that the flags say. */
export interface LaunchRequest {
  readonly model: Checkpoint;
  /** Undefined: plain decoding. */
  readonly drafting: Drafting | undefined;
  readonly depth: Depth;
  readonly options: ServeCommandOptions;
  /** Lines for stderr, whatever the engine. */
  readonly notes: readonly string[];
}

/** Reads the flags as `eyrie serve` does. @throws UsageError */
export function launchRequestOf(options: ServeCommandOptions): LaunchRequest {
  const { model, draft, numSteps, policy } = options;
  const algorithm = drafterOf(options.drafter)?.name;
  if (model === undefined) {
    throw new UsageError(
      'Cannot run "serve-command": --model is missing; other engines cannot run the embedded model',
    );
  }
  const target = checkpointOf(model);
  const drafting = draftingOf(options, target.path);
  const draftingNotes = algorithm === "HYBRID" && drafting !== undefined
    ? [`HYBRID has no equivalent there: ${drafting.algorithm} drafts alone`]
    : [];
  if (drafting === undefined) {
    const meant = draft ?? algorithm ?? (numSteps === 0 || policy === "off" ? "none" : undefined);
    const notes = meant === undefined
      ? ["no draft model is named: give --draft auto or --draft MODEL"]
      : [];
    return { model: target, drafting, depth: PLAIN, options, notes };
  }
  const { depth, notes } = isHost(drafting)
    ? { depth: hostDepth(options), notes: [] }
    : depthOf(options, drafting.algorithm);
  const plain = depth.kind === "fixed" && depth.tier?.depth === 0;
  return {
    model: target,
    depth,
    options,
    drafting: plain ? undefined : drafting,
    notes: plain ? notes : [...draftingNotes, ...notes],
  };
}

function checkpointOf(text: string): Checkpoint {
  const place = parsePlace(text, isThere);
  if (place.kind === "folder") return { path: place.path, revision: undefined };
  const { repo, revision } = place.name;
  return { path: repo, revision: revision === MAIN ? undefined : revision };
}

/** Does it draft from the text alone? */
function isHost({ algorithm }: Drafting): boolean {
  return isHostAlgorithm(algorithm);
}

function draftingOf(
  { draft, drafter }: ServeCommandOptions,
  target: string,
): Drafting | undefined {
  const algorithm = drafterOf(drafter)?.name;
  if (algorithm === "NONE") return undefined;
  if (algorithm !== "HYBRID" && isHostAlgorithm(algorithm)) return { algorithm, draft: undefined };
  if (draft === undefined || draft === "none") {
    if (algorithm === undefined) return undefined;
    return { algorithm: algorithm === "HYBRID" ? "SUFFIX" : algorithm, draft: undefined };
  }
  const asked = algorithm === "HYBRID" ? undefined : algorithm;
  const auto = draft === "auto";
  const pair = knownPair(target, { draft: auto ? undefined : draft, algorithm: asked });
  if (auto && pair === undefined) {
    throw new UsageError(
      `Cannot use "--draft auto": no ${
        asked === undefined ? "" : `${asked} `
      }draft for "${target}" ` +
        "is known; name one with --draft org/name (presets/drafts.json lists the known ones)",
    );
  }
  const kind = asked ?? pair?.algorithm;
  if (kind === undefined) {
    throw new UsageError(
      `Cannot find out what kind of draft "${draft}" is: give --drafter EAGLE3, EAGLE or ` +
        "STANDALONE",
    );
  }
  return { algorithm: kind as Algorithm, draft: checkpointOf(auto ? pair?.draft ?? "" : draft) };
}

/** The depth of drafting from the text: always a chain, with the rows that `--draft-tree` gives. */
function hostDepth({ numSteps, draftTree }: ServeCommandOptions): Depth {
  const { tree, numDraftTokens } = treeOf(draftTree);
  const whole = tree === "auto" ? undefined : tree?.rows;
  const rows = whole ?? numDraftTokens ??
    (numSteps === undefined ? HOST_DRAFT_TOKENS : numSteps + 1);
  return { kind: "fixed", tier: chain(rows - 1) };
}
