// Every matrix that a plan multiplies by is listed: what is not goes to no matrix units, and no launch is measured for
// it.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import {
  type EngineSizes,
  firstRowsAt,
  maxRows,
  type RoundBuffers,
  roundBuffers,
} from "../../src/engine/device/buffers.ts";
import { PLAIN_SAMPLING } from "../../src/engine/device/choice/choice.ts";
import { type Models, prepareModels } from "../../src/engine/device/models.ts";
import { deviceDrafterOf } from "../../src/engine/device/programs.ts";
import { roundPlans } from "../../src/engine/device/round_plans.ts";
import { loadWeights, type ModelChoice, openModels } from "../../src/engine/load/load.ts";
import { matmulsOf } from "../../src/engine/matrices/matmuls.ts";
import type { Dispatch, Operand } from "../../src/gpu/kernel.ts";
import { tuning } from "../../src/gpu/tuning.ts";
import { chain, chains } from "../../src/speculate/round_shape.ts";
import { paperGpu } from "../gpu/paper.ts";
import { folderOf } from "./speculated.ts";

const STEPS = 3;
const FLEDGLING = new URL("../../models/fledgling/target", import.meta.url).pathname;
const SIZES: EngineSizes = {
  batch: 1,
  shapes: chains([0, STEPS]),
  prefillRows: 8,
  contextLength: 32,
  pages: 16,
};

/**
 * Matrices of Gemma 4 E that are not listed: they are narrow, and no norm writes the rows they multiply. On matrix
 * units one row would take another dispatch for the scales of each.
 */
const UNLISTED = /\bperLayer(Gate|Projection|\.projection)$/;

const GOLDENS = [...Deno.readDirSync(new URL("../golden", import.meta.url))]
  .map(({ name }) => name)
  .filter((name) => existsSync(`${folderOf(name)}/config.json`));

/** Models without a draft, and with a draft of each kind. */
const CHOICES: readonly (readonly [name: string, ModelChoice])[] = [
  ...GOLDENS.toSorted().map((name) =>
    [name, { model: folderOf(name), algorithm: "NONE" }] as const
  ),
  ["fledgling, EAGLE-3", { algorithm: "EAGLE3" }],
  ["fledgling, EAGLE", { algorithm: "EAGLE" }],
  ["fledgling, a standalone draft", { draft: FLEDGLING }],
  ["deepseek_v3, NEXTN", { model: folderOf("deepseek_v3"), algorithm: "NEXTN" }],
];

for (const [name, choice] of CHOICES) {
  Deno.test(`the matrices of ${name} are listed`, async () => {
    const gpu = paperGpu({ software: false });
    using models = openModels(choice);
    const loaded = await loadWeights(gpu, models, {});
    const buffers = roundBuffers(gpu, SIZES);
    const prepared = prepareModels(gpu, loaded, SIZES, buffers);
    const all = matmulsOf(loaded, tuning(false, gpu.limits));
    const listed = new Set(
      all.flatMap(({ matrix }) => matrix.shards.map(({ operand }) => placeOf(operand))),
    );
    const multiplied = plansOf(prepared, buffers).flatMap((launch) => {
      const weights = weightsOf(launch);
      const exempt = weights.length === 1 && UNLISTED.test(launch.label);
      return exempt ? [] : weights.map((of) => ({ label: launch.label, at: placeOf(of) }));
    });
    assert.ok(multiplied.length > 3);
    const missing = multiplied.filter(({ at }) => !listed.has(at));
    assert.deepEqual(missing.map(({ label }) => label), []);
  });
}

/** The dispatches of a round with the draft steps of SIZES. */
function plansOf(models: Models, buffers: RoundBuffers): Dispatch[] {
  const drafter = deviceDrafterOf(models, buffers);
  const parts = {
    target: models.target,
    drafter,
    buffers,
    maxRows: maxRows(SIZES),
    firstRows: firstRowsAt(SIZES),
  };
  const numSteps = drafter ? STEPS : 0;
  const plans = roundPlans(parts, { ...chain(numSteps), batch: 1, choice: PLAIN_SAMPLING });
  return Object.values(plans).flat();
}

function placeOf({ buffer, offset = 0 }: Operand): string {
  return `${buffer.label} ${offset}`;
}

/** The matrices of the matmuls of a launch: of one, or of those that it runs together. */
function weightsOf({ kernel: { name }, buffers }: Dispatch): Operand[] {
  const parts = name.replace(/^(?:joined|fused_\d+)_/, "").split("_with_");
  return parts.flatMap((part, i) => {
    if (!part.startsWith("matmul_")) return [];
    const prefix = parts.length > 1 ? `${"abc"[i]}_` : "";
    return [buffers[`${prefix}weights`] ?? assert.fail(`${name} has no weights`)];
  });
}
