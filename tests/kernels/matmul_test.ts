import { capEpilogue } from "../../kernels/lib/epilogue.ts";
import { matmul, type PlainEpilogue } from "../../kernels/matmul/matmul.ts";
import { type Tuning, tuning } from "../../src/gpu/tuning.ts";
import type { FloatFormat } from "../../src/gpu/weight_format.ts";
import { openDevice } from "../gpu/device.ts";
import { assertClose, numbers } from "../gpu/numbers.ts";
import { assertWithin, type Bounded, boundedDot, EPSILON, gated } from "./bounds.ts";
import { uploadMatrix, weights } from "./matrices.ts";
import { drawn } from "../exhaustive.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const SOFTWARE = tuning(true);
const HARDWARE = tuning(false);
/** What an output buffer holds before: it must go with "store" and stay with "add". */
const BEFORE = 0.5;

const GATED: Partial<Record<PlainEpilogue, (gate: number) => number>> = {
  swiglu: (gate) => gate / (1 + Math.exp(-gate)),
  geglu: (gate) =>
    gate / 2 * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (gate + 0.044715 * gate ** 3))),
};

interface Case {
  readonly format: FloatFormat;
  readonly epilogue: PlainEpilogue;
  readonly rows: number;
  readonly n: number;
  readonly k: number;
  readonly tuning: Tuning;
}

/** x W^T finished, [rows, outputs]. */
function reference(x: Float32Array, w: Float32Array, of: Case): Bounded[] {
  const { epilogue, rows, n, k } = of;
  const at = (r: number, c: number) =>
    boundedDot(x.subarray(r * k, (r + 1) * k), w.subarray(c * k, (c + 1) * k), of.tuning.lanes);
  const gate = GATED[epilogue];
  const outputs = gate ? n / 2 : n;
  return Array.from({ length: rows * outputs }, (_, i) => {
    const [r, c] = [Math.floor(i / outputs), i % outputs];
    const y = at(r, c);
    if (gate) return gated(gate(y.value), y, at(r, c + outputs));
    if (epilogue !== "add") return y;
    return { value: BEFORE + y.value, bound: y.bound + 2 * EPSILON * Math.abs(BEFORE + y.value) };
  });
}

async function check(shape: Case): Promise<void> {
  const { format, epilogue, rows, n, k } = shape;
  const x = numbers(rows * k, k);
  const values = weights(format, n, k);
  const matrix = uploadMatrix(device, values, {
    format,
    cols: k,
    lanes: shape.tuning.lanes,
    shards: [n],
  });
  const outputs = GATED[epilogue] ? n / 2 : n;
  const out = device.filled(rows * outputs, BEFORE);
  await device.run(matmul({ matrix, x: device.floats(x), out }, { ...shape, label: "test" }));
  const actual = await device.readFloats(out);
  assertWithin(actual, reference(x, values, shape));
}

// Each number of rows once: tiles of 1 to 8 rows and of 16, one tile, two and three. Widths are a multiple
// of the lanes (k / 8 = 1, 8, 33, 88 over 1 or 32 lanes) or not; pairs fill their invocation and
// their workgroup or not (n / 2 of 1 to 75 over 8 x 8 or 4 x 2), and take one workgroup or more.
const CASES: readonly Case[] = [
  { format: "bf16", epilogue: "store", rows: 1, n: 2, k: 8, tuning: SOFTWARE },
  { format: "bf16", epilogue: "add", rows: 2, n: 6, k: 704, tuning: SOFTWARE },
  { format: "bf16", epilogue: "swiglu", rows: 3, n: 256, k: 64, tuning: SOFTWARE },
  { format: "f16", epilogue: "store", rows: 4, n: 70, k: 264, tuning: SOFTWARE },
  { format: "f16", epilogue: "add", rows: 5, n: 64, k: 8, tuning: SOFTWARE },
  { format: "f16", epilogue: "swiglu", rows: 6, n: 2, k: 704, tuning: SOFTWARE },
  { format: "f32", epilogue: "store", rows: 7, n: 6, k: 64, tuning: SOFTWARE },
  { format: "f32", epilogue: "add", rows: 8, n: 150, k: 264, tuning: SOFTWARE },
  { format: "f32", epilogue: "swiglu", rows: 17, n: 6, k: 8, tuning: SOFTWARE },
  { format: "bf16", epilogue: "swiglu", rows: 16, n: 70, k: 704, tuning: SOFTWARE },
  { format: "f16", epilogue: "add", rows: 32, n: 150, k: 264, tuning: SOFTWARE },
  { format: "bf16", epilogue: "store", rows: 9, n: 70, k: 704, tuning: HARDWARE },
  { format: "bf16", epilogue: "add", rows: 10, n: 2, k: 264, tuning: HARDWARE },
  { format: "bf16", epilogue: "swiglu", rows: 11, n: 6, k: 8, tuning: HARDWARE },
  { format: "f16", epilogue: "store", rows: 12, n: 8, k: 64, tuning: HARDWARE },
  { format: "f16", epilogue: "add", rows: 13, n: 6, k: 704, tuning: HARDWARE },
  { format: "f16", epilogue: "swiglu", rows: 14, n: 70, k: 264, tuning: HARDWARE },
  { format: "f32", epilogue: "store", rows: 15, n: 2, k: 8, tuning: HARDWARE },
  { format: "f32", epilogue: "add", rows: 16, n: 6, k: 64, tuning: HARDWARE },
  { format: "f32", epilogue: "swiglu", rows: 1, n: 64, k: 704, tuning: HARDWARE },
  { format: "bf16", epilogue: "geglu", rows: 3, n: 64, k: 264, tuning: SOFTWARE },
  { format: "f32", epilogue: "geglu", rows: 2, n: 6, k: 704, tuning: HARDWARE },
];

for (const shape of CASES) {
  const { format, epilogue, rows, n, k, tuning } = shape;
  // What one way of multiplying has of a type and an epilogue, the other has in every run.
  const { test } = tuning === SOFTWARE && rows < 16 || rows % 3 === 0 ? Deno : drawn;
  test(`matmul: ${format} ${epilogue}, ${rows} x [${n}, ${k}], ${tuning.lanes} lanes`, async () => {
    await check(shape);
  });
}

Deno.test("matmul: a soft cap, also of what lies far beyond it", async () => {
  const [n, k] = [6, 8];
  const x = numbers(k, 1).map((value, i) => value * (i === 0 ? 1e6 : 10));
  const values = weights("f32", n, k);
  const matrix = uploadMatrix(device, values, { format: "f32", cols: k, shards: [n] });
  for (const most of [1, 30]) {
    const out = device.filled(n, BEFORE);
    const shape = { rows: 1, epilogue: capEpilogue(most), tuning: SOFTWARE, label: "test" };
    await device.run(matmul({ matrix, x: device.floats(x), out }, shape));
    const plain = reference(x, values, {
      format: "f32",
      epilogue: "store",
      rows: 1,
      n,
      k,
      tuning: SOFTWARE,
    });
    const expected = plain.map(({ value }) => most * Math.tanh(value / most));
    assertClose(await device.readFloats(out), expected, 1e-5, `cap ${most}`);
  }
});
