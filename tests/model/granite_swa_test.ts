import assert from "node:assert/strict";
import { parseModelConfig } from "../../src/model/config/config.ts";
import { denseLayer } from "./dense_layer.ts";

type Change = Readonly<Record<string, unknown>>;

/** Of each layer its window, and the base of its rope, 0 where it has none. */
function layersOf(change: Change): (readonly [number | undefined, number])[] {
  const path = new URL("../golden/granite_swa/config.json", import.meta.url);
  const golden = JSON.parse(Deno.readTextFileSync(path));
  const config = JSON.parse(JSON.stringify({ ...golden, ...change }));
  const { layers, ropes } = parseModelConfig("g", config, undefined);
  return layers.map((layer) => {
    const { window, rope, sinks } = denseLayer(layer).attention;
    assert.ok(sinks);
    const { theta, scaling } = ropes[rope] ?? assert.fail();
    return [window, scaling.kind === "none" ? 0 : theta];
  });
}

Deno.test("granite_swa: every fourth layer sees all, and each layer has its own base", () => {
  const bases = [[undefined, 0], [8, 1e4], [8, 1e4], [8, 500]];
  assert.deepEqual(layersOf({}), bases);
  assert.deepEqual(layersOf({ layer_types: null }), bases);
  const saved = { rope_theta: undefined, rope_parameters: { rope_type: "default", rope_theta: 7 } };
  assert.deepEqual(layersOf(saved), bases);
  assert.deepEqual(layersOf({ layer_types: null, sliding_window: undefined }).at(-1), [128, 500]);
});

Deno.test("granite_swa: without bases all layers have that of the rope, with zeros alone none", () => {
  const thetas = (change: Change) => layersOf(change).map(([, theta]) => theta);
  assert.deepEqual(thetas({ layer_rope_theta: null }), Array(4).fill(1e4));
  assert.deepEqual(thetas({ layer_rope_theta: [0, 0, 0, 0] }), Array(4).fill(0));
  for (const layer_rope_theta of [[1e4], [1, 2, 3, -1], [1, 2, 3, "4"], 1e4]) {
    assert.throws(() => layersOf({ layer_rope_theta }), /layer_rope_theta .*for each of 4 layers/);
  }
});

Deno.test("granite_swa: scaling of the rope applies to every base, and to the context", () => {
  const path = new URL("../golden/granite_swa/config.json", import.meta.url);
  const golden = JSON.parse(Deno.readTextFileSync(path));
  const rope_scaling = { rope_type: "linear", factor: 2 };
  const { ropes, maxPositions } = parseModelConfig("g", { ...golden, rope_scaling }, undefined);
  const scaling = { kind: "linear", factor: 2 };
  assert.deepEqual(ropes, [
    { theta: 1e4, width: 16, scaling },
    { theta: 500, width: 16, scaling },
    { theta: 1, width: 16, scaling: { kind: "none" } },
  ]);
  assert.equal(maxPositions, 1024);
});
