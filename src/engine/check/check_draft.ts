/** Whether a draft's rope base is the one it was trained with. */
import { UsageError } from "../../errors.ts";
import { GREEDY } from "../../speculate/sampling.ts";
import { type GenerateRequest, type GenerateResult, resultOf } from "../schedule/events.ts";
import { openModels } from "../load/load.ts";
import { statically } from "../drafting.ts";
import type { LocalEngine } from "../open.ts";
import type { EngineOptions, LocalOptions, ModelOptions } from "../options.ts";

/** What the drafts were worth with one rope base. */
export interface ThetaAcceptance {
  readonly theta: number;
  readonly rounds: number;
  readonly tokens: number;
  /** Tokens a round, the bonus included. */
  readonly acceptLength: number;
  readonly acceptanceRate: number;
}

export interface DraftReport {
  readonly draft: string;
  /** Of its config.json. */
  readonly theta: number;
  /** The config's first, then TRAINING_THETA where that is another. */
  readonly measured: readonly ThetaAcceptance[];
  /** The base to run with. */
  readonly best: number;
}

/**
 * EAGLE's training code computes rope with this base whatever config.json says, and exports often
 * copy the target's base into it. AngelSlim's Qwen3-4B head had 2.39 tokens a round with the 1e6
 * of its config and 2.50 with 10000 (wejoncy/sfllm pull request 32, sgl-project/SpecForge issue
 * 265).
 */
const TRAINING_THETA = 10_000;

/** A base must gain this much before it is advised against the config's: the prompts are few. */
const MIN_GAIN = 1.01;
const NUM_STEPS = 3;

/** Rope errs with distance, so the answers should be long; kinds differ in how certain they are. */
const ANSWERS = {
  prompts: [
    "Tell me a story about a fox and a lantern.",
    "Write the numbers from 1 to 60.",
    "Show me the times table for 7 up to 12.",
    "Explain step by step why the sky is blue and the sunset is red.",
    "Write a Python function that returns the n-th Fibonacci number, and explain how it works.",
    "What is speculative decoding?",
  ],
  maxTokens: 128,
};

/** How the models are opened; without a name of a draft it is that of the embedded model. */
export interface DraftCheck extends Omit<EngineOptions, "speculation"> {
  readonly model: ModelOptions;
}

/** What is answered with each base. */
export interface Answers {
  readonly prompts: readonly string[];
  /** Of an answer, at most. */
  readonly maxTokens: number;
}

/** `openEngine` or a stand-in. */
export type Open = (options: LocalOptions) => Promise<LocalEngine>;

/**
 * Answers the same prompts greedily with the config's rope base and with TRAINING_THETA. The texts
 * are the same; what is compared is how many drafts were accepted.
 *
 * @throws UsageError when the models cannot be used.
 */
export async function checkDraft(
  options: DraftCheck,
  open: Open,
  answers: Answers = ANSWERS,
): Promise<DraftReport> {
  const { draft, theta } = namedDraft(options);
  const measured: ThetaAcceptance[] = [];
  for (const draftRopeTheta of new Set([theta, TRAINING_THETA])) {
    // One after the other, so that one pair of models at a time is on the GPU.
    using engine = await open({
      ...options,
      model: { ...options.model, draftRopeTheta },
      limits: { ...options.limits, sizeFlags: {} },
      hooks: { ...options.hooks, plan: statically(NUM_STEPS) },
    });
    measured.push(await measure(engine, draftRopeTheta, answers));
  }
  const [first, second] = measured as [ThetaAcceptance, ThetaAcceptance?];
  const better = second && second.acceptLength > first.acceptLength * MIN_GAIN;
  return { draft, theta, measured, best: better ? TRAINING_THETA : theta };
}

/** The draft's name and its config's rope base. */
function namedDraft({ model }: DraftCheck): Pick<DraftReport, "draft" | "theta"> {
  using models = openModels(model);
  const theta = models.draft?.config.layer.ropes[0]?.theta;
  if (models.draft && theta !== undefined) return { draft: models.draft.checkpoint.name, theta };
  throw new UsageError(`Cannot check the draft "${model.draft}": allowed is a folder`);
}

async function measure(
  engine: LocalEngine,
  theta: number,
  { prompts, maxTokens }: Answers,
): Promise<ThetaAcceptance> {
  let [rounds, tokens, drafted, accepted] = [0, 0, 0, 0];
  for (const prompt of prompts) {
    const { speculative } = await answer(engine, prompt, maxTokens);
    rounds += speculative.rounds;
    drafted += speculative.draft_tokens;
    accepted += speculative.accepted_tokens;
    tokens += speculative.rounds * speculative.mean_accept_length;
  }
  return {
    theta,
    rounds,
    tokens: Math.round(tokens),
    acceptLength: rounds > 0 ? tokens / rounds : 0,
    acceptanceRate: drafted > 0 ? accepted / drafted : 0,
  };
}

async function answer(
  engine: LocalEngine,
  prompt: string,
  maxTokens: number,
): Promise<GenerateResult> {
  const input = engine.info.hasChatTemplate
    ? { messages: [{ role: "user", content: prompt }] as const }
    : { raw: prompt };
  const request: GenerateRequest = {
    promptIds: engine.text.encodePrompt(input),
    sampling: GREEDY,
    maxTokens,
    stop: [],
    ignoreEos: false,
    numSteps: NUM_STEPS,
  };
  return await resultOf(engine.submit(request));
}
