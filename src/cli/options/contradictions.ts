/** Refuses flags that contradict each other. Those of `bench` and other measuring commands are checked in measure/. */

import { draftsAlone, isHostAlgorithm } from "../../draft/algorithms.ts";
import { UsageError } from "../../errors.ts";
import { clash } from "./clash.ts";
import type { CommandName } from "./command.ts";
import { drafterOf } from "./drafter_option.ts";
import type { FlagTable } from "./flag.ts";
import { refuseImpossibleBench } from "./measure/bench_refusals.ts";
import { refuseImpossibleBreakeven } from "./measure/breakeven_flags.ts";
import { refuseImpossibleLoad } from "./measure/load_flags.ts";
import { refuseImpossibleProfile } from "./measure/profile_flags.ts";
import { refuseImpossibleSimulation } from "./measure/simulate_flags.ts";
import { refuseBesideRemote } from "./option_remote.ts";
import { isChainText, isWholeTree, refuseBesidePolicy } from "./policy_option.ts";
import type { Typed } from "./read_flags.ts";
import { refuseImpossibleCheck } from "./tool_flags.ts";

/** What was typed, without defaults. */
type GivenFlags = Typed["given"];

/** Flags that contradict each other. @throws UsageError */
export function refuseContradictions(name: CommandName, given: GivenFlags, flags: FlagTable): void {
  refuseBesideRemote(name, given, flags);
  if (given["sloItlMs"] !== undefined && given["costs"] === "off") {
    clash("--slo-itl-ms", "--costs off", "rows of prompts are chosen by what they cost");
  }
  if (given["remote"] !== undefined && name !== "bench load") refuseImpossibleRequest(given);
  else if (name === "bench") refuseImpossibleBench(given);
  else if (name === "bench load") refuseImpossibleLoad(given);
  else if (name === "profile") refuseImpossibleProfile(given);
  else if (name === "check") refuseImpossibleCheck(given);
  else if (name === "breakeven") {
    refuseImpossibleBreakeven(given, (key) => flags[key]?.flag ?? key);
  } else if (name === "simulate") {
    refuseImpossibleSimulation(given, (key) => flags[key]?.flag ?? key);
  } else refuseImpossible(given, { batched: "batch" in flags, drafts: DRAFTING.includes(name) });
}

/** What a batch has in its file, or is for one output. */
export function refuseBesideBatch(given: GivenFlags, prompt: string | undefined): void {
  const { batch, promptFile, prediction } = given;
  if (batch === undefined) return;
  if (prompt !== undefined || promptFile !== undefined) {
    throw new UsageError(`Cannot use "--batch" with a prompt: the prompts come from "${batch}"`);
  }
  if (prediction !== undefined) clash("--prediction", "--batch", "it is for one output");
}

/** Commands that look for a draft where none is named. */
const DRAFTING: readonly CommandName[] = ["chat", "serve"];

/**
 * Flags of a model and of who drafts for it that contradict each other.
 *
 * @param command.drafts whether a draft is looked for where none is named.
 */
function refuseImpossible(
  given: GivenFlags,
  { batched, drafts: looks }: { readonly batched: boolean; readonly drafts: boolean },
): void {
  const { draft, drafter, numSteps, model } = given;
  const algorithm = drafterOf(drafter as string | undefined)?.name;
  const alone = draftsAlone(algorithm);
  const host = isHostAlgorithm(algorithm);
  // A NextN layer is stored in the target's own files.
  const within = algorithm === "NEXTN";
  const heads = algorithm === "EAGLE" || algorithm === "EAGLE3" || within;
  const speculates = heads || algorithm === "STANDALONE";
  const without = draft === "none" && !host
    ? "--draft none"
    : algorithm === "NONE"
    ? "--drafter NONE"
    : undefined;
  const drafts = (steps: unknown) => typeof steps === "number" && steps > 0;
  if (speculates && draft === "none") {
    clash(
      `--drafter ${drafter}`,
      "--draft none",
      "it needs a draft; allowed is NONE",
    );
  }
  const finds = looks && algorithm !== "STANDALONE";
  const lacking = model !== undefined && draft === undefined && !within && !finds;
  const nowhere = model === undefined && draft === undefined;
  if (algorithm === "STANDALONE" && nowhere) {
    throw new UsageError(
      'Cannot use "--drafter STANDALONE": it needs a draft; give --draft MODEL',
    );
  }
  if (speculates && lacking) {
    clash(
      `--drafter ${drafter}`,
      "--model",
      "it needs a draft; give --draft MODEL",
    );
  }
  if (without === undefined && lacking && !host && drafts(numSteps)) {
    clash(`--num-steps ${numSteps}`, "--model", "it needs a draft; give --draft MODEL");
  }
  if ((alone || algorithm === "NONE") && draft !== undefined && draft !== "none") {
    clash(`--drafter ${drafter}`, `--draft ${draft}`, "allowed is --draft none");
  }
  if (without !== undefined && drafts(numSteps)) {
    clash(`--num-steps ${numSteps}`, without, "there is no drafter; allowed is 0");
  }
  const { draftTree } = given;
  if (alone && draftTree !== undefined && !isChainText(draftTree)) {
    const allowed = "it drafts chains; allowed is tokens=N, the rows that a round verifies";
    clash(`--draft-tree ${draftTree}`, `--drafter ${drafter}`, allowed);
  }
  if (isWholeTree(draftTree) && numSteps !== undefined && without === undefined) {
    clash(`--num-steps ${numSteps}`, `--draft-tree ${draftTree}`, "the tree has its own steps");
  }
  refuseBesidePolicy(given);
  const ofBatch = { maxBatch: "--max-batch", output: "--output", force: "--force" };
  for (const [key, flag] of Object.entries(ofBatch)) {
    if (!batched || given[key] === undefined || given["batch"] !== undefined) continue;
    throw new UsageError(`Cannot use "${flag}": it needs --batch`);
  }
  refuseImpossibleRequest(given);
}

/** Flags of a request that contradict each other, whoever answers it. */
function refuseImpossibleRequest(given: GivenFlags): void {
  if (given["raw"] === true && given["system"] !== undefined) {
    clash("--system", "--raw", "a raw prompt has no system message; write it into the prompt");
  }
  const template = given["think"] !== undefined ? "--think" : "--template-arg";
  if (given["raw"] === true && (given["think"] ?? given["templateArg"]) !== undefined) {
    clash(template, "--raw", "a raw prompt goes through no chat template");
  }
  const grammars = { jsonSchema: "--json-schema", grammar: "--grammar", regex: "--regex" };
  const [first, second] = Object.entries(grammars).filter(([key]) => given[key] !== undefined);
  if (first && second) clash(first[1], second[1], "the output has one grammar");
  const read = given["json"] === true || given["batch"] !== undefined;
  if (given["logprobs"] !== undefined && !read) {
    throw new UsageError(
      `Cannot use "--logprobs ${given["logprobs"]}" alone: it goes with --json or --batch`,
    );
  }
  if (given["batch"] !== undefined && given["stats"] === true) {
    clash("--stats", "--batch", "statistics are those of one answer");
  }
  if (given["quiet"] === true && given["stats"] === true) {
    clash("--stats", "--quiet", "allowed is one of them");
  }
}
