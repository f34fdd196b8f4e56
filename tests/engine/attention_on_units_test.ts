// Where a device has matrix units, attention goes there in rounds, drafts and prompts alike, or nowhere.

import assert from "node:assert/strict";
import {
  type Capacity,
  firstRowsAt,
  mostRows,
  roundBuffers,
} from "../../src/engine/device/buffers.ts";
import { prepareModels } from "../../src/engine/device/models.ts";
import { drafterOf } from "../../src/engine/device/programs.ts";
import { promptPlans, roundPlans } from "../../src/engine/device/tier.ts";
import { loadWeights, openModels } from "../../src/engine/load/load.ts";
import type { Plan } from "../../src/gpu/kernel.ts";
import type { MatrixUnit } from "../../src/gpu/matrix_unit.ts";
import { chain, chains } from "../../src/speculate/round_shape.ts";
import { paperGpu } from "../gpu/paper.ts";

/** Names of the kernels of attention in all plans. */
async function kernelsOf(matrixUnit: MatrixUnit | undefined): Promise<string[]> {
  const capacity: Capacity = {
    ...{ batch: 4, shapes: chains([0, 3]), prefillRows: 512 },
    ...{ contextLength: 2048, pages: 512 },
  };
  const paper = paperGpu({ software: false });
  using models = openModels({ algorithm: "EAGLE3" });
  const weights = await loadWeights(paper, models);
  const gpu = { ...paper, matrixUnit };
  const buffers = roundBuffers(gpu, capacity);
  const prepared = prepareModels(gpu, weights, capacity, buffers);
  const of = { mostRows: mostRows(capacity), firstRows: firstRowsAt(capacity) };
  const parts = { target: prepared.target, drafter: drafterOf(prepared, buffers), buffers, ...of };
  const plans: Plan[] = [
    ...[0, 3].flatMap((numSteps) =>
      [1, 4].flatMap((batch) =>
        Object.values(
          roundPlans(parts, { shape: { ...chain(numSteps), batch }, proposed: false }),
        )
      )
    ),
    ...[8, 512].flatMap((rows) => Object.values(promptPlans(parts, rows))),
  ];
  const dispatches = plans.flat().filter(({ label }) => label.includes(".attention"));
  return [...new Set(dispatches.map(({ kernel }) => kernel.name))];
}

Deno.test("attention of all rows goes to matrix units, or none", async () => {
  const units = await kernelsOf({ m: 16, n: 16, k: 16, lanes: 32 });
  const others = await kernelsOf(undefined);
  assert.ok(units.length > 3 && units.every((name) => /units/.test(name)), units.join());
  assert.ok(others.length > 1 && !others.some((name) => /units/.test(name)), others.join());
});
