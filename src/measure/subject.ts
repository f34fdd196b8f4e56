import { defined } from "../defined.ts";
import { statically } from "../engine/drafting.ts";
import { type LocalEngine, openEngine } from "../engine/open.ts";
import type { OpenOptions } from "../engine/options.ts";
import type { SpeculationPlan } from "../engine/schedule/speculation.ts";
import { UsageError } from "../errors.ts";
import type { DraftShape } from "../speculate/round_shape.ts";
import type { ModelRequest, Subject } from "./runner.ts";

/** What plans ask of an engine beside their tiers. */
export type Prepared = Pick<SpeculationPlan, "confident" | "packs" | "costs">;

/**
 * Opens what a bench measures, for rounds of these tiers.
 *
 * @param of.plans all of what they need is prepared.
 * @throws UsageError where one drafts and there is no draft.
 */
export async function openMeasured(
  request: ModelRequest,
  { tiers, plans = [], ...rest }:
    & Pick<OpenOptions, "maxBatch" | "maxKvTokens" | "contextLength" | "profile" | "sizeFlags">
    & {
      readonly tiers: readonly DraftShape[];
      readonly plans?: readonly Prepared[];
    },
): Promise<LocalEngine> {
  const engine = await openEngine({
    speculate: (algorithm) => {
      const plan = statically(tiers.at(-1) ?? 0, tiers)(algorithm);
      return { ...plan, ...preparedOf(plans), warmed: plan.tiers };
    },
    sizeFlags: { maxBatch: "--batch-sizes" },
    ...rest,
    ...modelOptions(request),
  });
  if (!engine.info.draftName && tiers.some(({ depth }) => depth > 0)) {
    engine[Symbol.dispose]();
    throw new UsageError(`Cannot measure drafting with "${engine.info.name}": it has no draft`);
  }
  return engine;
}

/** What of a request says which models are opened, and how. */
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

/** What was opened, for rows and tables. */
export function subjectOf(engine: LocalEngine, request: ModelRequest): Subject {
  return {
    model: [quantizedName(engine.info.name, engine.info.weights.quantize), ...keptAs(engine)].join(
      ", ",
    ),
    draft: engine.info.draftName &&
      quantizedName(engine.info.draftName, engine.info.weights.quantizeDraft),
    device: deviceText(engine),
    simulated: request.simulateAcceptance !== undefined,
    webgpu: engine.info.device.webgpu,
  };
}

/** Rows of Dawn are not those of the built-in WebGPU, which goes without saying. */
function deviceText({ info: { device: { adapter, backend, webgpu } } }: LocalEngine): string {
  return [adapter, backend, ...webgpu === "builtin" ? [] : [webgpu]].join(", ");
}

/** How numbers are kept and multiplied where that is not the default. */
function keptAs({ info: { kvDtype, units } }: LocalEngine): string[] {
  return [
    ...kvDtype === "f32" ? [] : [`keys and values in ${kvDtype}`],
    ...units?.precision === "f16" ? ["precision f16"] : [],
  ];
}

/** Rows of a quantized model are not those of the checkpoint. */
function quantizedName(name: string, to: string | undefined): string {
  return to === undefined ? name : `${name} ${to}`;
}
