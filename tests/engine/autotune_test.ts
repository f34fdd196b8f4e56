import assert from "node:assert/strict";
import { matmul } from "../../kernels/matmul/matmul.ts";
import { shapeKey } from "../../kernels/matmul/matmul_shape.ts";
import { isLaunch, MEASURED_ROWS } from "../../kernels/matmul/matmul_tune.ts";
import { joinedKey, joinedMlps, timeJoined } from "../../src/engine/tune/joined.ts";
import { autotune } from "../../src/engine/tune/autotune.ts";
import { openRepeatClock } from "../../src/engine/tune/program_timer.ts";
import { loadWeights, openModels } from "../../src/engine/load/load.ts";
import { groupMatmuls, matmulsOf, unmeasured } from "../../src/engine/matrices/matmuls.ts";
import { tuneWeights } from "../../src/engine/tune/tuned.ts";
import { adapterKey, driverVersion, lookAtTuning } from "../../src/engine/tune/tuning_file.ts";
import { tuning } from "../../src/gpu/tuning.ts";
import { compiler } from "../../src/gpu/program.ts";
import { openDevice } from "../gpu/device.ts";
import { numbers } from "../gpu/numbers.ts";
import { uploadMatrix, weights } from "../kernels/matrices.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());
const { gpu } = device;
const hardware = { ...gpu, info: { ...gpu.info, software: false } };
const rules = tuning(false, gpu.limits);

function tiny(rows: number, cols = 256) {
  const shape = { format: "bf16", cols, lanes: 16, shards: [rows] } as const;
  return uploadMatrix(device, weights("bf16", rows, cols), shape);
}

Deno.test("autotune measures a shape at each row count, and what it finds changes no bit", async () => {
  const matrix = tiny(70);
  const groups = groupMatmuls([{ matrix, splitK: 1 }]);
  const found = await autotune(hardware, groups, { tuning: rules, known: new Map(), now: () => 0 });
  assert.deepEqual([found.measured, found.left], [MEASURED_ROWS.length, 0]);
  const launches = found.launches.get(shapeKey(matrix)) ?? assert.fail();
  for (const rows of MEASURED_ROWS) {
    const use = { rows, splitK: 1, tuning: rules };
    assert.ok(isLaunch(launches.get(rows) ?? assert.fail(), matrix, use, gpu.limits));
    const words = [];
    const x = device.floats(numbers(rows * matrix.cols, 3));
    for (const tuning of [rules, { ...rules, launches: found.launches }]) {
      const out = device.filled(rows * matrix.rows);
      await device.run(
        matmul({ matrix, x, out }, { rows, epilogue: "store", tuning, label: "test" }),
      );
      words.push(await device.readWords(out));
    }
    assert.deepEqual(words[1], words[0]);
  }
  const again = await autotune(hardware, groups, { tuning: rules, known: found.launches });
  assert.deepEqual(again, { launches: found.launches, measured: 0, left: 0 });
});

Deno.test("autotune ends with its budget; what is left is measured next time", async () => {
  const groups = groupMatmuls([tiny(64), tiny(640)].map((matrix) => ({ matrix, splitK: 1 })));
  let time = 0;
  const now = () => time++; // a millisecond each time it is looked at
  const first = await autotune(hardware, groups, {
    tuning: rules,
    known: new Map(),
    budgetMs: 12,
    now,
  });
  assert.ok(first.measured > 0 && first.left > 0);
  assert.equal(first.measured + first.left, 2 * MEASURED_ROWS.length);
  // Of the largest first, and one row of all of them before more rows of any.
  const order = unmeasured(groups, new Map()).map((
    { group, rows },
  ) => [group.matmuls[0].matrix.rows, rows]);
  assert.deepEqual(order.slice(0, 3), [[640, 1], [64, 1], [640, 4]]);
  const measured = [...first.launches].flatMap(([key, rows]) =>
    [...rows.keys()].map((count) => [key, count])
  );
  const earliest = unmeasured(groups, new Map()).slice(0, first.measured);
  assert.deepEqual(
    new Set(measured.map(String)),
    new Set(earliest.map(({ group, rows }) => `${[group.key, rows]}`)),
  );
  assert.equal(unmeasured(groups, first.launches).length, first.left);
});

Deno.test("joined launches are timed beside the same apart", async () => {
  const mlps = [{
    kind: "dense",
    spec: { kind: "dense", activation: "silu", intermediateSize: 256 },
    gateUp: tiny(512),
    down: tiny(256),
  }] as const;
  assert.equal(typeof await timeJoined(hardware, mlps, rules), "boolean");
  const key = joinedKey(mlps[0]);
  assert.ok(mlps.every(({ down }) => key.includes(shapeKey(down))));
});

Deno.test("without timestamp queries the clock tells the time of each program", async () => {
  const matrix = tiny(64);
  const plan = matmul({ matrix, x: device.filled(256), out: device.filled(64) }, {
    rows: 1,
    epilogue: "store",
    tuning: rules,
    label: "test",
  });
  const program = await compiler(gpu).compile(plan);
  let time = 0;
  using clock = await openRepeatClock(gpu, () => time += 32);
  assert.deepEqual(await clock.time([program, program]), [2, 2]);
});

Deno.test("weights are tuned once: the second time the cache knows what the first measured", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const path = `${folder}/eyrie/tuning.json`;
    using models = openModels({ algorithm: "EAGLE3" });
    const loaded = await loadWeights(hardware, models);
    const onWarning = (line: string) => assert.fail(line);
    const keys = new Set(matmulsOf(loaded, rules).map(({ matrix }) => shapeKey(matrix)));
    const tune = () => tuneWeights(hardware, loaded, { autotune: "on", path, onWarning });
    const joined = Number(joinedMlps(loaded, rules).length > 0);
    const reports = [];
    for (const { report, weights } of [await tune(), await tune()]) {
      reports.push(report ?? assert.fail());
      assert.equal(weights.target, loaded.target);
      assert.ok(weights.launches);
      assert.equal(weights.joinsMlp !== undefined, joined > 0);
    }
    const [first, second] = reports;
    assert.equal(first?.known, 0);
    assert.equal(second?.known, first?.measured);
    for (const { known, measured, left } of reports) {
      assert.equal(known + measured + left, keys.size * MEASURED_ROWS.length + joined);
      assert.ok(measured > 0 || left === 0);
    }
    const [kept] = lookAtTuning(path).adapters;
    assert.equal(kept?.adapter, adapterKey(gpu.info, driverVersion()));
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("software adapters and --autotune off leave the launches to the rules", async () => {
  using models = openModels({ draft: "none" });
  const loaded = await loadWeights(gpu, models);
  const path = "/nowhere/tuning.json";
  const software = { ...gpu, info: { ...gpu.info, software: true } };
  for (
    const [opened, choice] of [[software, "on"], [software, "again"], [hardware, "off"]] as const
  ) {
    const { weights, report } = await tuneWeights(opened, loaded, { autotune: choice, path });
    assert.deepEqual([weights === loaded, report], [true, undefined]);
  }
});
