import assert from "node:assert/strict";
import {
  costsKey,
  type CostsOf,
  costsPath,
  lookAtCosts,
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
    assert.equal(readCosts(path, "a", fail), undefined);
    assert.deepEqual(lookAtCosts(path), { path, adapters: [], problem: undefined });
    writeCosts(path, "a", SIMPLE, fail);
    writeCosts(path, "b", { ...SIMPLE, host: 9 }, fail);
    writeCosts(path, "a", { ...SIMPLE, host: 3 }, fail);
    assert.equal(readCosts(path, "a", fail)?.host, 3);
    assert.deepEqual(readCosts(path, "b", fail), { ...SIMPLE, host: 9 });
    assert.equal(readCosts(path, "c", fail), undefined);
    writeCosts(path, "c", { ...SIMPLE, adapter: "another" }, fail);
    assert.deepEqual(lookAtCosts(path), {
      path,
      adapters: [{ adapter: "an adapter", tables: 2 }, { adapter: "another", tables: 1 }],
      problem: undefined,
    });
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
      assert.equal(readCosts(path, "a", warn), undefined);
      assert.match(lookAtCosts(path).problem ?? "", /^cannot use the cost tables ".*costs.json": /);
    }
    assert.equal(warnings.length, 4);
    assert.match(warnings[2] ?? "", /^cannot use the cost tables ".*": its format is not /);
    writeCosts(`${path}/below/costs.json`, "a", SIMPLE, warn);
    assert.match(warnings[4] ?? "", /^cannot write the cost tables /);
  }));

Deno.test("a table that cannot be read is a warning for its own model alone, and stays in the file", () =>
  inFolder((path) => {
    writeCosts(path, "a", SIMPLE, fail);
    writeCosts(path, "b", { ...SIMPLE, verify: [] }, fail);
    const warnings: string[] = [];
    writeCosts(path, "c", SIMPLE, fail);
    assert.deepEqual([readCosts(path, "a", fail), readCosts(path, "c", fail)], [SIMPLE, SIMPLE]);
    assert.equal(readCosts(path, "b", (line) => warnings.push(line)), undefined);
    assert.equal(warnings.length, 1);
    assert.match(
      warnings[0] ?? "",
      /^cannot use the cost tables ".*": verify is empty; measuring again$/,
    );
    const { adapters, problem } = lookAtCosts(path);
    assert.deepEqual(adapters, [{ adapter: "an adapter", tables: 2 }]);
    assert.match(problem ?? "", /^cannot use the table "b" of ".*": verify is empty$/);
  }));
