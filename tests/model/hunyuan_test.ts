import assert from "node:assert/strict";
import { parseModelConfig } from "../../src/model/config/config.ts";
import type { ModelConfig } from "../../src/model/config/types.ts";
import { targetTensors } from "../../src/model/weights/tensors.ts";
import { denseLayer } from "./dense_layer.ts";

type Change = Readonly<Record<string, unknown>>;

function hunyuan(change: Change = {}): ModelConfig {
  const path = new URL("../golden/hunyuan_dense/config.json", import.meta.url);
  return parseModelConfig(
    "h",
    { ...JSON.parse(Deno.readTextFileSync(path)), ...change },
    undefined,
  );
}

Deno.test("hunyuan: with alpha the base is larger at every length, and the context is not", () => {
  const { ropes, maxPositions } = hunyuan();
  const theta = 1e4 * 1000 ** (32 / 30);
  assert.deepEqual(ropes, [{ theta, width: 32, scaling: { kind: "default" } }]);
  assert.equal(maxPositions, 512);
  const inside = { rope_type: "dynamic", alpha: 1000, rope_theta: 1e4, factor: 4 };
  const saved = hunyuan({
    rope_scaling: undefined,
    rope_theta: undefined,
    rope_parameters: inside,
  });
  assert.deepEqual([saved.ropes, saved.maxPositions], [ropes, 512]);
});

Deno.test("hunyuan: without alpha a rope is read as in other families", () => {
  const dynamic = hunyuan({ rope_scaling: { type: "dynamic", factor: 4 } });
  assert.deepEqual(dynamic.ropes[0]?.scaling, { kind: "dynamic", factor: 4, maxPositions: 512 });
  assert.equal(dynamic.maxPositions, 2048);
  assert.equal(hunyuan({ rope_scaling: null }).ropes[0]?.theta, 1e4);
  const wrong = { type: "dynamic", alpha: -1, factor: 1 };
  assert.throws(() => hunyuan({ rope_scaling: wrong }), /alpha -1, expected a number above 0/);
});

Deno.test("hunyuan: norms of q and k are after rope", () => {
  const config = hunyuan();
  const { qkNorm, normAfterRope } = denseLayer(config.layers[0]).attention;
  assert.deepEqual([qkNorm, normAfterRope], ["head", true]);
  const names = targetTensors(config).map(({ name }) => name);
  assert.ok(names.includes("model.layers.2.self_attn.query_layernorm.weight"));
  assert.ok(names.includes("model.layers.2.self_attn.key_layernorm.weight"));
});
