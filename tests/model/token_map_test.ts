import assert from "node:assert/strict";
import { readTokenMap } from "../../src/model/checkpoint/token_map.ts";
import { safetensorsFiles, type Tensors } from "./draft_formats.ts";
import { op, statePickle, tensorOps, zip } from "./torch_files.ts";

const IDS = Array.from({ length: 64 }, (_, i) => 2047 - 31 * i);

async function withFile<T>(
  name: string,
  content: string | Uint8Array,
  use: (path: string) => T | Promise<T>,
): Promise<T> {
  const folder = await Deno.makeTempDir({ prefix: "eyrie-test-" });
  try {
    const path = `${folder}/${name}`;
    await Deno.writeFile(
      path,
      typeof content === "string" ? new TextEncoder().encode(content) : content,
    );
    return await use(path);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

Deno.test("token map: a .json list; what is no list of the model's ids is refused", async () => {
  await withFile("map.json", JSON.stringify(IDS), (path) => {
    assert.deepEqual([...readTokenMap(path, 2048)], IDS);
    assert.throws(() => readTokenMap(path, 2047), {
      name: "UsageError",
      message: /^Cannot use token map ".*map\.json": entry 0 is 2047, token ids are 0 to 2046$/,
    });
  });
  const refused = (json: string, message: RegExp) =>
    withFile(
      "map.json",
      json,
      (path) => assert.throws(() => readTokenMap(path, 2048), { name: "UsageError", message }),
    );
  await refused("{}", /expected a list of token ids$/);
  await refused("[1, 2, 3]", /it has 3 token ids, at least 16$/);
  await refused(JSON.stringify([...IDS, IDS[3]]), /a token id occurs twice$/);
  await refused(JSON.stringify([...IDS, "x"]), /entry 64 is "x"/);
  await refused("[1,", /JSON/);
  assert.throws(() => readTokenMap("/nowhere/map.json", 9), /Cannot open/);
});

/** A file of torch.save that holds what these opcodes leave. */
function saved(ops: readonly number[], storages: Readonly<Record<string, Uint8Array>> = {}) {
  const data = Object.entries(storages).map(([key, bytes]) => [`archive/data/${key}`, { bytes }]);
  const pickle = Uint8Array.from([...op.proto, ...ops, ...op.stop]);
  return zip({ "archive/data.pkl": { bytes: pickle }, ...Object.fromEntries(data) });
}

Deno.test("token map: what torch.save wrote, a list as published or a tensor", async () => {
  const appends = [0x65];
  // In batches, as Python's pickle appends to long lists.
  const list = [
    ...op.emptyList,
    ...[IDS.slice(0, 40), IDS.slice(40)].flatMap((some) => [
      ...[...op.mark, ...some.flatMap(op.int), ...appends],
    ]),
  ];
  await withFile("freq_64.pt", saved(list), (path) => {
    assert.deepEqual([...readTokenMap(path, 2048)], IDS);
  });
  const bytes = new Uint8Array(BigInt64Array.from(IDS, BigInt).buffer);
  const tensor = { storage: "LongStorage", key: "0", elements: IDS.length, shape: [IDS.length] };
  await withFile("map.pt", saved(tensorOps(tensor), { 0: bytes }), (path) => {
    assert.deepEqual([...readTokenMap(path, 2048)], IDS);
  });
  const dict = statePickle({ ids: tensor });
  const file = zip({ "archive/data.pkl": { bytes: dict }, "archive/data/0": { bytes } });
  await withFile("map.pt", file, (path) => {
    assert.throws(() => readTokenMap(path, 2048), /it holds no list of integers/);
  });
});

Deno.test("token map: a list of lists is refused, also one whose text would have 2^60 characters", async () => {
  const nested = [...op.emptyList, ...op.put(0)];
  for (let i = 0; i < 60; i++) {
    const twice = [...op.get(i), ...op.append, ...op.get(i), ...op.append];
    nested.push(...op.emptyList, ...op.put(i + 1), ...twice);
  }
  const one = [...op.emptyList, ...op.int(5), ...op.append];
  for (const list of [nested, [...op.emptyList, ...one, ...op.append]]) {
    await withFile("map.pt", saved(list), (path) => {
      assert.throws(() => readTokenMap(path, 2048), {
        message: /it holds a list of something else than integers$/,
      });
    });
  }
});

Deno.test("token map: the only tensor of a .safetensors file", async () => {
  const bytes = new Uint8Array(Int32Array.from(IDS).buffer);
  const ids = { dtype: "I32", shape: [IDS.length], bytes };
  const file = (tensors: Tensors) =>
    safetensorsFiles({ config: {}, tensors })["model.safetensors"] as Uint8Array;
  await withFile("map.safetensors", file({ ids }), (path) => {
    assert.deepEqual([...readTokenMap(path, 2048)], IDS);
  });
  await withFile("map.safetensors", file({ ids, others: ids }), (path) => {
    assert.throws(() => readTokenMap(path, 2048), /expected one tensor of I64 or I32/);
  });
});
