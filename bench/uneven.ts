/** Throw-away: matmuls of widths that divide into no stages. */
import { matmul } from "../shaders/matmul/matmul.ts";
import { shapeKey, splitKOf } from "../shaders/matmul/matmul_shape.ts";
import { tuning, WEIGHT_BYTES, type WeightFormat } from "../src/gpu/matrix.ts";
import { openGpu } from "../src/gpu/device.ts";
import { openAllocations } from "./allocations.ts";
import { time } from "./latent_layer.ts";

const small = Deno.args.includes("small");
using gpu = await openGpu();
const rules = small ? tuning(false) : tuning(gpu.info.software, gpu.limits, gpu.info.backend);
const shapes: [number, number][] = small ? [[64, 192]] : [[2048, 10944], [256, 704], [4096, 11008]];
for (const [n, k] of shapes) {
  for (
    const format of (k !== 10944 ? ["bf16"] : ["q8", "q4", "bf16"]) as WeightFormat[]
  ) {
    using from = openAllocations(gpu);
    const copies = small ? 1 : Math.min(8, Math.ceil(2e8 / (n * k * WEIGHT_BYTES[format])));
    const matrices = Array.from({ length: copies }, () => from.matrix(n, k, format));
    const most = 256;
    const [x, out] = [from.random((most + 16) * k), from.random(4 * (most + 16) * n)];
    await from.filled();
    if (!small) {
      await time(
        gpu,
        matrices.flatMap((matrix) =>
          matmul({ matrix, x, out }, { rows: 1, epilogue: "store", tuning: rules, label: "warm" })
        ),
        Infinity,
        300,
      );
    }
    const one = matrices[0]!;
    const by = splitKOf(one, rules);
    for (const rows of small ? [1, 8] : [1, 4, 8, 256]) {
      const texts: string[] = [];
      for (const splitK of [...new Set([1, by])]) {
        for (const groups of rows === 1 ? [4, 8] : [8]) {
          const stages = rows > 1 ? [32] : format === "bf16" ? [0, 32, 64] : [32, 64, 128];
          for (const stage of stages) {
            if (stage === 0 && (groups !== 8 || splitK > 1)) continue;
            const launches = new Map([[shapeKey(one), new Map([[rows, { stage, groups }]])]]);
            const t = { ...rules, launches };
            let plan;
            try {
              plan = matrices.flatMap((matrix) =>
                matmul({ matrix, x, out }, {
                  rows,
                  epilogue: "store",
                  splitK,
                  tuning: t,
                  label: "m",
                })
              );
            } catch {
              continue;
            }
            const turns = small ? 1 : Math.max(1, Math.ceil(24 / copies / (rows > 8 ? 8 : 1)));
            const ms = await time(
              gpu,
              Array.from({ length: turns }, () => plan).flat(),
              Infinity,
              small ? 5 : 30,
            );
            texts.push(
              `${splitK}/${groups}/${stage}:${(ms * 1000 / copies / turns).toFixed(1)}(${
                plan[0]!.kernel.name.split("_")[1]
              })`,
            );
          }
        }
      }
      console.log(
        `${n}x${k} ${format} lanes ${one.lanes} rows ${rows}, splitK/groups/stage: ${
          texts.join(" ")
        }`,
      );
    }
  }
}
