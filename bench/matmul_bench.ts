import { type Finish, matmul } from "../shaders/matmul.ts";
import { tuning } from "../src/gpu/matrix.ts";
import { openDevice } from "../tests/gpu/device.ts";
import { benchPlan } from "./repeat.ts";

const device = await openDevice();

interface Shape {
  readonly name: string;
  readonly n: number;
  readonly k: number;
  readonly finish: Finish;
}

const SHAPES: readonly Shape[] = [
  { name: "fledgling qkv", n: 512, k: 256, finish: "store" },
  { name: "fledgling gateUp", n: 1408, k: 256, finish: "swiglu" },
  { name: "fledgling down", n: 256, k: 704, finish: "add" },
  { name: "fledgling head", n: 2048, k: 256, finish: "store" },
  { name: "4096 wide o", n: 4096, k: 4096, finish: "store" },
];

for (const { name, n, k, finish } of SHAPES) {
  // bf16, two to a word; the time does not depend on the values.
  const operand = device.filled(n * k / 2, 1);
  const matrix = {
    format: "bf16",
    rows: n,
    cols: k,
    lanes: tuning(device.gpu.info.software).lanes,
    shards: [{ operand, first: 0, rows: n }],
  } as const;
  for (const rows of [1, 2, 4, 8]) {
    const buffers = { matrix, x: device.filled(rows * k, 1), out: device.filled(rows * n) };
    const shape = { rows, finish, tuning: tuning(device.gpu.info.software), label: name };
    const group = `matmul ${name} [${n}, ${k}] bf16 ${finish}`;
    await benchPlan(device, matmul(buffers, shape), { group, name: `${rows} rows` });
  }
}
