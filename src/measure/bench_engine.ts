import { defined } from "../defined.ts";
import { statically } from "../engine/drafting.ts";
import { type Engine, openEngine, type OpenOptions } from "../engine/open.ts";
import type { SpeculationPlan } from "../engine/schedule/speculation.ts";
import { UsageError } from "../errors.ts";
import type { DraftShape } from "../speculate/round_shape.ts";
import type { ModelRequest, Subject } from "./runner.ts";

/** What a speculation plan needs prepared in an engine besides the tiers. */
export type Prepared = Pick<SpeculationPlan, "confident" | "packs" | "costs">;

/**
 * Opens the engine that a benchmark measures, with rounds of these tiers compiled.
 *
 * @param of.plans everything that any of these plans needs is prepared.
 * @throws UsageError if a tier drafts and the engine has no draft model.
 */
export async function openMeasured(
  request: ModelRequest,
  { tiers, plans = [], ...rest }:
    & Pick<OpenOptions, "maxBatch" | "maxKvTokens" | "contextLength" | "profile" | "sizeFlags">
    & {
      readonly tiers: readonly DraftShape[];
      readonly plans?: readonly Prepared[];
    },
): Promise<Engine> {
  const engine = await openEngine({
    speculate: (algorithm) => {
      const plan = statically(tiers.at(-1) ?? 0, tiers)(algorithm);
      return { ...plan, ...preparedOf(plans), warmed: plan.tiers };
    },
    sizeFlags: { maxBatch: "--batch-sizes" },
    ...rest,
    ...modelOptions(request),
  });
  if (!engine.draftName && tiers.some(({ depth }) => depth > 0)) {
    engine[Symbol.dispose]();
    throw new UsageError(`Cannot measure drafting with "${engine.name}": it has no draft`);
  }
  return engine;
}

/** The options of an engine that a request for a benchmark names: models, precision, adapter and callbacks. */
export function modelOptions(request: ModelRequest): OpenOptions {
  const { model, draft, draftRopeTheta, quantize, kvDtype, algorithm, adapter, webgpu } = request;
  const { randomWeights, randomDraft, precision } = request;
  return {
    ...defined({ model, draft, draftRopeTheta, quantize, kvDtype, algorithm }),
    ...defined({ adapter, webgpu, precision, autotune: request.autotune, costs: request.costs }),
    ...request.quantizeDraft ? { quantizeDraft: true } : {},
    ...randomWeights === undefined ? {} : {
      random: { target: randomWeights, ...defined({ draft: randomDraft }) },
    },
    ...request.simulateAcceptance ? { simulateAcceptance: request.simulateAcceptance } : {},
    ...request.onProgress ? { onProgress: request.onProgress } : {},
    ...request.onWarning ? { onWarning: request.onWarning } : {},
  };
}

function preparedOf(plans: readonly Prepared[]): Prepared {
  return {
    confident: plans.some(({ confident = false }) => confident),
    packs: plans.some(({ packs = false }) => packs),
    costs: plans.some(({ costs = false }) => costs),
  };
}

/** The names of the models and the device of an opened engine, as rows and tables have them. */
export function subjectOf(engine: Engine, request: ModelRequest): Subject {
  return {
    model: [quantizedName(engine.name, engine.weights.quantize), ...keptAs(engine)].join(", "),
    draft: engine.draftName && quantizedName(engine.draftName, engine.weights.quantizeDraft),
    device: deviceText(engine),
    simulated: request.simulateAcceptance !== undefined,
    webgpu: engine.device.webgpu,
  };
}

/** Adapter and backend; the WebGPU implementation is named only if it is not the built-in one. */
function deviceText({ device: { adapter, backend, webgpu } }: Engine): string {
  return [adapter, backend, ...webgpu === "builtin" ? [] : [webgpu]].join(", ");
}

/** The type of keys and values and the precision, each only if it is not the default. */
function keptAs({ kvDtype, units }: Engine): string[] {
  return [
    ...kvDtype === "f32" ? [] : [`keys and values in ${kvDtype}`],
    ...units?.precision === "f16" ? ["precision f16"] : [],
  ];
}

/** The name with the type that the weights were quantized to, so that its rows are not taken for those of the checkpoint. */
function quantizedName(name: string, to: string | undefined): string {
  return to === undefined ? name : `${name} ${to}`;
}
