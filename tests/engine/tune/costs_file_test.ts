import assert from "node:assert/strict";
import {
  costsKey,
  type CostsOf,
  costsPath,
  readCosts,
  writeCosts,
} from "../../../src/engine/tune/costs/costs_file.ts";
import { SIMPLE } from "../../speculate/costs/table.ts";

const OF: CostsOf = {
  adapter: "NVIDIA H200, vulkan",
  model: "target",
  draft: "head",
  kvDtype: "f32",
  weightBytes: 1000,
};

function fail(line: string): never {
  assert.fail(line);
}

function inFolder(test: (path: string) => void): void {
  const folder = Deno.makeTempDirSync();
  try {
    test(`${folder}/eyrie/costs.json`);
  } finally {
    Deno.removeSync(folder, { recursive: true });
  }
}

Deno.test("cost tables lie beside the tuning cache", () => {
  assert.equal(costsPath("/c/eyrie/tuning.json"), "/c/eyrie/costs.json");
});

Deno.test("another adapter, model, draft or kv dtype is another key", () => {
  const others: Partial<CostsOf>[] = [
    {},
    { adapter: "NVIDIA H100, vulkan" },
    { model: "target q8" },
    { draft: "other" },
    { draft: undefined },
    { weightBytes: 1001 },
    { kvDtype: "f16" },
  ];
  assert.equal(new Set(others.map((other) => costsKey({ ...OF, ...other }))).size, others.length);
});

Deno.test("what is written is read again; tables of other models stay", () =>
  inFolder((path) => {
    assert.deepEqual(readCosts(path, fail), new Map());
    writeCosts(path, "a", SIMPLE, fail);
    writeCosts(path, "b", { ...SIMPLE, host: 9 }, fail);
    writeCosts(path, "a", { ...SIMPLE, host: 3 }, fail);
    const found = readCosts(path, fail);
    assert.deepEqual([...found].map(([key, { host }]) => [key, host]), [["a", 3], ["b", 9]]);
    assert.deepEqual(found.get("b"), { ...SIMPLE, host: 9 });
    const names = [...Deno.readDirSync(path.slice(0, path.lastIndexOf("/")))];
    assert.deepEqual(names.map(({ name }) => name), ["costs.json"]);
  }));

Deno.test("a cache that cannot be used is a warning, never a failure", () =>
  inFolder((path) => {
    writeCosts(path, "a", SIMPLE, fail);
    const warnings: string[] = [];
    const warn = (line: string) => void warnings.push(line);
    for (const text of ["{", "[]", '{"format":"other"}', '{"format":"eyrie-costs-cache-1"}']) {
      Deno.writeTextFileSync(path, text);
      assert.deepEqual(readCosts(path, warn), new Map());
    }
    assert.equal(warnings.length, 4);
    assert.match(warnings[2] ?? "", /^cannot use the cost tables ".*": its format is not /);
    writeCosts(`${path}/below/costs.json`, "a", SIMPLE, warn);
    assert.match(warnings[4] ?? "", /^cannot write the cost tables /);
  }));

Deno.test("a table that cannot be used is left out, and no other with it", () =>
  inFolder((path) => {
    writeCosts(path, "a", SIMPLE, fail);
    writeCosts(path, "b", { ...SIMPLE, verify: [] }, fail);
    const warnings: string[] = [];
    assert.deepEqual([...readCosts(path, (line) => warnings.push(line)).keys()], ["a"]);
    const [warning = "", ...more] = warnings;
    assert.match(warning, /^cannot use the table "b" of ".*": verify is empty; measuring again$/);
    assert.deepEqual(more, []);
    writeCosts(path, "c", SIMPLE, fail);
    assert.deepEqual([...readCosts(path, fail).keys()], ["a", "c"]);
  }));
