// Compiles one kernel and no other.
import { matmulTensorFew } from "../../shaders/tensor/matmul_tensor_few.ts";
import { matmulTensor } from "../../shaders/tensor/matmul_tensor.ts";
import { storage } from "../../src/gpu/arena.ts";
import { openGpu } from "../../src/gpu/device.ts";
import type { MatrixUnit } from "../../src/gpu/matrix_unit.ts";
import { compiler } from "../../src/gpu/program.ts";

const gpu = await openGpu({ webgpu: "dawn" });
const unit = gpu.matrixUnit as MatrixUnit;
const [kind = "few", rowsText = "8", n = "4096", k = "14336", split = "4", ...tile] = Deno.args;
const rows = Number(rowsText);
const of = (label: string, size: number) => ({ buffer: storage(gpu.device, label, size) });
const [N, K] = [Number(n), Number(k)];
const buffers = {
  x: of("x", 4 * 16 * K), out: of("out", 4 * 16 * N * Number(split)),
  wScales: of("w", 4 * N), xScales: of("s", 64),
};
const shard = { operand: of("weights", 2 * N * K), first: 0, rows: N };
const shape = {
  unit, rows, matrix: { rows: N, cols: K }, shard, splitK: Number(split), halved: true, label: "one",
};
const [a = 0, b = 0, c = 0, d = 0] = tile.map(Number);
const plan = kind === "few"
  ? matmulTensorFew(buffers, { ...shape, tile: { columns: a, stage: b, ahead: c, branched: d === 1 } })
  : matmulTensor(buffers, { ...shape, tile: { subgroups: 4, grid: [1, 4], own: [1, 1], stage: 64, ahead: 2, early: true, unrolled: true } });
await compiler(gpu).compile([plan]);
Deno.exit(0);
