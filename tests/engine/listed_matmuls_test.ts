// Every matrix that a plan multiplies by is listed: what is not goes to no matrix units, and no launch is measured for it.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { type EngineSizes, roundBuffers } from "../../src/engine/device/buffers.ts";
import { prepareModels } from "../../src/engine/device/models.ts";
import { loadWeights, openModels } from "../../src/engine/load/load.ts";
import { matmulsOf } from "../../src/engine/matrices/matmuls.ts";
import type { Dispatch, Operand } from "../../src/gpu/kernel.ts";
import { tuning } from "../../src/gpu/matrix.ts";
import { bodyPlan, headPlan } from "../../src/model/lower/target_plans.ts";
import { chains } from "../../src/speculate/round_shape.ts";
import { paperGpu } from "../gpu/paper.ts";
import { folderOf } from "./speculated.ts";

const SIZES: EngineSizes = {
  batch: 1,
  shapes: chains([0]),
  prefillRows: 8,
  contextLength: 32,
  pages: 16,
};

/**
 * Of Gemma 4 E: narrow ones of rows that no norm wrote, so that on matrix units one row would take a dispatch more for the
 * scales of each.
 */
const UNLISTED = /\bperLayer(Gate|Projection|\.projection)$/;

const GOLDENS = [...Deno.readDirSync(new URL("../golden", import.meta.url))]
  .map(({ name }) => name)
  .filter((name) => existsSync(`${folderOf(name)}/config.json`));

for (const name of GOLDENS.toSorted()) {
  Deno.test(`the matrices of ${name} are listed`, async () => {
    const gpu = paperGpu({ software: false });
    using models = openModels({ model: folderOf(name), algorithm: "NONE" });
    const loaded = await loadWeights(gpu, models, {});
    const buffers = roundBuffers(gpu, SIZES);
    const { target } = prepareModels(gpu, loaded, SIZES, buffers);
    const all = matmulsOf(loaded, tuning(false, gpu.limits));
    const listed = new Set(
      all.flatMap(({ matrix }) => matrix.shards.map(({ operand }) => placeOf(operand))),
    );
    const rows = 2;
    const plan = [
      ...bodyPlan(target, { rows: buffers.rows, count: rows, perSlot: rows }),
      ...headPlan(target, rows),
    ];
    const multiplied = plan.flatMap((launch) =>
      weightsOf(launch).map((weights) => ({ label: launch.label, at: placeOf(weights) }))
    );
    assert.ok(multiplied.length > 3);
    const missing = multiplied.filter(({ label, at }) => !listed.has(at) && !UNLISTED.test(label));
    assert.deepEqual(missing.map(({ label }) => label), []);
  });
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
