// Compiles one kernel and no other.
import { matmulTensorFew } from "../../shaders/tensor/matmul_tensor_few.ts";
import { matmulTensor } from "../../shaders/tensor/matmul_tensor.ts";
import { storage } from "../../src/gpu/arena.ts";
import { gzipSync, zstdDecompressSync } from "node:zlib";
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
  ? matmulTensorFew(buffers, { ...shape, tile: { columns: a, stage: b, ahead: c, branched: d === 1, pinned: tile[4] === "1" } })
  : matmulTensor(buffers, { ...shape, tile: { subgroups: 4, grid: [1, 4], own: [1, 1], stage: 64, ahead: 2, early: true, unrolled: true } });
await compiler(gpu).compile([plan]);
const folder = Deno.env.get("__GL_SHADER_DISK_CACHE_PATH");
function* files(at: string): Generator<string> {
  for (const { name, isDirectory } of Deno.readDirSync(at)) {
    if (isDirectory) yield* files(`${at}/${name}`);
    else if (name.endsWith(".bin")) yield `${at}/${name}`;
  }
}
if (folder) {
  for (const path of files(folder)) {
    const bytes = Deno.readFileSync(path);
    for (let i = 0; i + 4 < bytes.length; i++) {
      if (bytes[i] !== 0x28 || bytes[i + 1] !== 0xb5 || bytes[i + 2] !== 0x2f || bytes[i + 3] !== 0xfd) continue;
      let out: Uint8Array;
      try { out = zstdDecompressSync(bytes.subarray(i)); } catch (error) { console.log(`${i}: ${error}`); out = (error as { buffer?: Uint8Array }).buffer ?? new Uint8Array(); }
      if (out[8] !== 0x4e || out[9] !== 0x56) continue;
      const view = new DataView(out.buffer, out.byteOffset);
      for (let at = 8; at < 400; at += 4) {
        if (view.getUint32(at, true) === 1 && view.getUint32(at + 8, true) === 0x190) {
          const size = view.getUint32(at + 4, true);
          console.log(`SASS ${Deno.args.join(" ")} ${size} ${btoa(String.fromCharCode(...gzipSync(out.subarray(8 + 0x190, 8 + 0x190 + size))))}`);
        }
      }
    }
  }
}
Deno.exit(0);
