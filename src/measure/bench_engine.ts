import { defined } from "../defined.ts";
import { statically } from "../engine/drafting.ts";
import { type LocalEngine, openEngine } from "../engine/open.ts";
import type { EngineOptions, LimitOptions } from "../engine/options.ts";
import type { SpeculationPlan } from "../engine/schedule/speculation.ts";
import { UsageError } from "../errors.ts";
import type { DraftShape } from "../speculate/round_shape.ts";
import type { Subject } from "./runner.ts";
import { randomIds } from "./workload/draw.ts";
import type { Prompt } from "./workload/prompt.ts";

/** What a speculation plan needs prepared in an engine besides the tiers. */
export type Prepared = Pick<SpeculationPlan, "confident" | "packed" | "costs">;

/**
 * Opens the engine that a benchmark measures, with rounds of these tiers compiled.
 *
 * @param of.plans everything that any of these plans needs is prepared.
 * @throws UsageError if a tier drafts and the engine has no draft model.
 */
export async function openMeasured(
  options: EngineOptions,
  { tiers, plans = [], profile = false, limits }: {
    readonly tiers: readonly DraftShape[];
    readonly plans?: readonly Prepared[];
    readonly profile?: boolean;
    readonly limits: LimitOptions;
  },
): Promise<LocalEngine> {
  const engine = await openEngine({
    ...options,
    device: { ...options.device, profile },
    limits: {
      ...options.limits,
      preparePrompts: true,
      sizeFlags: { maxBatch: "--batch-sizes" },
      ...limits,
    },
    hooks: {
      ...options.hooks,
      plan: (algorithm) => {
        const plan = statically(tiers.at(-1) ?? 0, tiers)(algorithm);
        return { ...plan, ...preparedOf(plans), warmed: plan.tiers };
      },
    },
  });
  if (!engine.info.draftName && tiers.some(({ depth }) => depth > 0)) {
    engine[Symbol.dispose]();
    throw new UsageError(`Cannot measure drafting with "${engine.info.name}": it has no draft`);
  }
  return engine;
}

function preparedOf(plans: readonly Prepared[]): Prepared {
  return {
    confident: plans.some(({ confident = false }) => confident),
    packed: plans.some(({ packed = false }) => packed),
    costs: plans.some(({ costs = false }) => costs),
  };
}

/** The names of the models and the device of an opened engine, as rows and tables have them. */
export function subjectOf(
  engine: LocalEngine,
  { model = {}, speculation = {} }: EngineOptions,
): Subject {
  const { simulateAcceptance } = speculation;
  return {
    model: [quantizedName(engine.info.name, engine.info.weights.quantize), ...keptAs(engine)].join(
      ", ",
    ),
    draft: engine.info.draftName &&
      quantizedName(engine.info.draftName, engine.info.weights.quantizeDraft),
    device: deviceText(engine),
    simulated: simulateAcceptance !== undefined,
    ...defined({ simulateAcceptance, draftRopeTheta: model.draftRopeTheta }),
    webgpu: engine.info.device.webgpu,
  };
}

/** The ids of a prompt, or of its first turn. @param randomTokens the length if it is of random ids. */
export function idsOf(
  { text, outputs }: Pick<LocalEngine, "text" | "outputs">,
  prompt: Prompt,
  randomTokens: number,
): readonly number[] {
  if (prompt.kind === "chat") return text.encodePrompt({ messages: prompt.messages });
  if (prompt.kind === "text") return text.encodePrompt({ raw: prompt.text });
  return randomIds(randomTokens, { vocabulary: outputs.vocabSize, seed: prompt.seed });
}

/** What messages call the model of an engine that is not open: as it was asked for. */
export function requestedName({ model }: EngineOptions): string {
  return model?.random?.target ?? model?.model ?? "fledgling";
}

/** Adapter and backend; the WebGPU implementation is named only if it is not the built-in one. */
function deviceText({ info: { device: { adapter, backend, webgpu } } }: LocalEngine): string {
  return [adapter, backend, ...webgpu === "builtin" ? [] : [webgpu]].join(", ");
}

/** The type of keys and values and the precision, each only if it is not the default. */
function keptAs({ info: { kvDtype, units } }: LocalEngine): string[] {
  return [
    ...kvDtype === "f32" ? [] : [`keys and values in ${kvDtype}`],
    ...units?.precision === "f32" ? ["precision f32"] : [],
  ];
}

/**
 * The name with the type that the weights were quantized to, so that its rows are not taken for those of the
 * checkpoint.
 */
function quantizedName(name: string, to: string | undefined): string {
  return to === undefined ? name : `${name} ${to}`;
}
