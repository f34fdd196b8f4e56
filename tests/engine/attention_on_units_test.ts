// Where a device has matrix units and sequences may be long, attention goes there in rounds, drafts and prompts
// alike, or nowhere; and greedy text is the same at every number of rows.

import assert from "node:assert/strict";
import {
  type EngineSizes,
  firstRowsAt,
  maxRows,
  roundBuffers,
} from "../../src/engine/device/buffers.ts";
import { prepareModels } from "../../src/engine/device/models.ts";
import { deviceDrafterOf } from "../../src/engine/device/programs.ts";
import { promptBody, promptDraft } from "../../src/engine/device/prompt_plans.ts";
import { roundPlans } from "../../src/engine/device/round_plans.ts";
import { loadWeights, openModels } from "../../src/engine/load/load.ts";
import type { Plan } from "../../src/gpu/kernel.ts";
import type { MatrixUnit } from "../../src/gpu/matrix_unit.ts";
import { chain, chains } from "../../src/speculate/round_shape.ts";
import { GREEDY } from "../../src/speculate/sampling.ts";
import { paperGpu } from "../gpu/paper.ts";
import { openGpu } from "../gpu/shared.ts";
import { variable } from "../variable.ts";
import { decode, goldenCases, openFledgling, openWhole } from "./fledgling.ts";

const VARIABLE = "EYRIE_ATTENTION_UNITS";

/** Names of the kernels of attention in all plans. */
async function kernelsOf(
  contextLength: number,
  matrixUnit: MatrixUnit | undefined,
): Promise<string[]> {
  const capacity: EngineSizes = {
    batch: 4,
    shapes: chains([0, 3]),
    prefillRows: 512,
    contextLength,
    pages: contextLength / 4,
  };
  const paper = paperGpu({ software: false });
  using models = openModels({ algorithm: "EAGLE3" });
  const weights = await loadWeights(paper, models);
  const gpu = { ...paper, matrixUnit };
  const buffers = roundBuffers(gpu, capacity);
  const prepared = prepareModels(gpu, weights, capacity, buffers);
  const of = { maxRows: maxRows(capacity), firstRows: firstRowsAt(capacity) };
  const parts = {
    target: prepared.target,
    drafter: deviceDrafterOf(prepared, buffers),
    buffers,
    ...of,
  };
  const plans: Plan[] = [
    ...[0, 3].flatMap((numSteps) =>
      [1, 4].flatMap((batch) =>
        Object.values(
          roundPlans(parts, { ...chain(numSteps), batch }),
        )
      )
    ),
    ...[8, 512].flatMap((count) => {
      const forward = { count, perSlot: count };
      return [promptBody(parts, forward), promptDraft(parts, forward)];
    }),
  ];
  const dispatches = plans.flat().filter(({ label }) => label.includes(".attention"));
  return [...new Set(dispatches.map(({ kernel }) => kernel.name))];
}

Deno.test("attention of all rows goes to matrix units where sequences may be long, else none", async () => {
  using _ = variable(VARIABLE, "auto");
  const unit = { m: 16, n: 16, k: 16, lanes: 32 };
  const units = await kernelsOf(40960, unit);
  assert.ok(units.length > 3 && units.every((name) => /units/.test(name)), units.join());
  for (const others of [await kernelsOf(40960, undefined), await kernelsOf(32768, unit)]) {
    assert.ok(others.length > 1 && !others.some((name) => /units/.test(name)), others.join());
  }
});

Deno.test("attention on matrix units: greedy text is the same at 1 to 24 rows", async () => {
  const gpu = await openGpu();
  if (gpu.matrixUnit === undefined) return;
  using _ = variable(VARIABLE, "on");
  const prompts = goldenCases().slice(0, 3).map(({ prompt_ids }) => prompt_ids);
  const runner = await openFledgling("eagle3", prompts.length, gpu);
  using stack = new DisposableStack();
  const sequences = prompts.map(() => stack.use(openWhole(runner)));
  const texts = async (first: number, lanes: number, numSteps: number) => {
    const [end, of] = [first + lanes, { numSteps, most: 16, sampling: [GREEDY] }];
    const found = await decode(runner, sequences.slice(first, end), prompts.slice(first, end), of);
    return found.map(({ ids }) => ids);
  };
  const plain: number[][] = [];
  for (const i of prompts.keys()) plain.push(...await texts(i, 1, 0));
  for (const [lanes, steps] of [[1, 3], [1, 7], [3, 0], [3, 3], [3, 7]] as const) {
    assert.deepEqual(await texts(0, lanes, steps), plain.slice(0, lanes), `${lanes} x ${steps}`);
  }
  assert.ok(runner.models.target.tuning.attentionUnits);
  gpu[Symbol.dispose]();
});
