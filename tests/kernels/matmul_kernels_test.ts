// A matmul is put together of parts that know nothing of each other: every combination must compile.

import assert from "node:assert/strict";
import { qkvEpilogue } from "../../kernels/matmul/qkv.ts";
import type { Heads, KvPlace } from "../../kernels/lib/heads.ts";
import { capEpilogue, gatedByEpilogue } from "../../kernels/lib/epilogue.ts";
import { type Epilogue, PLAIN } from "../../kernels/lib/epilogue.ts";
import { matmulKernel } from "../../kernels/matmul/matmul_kernels.ts";
import { partialEpilogue } from "../../kernels/matmul/matmul_partials.ts";
import { PARTIAL_WORDS, type PartialKind } from "../../kernels/lib/partial.ts";
import type { MatmulShape } from "../../kernels/matmul/matmul_shape.ts";
import { BLOCK_VEC8S, isInteger, type WeightFormat } from "../../src/gpu/weight_format.ts";
import { KV_BYTES, type KvDtype } from "../../src/gpu/kv.ts";
import { openDevice } from "../gpu/device.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const LANES = 16;
const SIZES = { rows: 2, pairs: 2, groups: 2 } as const;

function shapesOf(format: WeightFormat): MatmulShape[] {
  const stage = BLOCK_VEC8S[format] * LANES;
  const dots = isInteger(format) ? ["whole", "packed"] as const : ["floats"] as const;
  return [
    { kind: "cached", ...SIZES },
    ...dots.flatMap((dots) => [
      { kind: "staged", dots, stage, ...SIZES } as const,
      { kind: "prefetch", dots, stage, ...SIZES } as const,
    ]),
  ];
}

const [some] = [device.words([0])];
const PLACE: KvPlace = { rope: some, rows: some, pages: some, keys: some, values: some };
const MATRIX = {
  format: "bf16",
  rowOrder: "stacked",
  rows: 8,
  cols: 256,
  lanes: LANES,
  shards: [],
} as const;

const EPILOGUES: readonly Epilogue[] = [
  ...Object.values(PLAIN),
  capEpilogue(30),
  gatedByEpilogue(some),
  ...(Object.keys(PARTIAL_WORDS) as PartialKind[]).map((kind) =>
    partialEpilogue(MATRIX, { kind, vocab: 8, count: 1, first: 0 })
  ),
  ...(Object.keys(KV_BYTES) as KvDtype[]).flatMap((kvDtype) => {
    const heads: Heads = { heads: 2, kvHeads: 1, headDim: 16, tablePages: 1, kvDtype };
    return [qkvEpilogue(PLACE, heads), qkvEpilogue({ ...PLACE, bias: some }, heads)];
  }),
];

for (const format of Object.keys(BLOCK_VEC8S) as WeightFormat[]) {
  Deno.test(`matmul kernels: ${format} with every epilogue, in every kind`, async () => {
    for (const shape of shapesOf(format)) {
      for (const epilogue of EPILOGUES) {
        const { name, code } = matmulKernel(shape, { format, epilogue, lanes: LANES });
        device.gpu.device.pushErrorScope("validation");
        device.gpu.device.createShaderModule({ label: name, code });
        const error = await device.gpu.device.popErrorScope();
        assert.equal(error?.message, undefined, name);
      }
    }
  });
}
