import assert from "node:assert/strict";
import { parseModelConfig } from "../../src/model/config/config.ts";
import type { ModelConfig } from "../../src/model/config/types.ts";
import { targetTensors } from "../../src/model/weights/tensors.ts";
import { openDevice } from "../gpu/device.ts";
import { checkpointInMemory, join } from "./checkpoint_in_memory.ts";
import { loader } from "./loaders.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

type Change = Readonly<Record<string, unknown>>;

function ernie(name: "ernie4_5" | "ernie4_5_moe", change: Change = {}): ModelConfig {
  const path = new URL(`../golden/${name}/config.json`, import.meta.url);
  const golden = JSON.parse(Deno.readTextFileSync(path));
  return parseModelConfig(name, JSON.parse(JSON.stringify({ ...golden, ...change })), undefined);
}

Deno.test("ernie4_5_moe: mixtures from the first to the last index, every so many layers", () => {
  const sparse = (change: Change) =>
    ernie("ernie4_5_moe", { num_hidden_layers: 6, ...change }).layers
      .flatMap(({ mlp }, i) => mlp.kind === "mixture" ? i : []);
  const range = (first: number, last: number, interval?: number) => ({
    moe_layer_start_index: first,
    moe_layer_end_index: last,
    moe_layer_interval: interval,
  });
  assert.deepEqual(sparse(range(1, 3)), [1, 2, 3]);
  assert.deepEqual(sparse(range(2, -1)), [2, 3, 4, 5]);
  assert.deepEqual(sparse(range(0, -1, 2)), [1, 3, 5]);
});

Deno.test("ernie4_5_moe: shared experts are one as wide as all, and the bias has one row", () => {
  const mixture = (change: Change = {}) => {
    const { mlp } = ernie("ernie4_5_moe", change).layers[1] ?? assert.fail();
    return mlp.kind === "mixture" ? mlp : assert.fail();
  };
  const { routing, shared } = mixture();
  assert.deepEqual([routing.scores, routing.numExperts, routing.topK, routing.normalize], [
    "biased_softmax",
    8,
    3,
    true,
  ]);
  assert.equal(shared?.intermediateSize, 64);
  assert.equal(mixture({ moe_num_shared_experts: 0 }).shared, undefined);
  const bias = targetTensors(ernie("ernie4_5_moe")).find(({ role }) =>
    role === "layers.1.routerBias"
  );
  assert.deepEqual(bias?.name, "model.layers.1.mlp.moe_statics.e_score_correction_bias");
  assert.deepEqual(bias.shape, [1, 8]);
});

Deno.test("ernie4_5_moe: the usual names of the numbers of experts win over its own", () => {
  const numbers = (change: Change) => {
    const { mlp } = ernie("ernie4_5_moe", change).layers[1] ?? assert.fail();
    return mlp.kind === "mixture" ? [mlp.routing.numExperts, mlp.routing.topK] : assert.fail();
  };
  assert.deepEqual(numbers({ num_experts: 16, num_experts_per_tok: 2 }), [16, 2]);
  assert.deepEqual(numbers({ moe_k: undefined, num_experts_per_tok: 2 }), [8, 2]);
});

for (
  const [name, change, message] of [
    ["ernie4_5", { use_bias: true }, /use_bias true, expected false/],
    ["ernie4_5_moe", { use_bias: true }, /use_bias true, expected false/],
    ["ernie4_5_moe", { moe_norm_min: 0.1 }, /moe_norm_min 0.1, expected 1e-12/],
    ["ernie4_5_moe", { moe_layer_interval: 0 }, /moe_layer_interval 0, expected an integer/],
    [
      "ernie4_5",
      { rope_scaling: { type: "linear", factor: 2, partial_rotary_factor: 0.5 } },
      /a partial rope together with .* interleaved pairs/,
    ],
  ] as const
) {
  Deno.test(`${name} with ${JSON.stringify(change)} is refused`, () => {
    assert.throws(() => ernie(name, change), message);
  });
}

for (const dtype of ["F32", "BF16"] as const) {
  Deno.test(`${dtype} heads with pairs side by side are loaded as heads in halves are`, async () => {
    // Two heads of q and one of k and of v, 8 rows each. Beside BF16 rows v makes the matrix F32.
    const memory = checkpointInMemory({ q: [dtype, 16, 8], k: [dtype, 8, 8], v: ["F32", 8, 8] });
    const load = loader(device.gpu, memory);
    const [q, k, v] = ["q", "k", "v"].map((name) => memory.tensor(name)) as [
      ReturnType<typeof memory.tensor>,
      ReturnType<typeof memory.tensor>,
      ReturnType<typeof memory.tensor>,
    ];
    const turned = [q, k].map((tensor) => ({ ...tensor, evenRowsFirst: 8 }));
    const matrix = load.heads("qkv", { turned, plain: [v] }, { headDim: 8, width: 8 });
    const words = await device.readWords(matrix.shards[0]?.operand ?? assert.fail());
    const row = (name: string, i: number) => {
      const bytes = memory.rows(name, i, i + 1);
      if (name === "v" || dtype === "F32") return bytes;
      const wide = new Uint32Array(new Uint16Array(bytes.slice().buffer)).map((bits) => bits << 16);
      return new Uint8Array(wide.buffer);
    };
    const even = [0, 2, 4, 6];
    const expected = [0, 1].flatMap((odd) => [
      ...even.map((i) => row("q", i + odd)),
      ...even.map((i) => row("q", 8 + i + odd)),
      ...even.map((i) => row("k", i + odd)),
      ...[0, 1, 2, 3].map((i) => row("v", 4 * odd + i)),
    ]);
    assert.deepEqual(new Uint8Array(words.buffer), join(expected));
  });
}
