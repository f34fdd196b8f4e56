/** Experts whose matrices are rows of one tensor, as transformers 5 names them. */
import assert from "node:assert/strict";
import { convertCheckpoint } from "../../src/model/checkpoint/convert.ts";
import { openCheckpoint } from "../../src/model/checkpoint/checkpoint.ts";
import { parseModelConfig } from "../../src/model/config/config.ts";
import { quantizableTensors } from "../../src/model/weights/quantizable.ts";
import { checkTarget, findTensor, targetTensors } from "../../src/model/weights/tensors.ts";

const GOLDEN = new URL("../golden/qwen3_moe/", import.meta.url).pathname;

interface Entry {
  dtype: string;
  shape: number[];
  data_offsets: [number, number];
}

/** The golden's file with the experts of each layer in two tensors of three dimensions. */
function stackedFile(): Uint8Array<ArrayBuffer> {
  const file = Deno.readFileSync(`${GOLDEN}/model.safetensors`);
  const size = Number(new DataView(file.buffer).getBigUint64(0, true));
  const { __metadata__: _, ...header }: Record<string, Entry> = JSON.parse(
    new TextDecoder().decode(file.subarray(8, 8 + size)),
  );
  const tensors = Object.entries(header);
  const bytesOf = ({ data_offsets: [begin, end] }: Entry) =>
    file.subarray(8 + size + begin, 8 + size + end);
  const out: Record<string, Entry> = {};
  const parts: Uint8Array[] = [];
  let at = 0;
  const put = (name: string, shape: number[], pieces: Uint8Array[]) => {
    const begin = at;
    for (const piece of pieces) at += piece.length;
    parts.push(...pieces);
    out[name] = { dtype: "BF16", shape, data_offsets: [begin, at] };
  };
  for (const [name, entry] of tensors) {
    const expert = /^(.*\.experts)\.0\.(gate|down)_proj\.weight$/.exec(name);
    if (!name.includes(".experts.")) put(name, entry.shape, [bytesOf(entry)]);
    if (expert === null) continue;
    const [, prefix = "", kind] = expert;
    const count = tensors.filter(([other]) =>
      other.startsWith(`${prefix}.`) && other.endsWith("down_proj.weight")
    ).length;
    const of = (i: number, module: string) =>
      bytesOf(header[`${prefix}.${i}.${module}.weight`] as Entry);
    const experts = Array.from({ length: count }, (_, i) =>
      i);
    const [rows = 0, cols = 0] = entry.shape;
    if (kind === "gate") {
      put(
        `${prefix}.gate_up_proj`,
        [count, 2 * rows, cols],
        experts.flatMap((i) => [of(i, "gate_proj"), of(i, "up_proj")]),
      );
    } else {
      put(`${prefix}.down_proj`, [count, rows, cols], experts.map((i) => of(i, "down_proj")));
    }
  }
  const text = new TextEncoder().encode(JSON.stringify(out));
  const result = new Uint8Array(8 + text.length + at);
  new DataView(result.buffer).setBigUint64(0, BigInt(text.length), true);
  result.set(text, 8);
  let end = 8 + text.length;
  for (const part of parts) {
    result.set(part, end);
    end += part.length;
  }
  return result;
}

async function withStacks(use: (folder: string, parent: string) => Promise<void>): Promise<void> {
  const parent = await Deno.makeTempDir({ prefix: "eyrie-test-" });
  const folder = `${parent}/stacks`;
  try {
    await Deno.mkdir(folder);
    await Deno.copyFile(`${GOLDEN}/config.json`, `${folder}/config.json`);
    await Deno.writeFile(`${folder}/model.safetensors`, stackedFile());
    await use(folder, parent);
  } finally {
    await Deno.remove(parent, { recursive: true });
  }
}

/** Bytes of every role of a target. */
function bytesOfRoles(folder: string): Map<string, string> {
  using checkpoint = openCheckpoint(folder);
  const config = parseModelConfig(folder, checkpoint.json("config.json"), undefined);
  assert.deepEqual(checkTarget(checkpoint, config), []);
  return new Map(
    targetTensors(config).map((spec) => {
      const tensor = findTensor(checkpoint, spec);
      assert.ok(tensor);
      assert.deepEqual(tensor.shape, spec.shape);
      const bytes = new Uint8Array(tensor.size);
      checkpoint.read(tensor, 0, bytes);
      return [spec.role, bytes.toHex()];
    }),
  );
}

Deno.test("experts in one tensor have the rows of experts in many, quantized ones too", async () => {
  await withStacks(async (folder, parent) => {
    assert.deepEqual(bytesOfRoles(folder), bytesOfRoles(GOLDEN));
    const quantize = { to: "q8", names: quantizableTensors } as const;
    const [many, stacks] = [`${parent}/many`, `${parent}/converted`];
    const how = { force: false, shardBytes: 1e9, quantize };
    await convertCheckpoint({ ...how, from: GOLDEN, to: many });
    await convertCheckpoint({ ...how, from: folder, to: stacks });
    const [expected, found] = [bytesOfRoles(many), bytesOfRoles(stacks)];
    assert.deepEqual(found, expected);
    assert.notDeepEqual(found, bytesOfRoles(folder));
  });
});

Deno.test("a stack of another shape is refused by name", async () => {
  await withStacks((folder) => {
    using checkpoint = openCheckpoint(folder);
    const json = { ...checkpoint.json("config.json") as object, moe_intermediate_size: 40 };
    const config = parseModelConfig(folder, json, undefined);
    assert.throws(
      () => checkTarget(checkpoint, config),
      /tensor "model\.layers\.0\.mlp\.experts\.gate_up_proj" has shape \[\d+,64,64\], expected \[\d+,80,64\]/,
    );
    return Promise.resolve();
  });
});
