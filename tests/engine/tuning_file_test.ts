import assert from "node:assert/strict";
import { dirname } from "node:path";
import {
  adapterKey,
  lookAtTuning,
  readTuning,
  tuningPath,
  writeTuning,
} from "../../src/engine/tune/tuning_file.ts";
import { replaceFile } from "../../src/engine/tune/replace_file.ts";
import type { DeviceInfo } from "../../src/gpu/device.ts";
import type { Launch } from "../../src/gpu/tuning.ts";

const LAUNCH: Launch = { stage: 64, groups: 8, pairs: 1, prefetch: true };
const NOTHING = { launches: new Map(), joined: new Map() };
const ONE = { ...NOTHING, launches: new Map([["s", new Map([[1, LAUNCH]])]]) };
const INFO: DeviceInfo = {
  webgpu: "builtin",
  adapter: "NVIDIA H200",
  hardware: "4318 9013",
  backend: "vulkan",
  software: false,
  features: [],
};

function fail(line: string): never {
  assert.fail(line);
}

async function inFolder(test: (path: string) => void | Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    await test(`${folder}/eyrie/tuning.json`);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

Deno.test("a file that is written while another process reads it is the whole old text or the whole new one", async () => {
  await inFolder(async (path) => {
    replaceFile(path, "before");
    // It stays with the file that was opened under the name before.
    await Deno.link(path, `${path}.opened`);
    await Deno.chmod(path, 0o662);
    replaceFile(path, "after");
    assert.equal((await Deno.stat(path)).mode! & 0o777, 0o662, "permissions are kept");
    assert.equal(await Deno.readTextFile(`${path}.opened`), "before");
    assert.equal(await Deno.readTextFile(path), "after");
    const names = await Array.fromAsync(Deno.readDir(dirname(path)), ({ name }) => name);
    assert.deepEqual(names.sort(), ["tuning.json", "tuning.json.opened"]);
  });
});

Deno.test("the tuning cache lies where each system keeps caches", () => {
  const path = (env: Record<string, string>, os: typeof Deno.build.os = "linux") =>
    tuningPath((name) => env[name], os);
  const HOME = "/home/ada";
  assert.equal(path({ HOME }), "/home/ada/.cache/eyrie/tuning.json");
  assert.equal(path({ HOME, XDG_CACHE_HOME: "/c" }), "/c/eyrie/tuning.json");
  assert.equal(path({ HOME, XDG_CACHE_HOME: "" }), "/home/ada/.cache/eyrie/tuning.json");
  assert.equal(path({ HOME }, "darwin"), "/home/ada/Library/Caches/eyrie/tuning.json");
  assert.equal(path({ HOME, LOCALAPPDATA: "C:\\L" }, "windows"), "C:\\L/eyrie/tuning.json");
  assert.equal(path({}), undefined);
});

Deno.test("another adapter, backend or driver is another key", () => {
  const keys = [
    adapterKey(INFO, "570.1"),
    adapterKey(INFO, "580.2"),
    adapterKey({ ...INFO, adapter: "NVIDIA H100" }, "570.1"),
    adapterKey({ ...INFO, hardware: "4318 9014" }, "570.1"),
    adapterKey({ ...INFO, backend: "metal" }, "570.1"),
    adapterKey({ ...INFO, webgpu: "dawn" }, "570.1"),
  ];
  assert.equal(new Set(keys).size, keys.length);
  assert.match(keys[0] ?? "", /^NVIDIA H200, 4318 9013, vulkan, 570\.1, deno \S+, kernels \d+$/);
});

Deno.test("what is written is read again; adapters, shapes and rows add up", () =>
  inFolder((path) => {
    assert.deepEqual(readTuning(path, "a", fail), NOTHING);
    writeTuning(path, "a", ONE, fail);
    writeTuning(path, "b", ONE, fail);
    const other = { ...LAUNCH, stage: 0 };
    writeTuning(path, "a", {
      launches: new Map([["s", new Map([[4, other]])], ["t", new Map()]]),
      joined: new Map([["s t", false]]),
    }, fail);
    assert.deepEqual(readTuning(path, "a", fail), {
      launches: new Map([["s", new Map([[1, LAUNCH], [4, other]])], ["t", new Map()]]),
      joined: new Map([["s t", false]]),
    });
    assert.deepEqual(readTuning(path, "b", fail), ONE);
    const folder = path.slice(0, path.lastIndexOf("/"));
    assert.deepEqual([...Deno.readDirSync(folder)].map(({ name }) => name), ["tuning.json"]);
    assert.deepEqual(lookAtTuning(path), {
      path,
      adapters: [{ adapter: "a", launches: 3 }, { adapter: "b", launches: 1 }],
      problem: undefined,
    });
  }));

for (
  const [name, text] of [
    ["half a file", '{ "format": 1, "adap'],
    ["another format", '{ "format": 2, "adapters": {} }'],
    ["something else", "[1, 2]"],
    [
      "an MLP that is joined somehow",
      '{"format":1,"adapters":{"a":{}},"joined":{"a":{"s t":"once"}}}',
    ],
    ["a launch without groups", '{"format":1,"adapters":{"a":{"s":{"1":{"stage":64}}}}}'],
    [
      "a launch of other pairs",
      '{"format":1,"adapters":{"a":{"s":{"1":{"stage":64,"groups":8,"pairs":3}}}}}',
    ],
    [
      "a launch that prefetches in another way",
      '{"format":1,"adapters":{"a":{"s":{"1":{"stage":64,"groups":8,"prefetch":2}}}}}',
    ],
  ] as const
) {
  Deno.test(`a tuning cache with ${name} is one warning, and is written anew`, () =>
    inFolder((path) => {
      writeTuning(path, "a", NOTHING, fail);
      Deno.writeTextFileSync(path, text);
      const warnings: string[] = [];
      assert.deepEqual(readTuning(path, "a", (line) => warnings.push(line)), NOTHING);
      assert.equal(warnings.length, 1);
      assert.match(warnings[0] ?? "", /^cannot use the tuning cache ".*tuning\.json": /);
      assert.match(lookAtTuning(path).problem ?? "", /^cannot use/);
      writeTuning(path, "a", ONE, fail);
      assert.deepEqual(readTuning(path, "a", fail), ONE);
    }));
}

Deno.test("what another version wrote of its adapters is no fault, and stays", () =>
  inFolder((path) => {
    writeTuning(path, "a", NOTHING, fail);
    const newer = { s: { 1: { stage: 64, groups: 8, pairs: 3 } } };
    Deno.writeTextFileSync(path, JSON.stringify({ format: 1, adapters: { newer } }));
    assert.deepEqual(readTuning(path, "a", fail), NOTHING);
    writeTuning(path, "a", ONE, fail);
    assert.deepEqual(readTuning(path, "a", fail), ONE);
    assert.deepEqual(JSON.parse(Deno.readTextFileSync(path)).adapters.newer, newer);
    const { adapters, problem } = lookAtTuning(path);
    assert.deepEqual(adapters, [{ adapter: "a", launches: 1 }]);
    assert.match(problem ?? "", /a launch has other pairs than 1/);
  }));

Deno.test("a cache folder that cannot be made is a warning", () =>
  inFolder((path) => {
    const file = path.slice(0, path.lastIndexOf("/"));
    Deno.writeTextFileSync(file, "");
    const warnings: string[] = [];
    writeTuning(path, "a", NOTHING, (line) => warnings.push(line));
    assert.equal(warnings.length, 1);
    assert.match(warnings[0] ?? "", /^cannot write the tuning cache /);
  }));

Deno.test("processes that write at once leave a whole file", () =>
  inFolder(async (path) => {
    const module = new URL("../../src/engine/tune/tuning_file.ts", import.meta.url);
    const config = new URL("../../deno.json", import.meta.url).pathname;
    const script = `import { writeTuning } from "${module}";
for (let i = 0; i < 50; i++) {
  const rows = new Map([[1, { stage: 64, groups: 8 }]]);
  const measured = { launches: new Map([["s", rows]]), joined: new Map() };
  writeTuning("${path}", Deno.pid + "." + i, measured, (line) => { throw line; });
}`;
    const args = ["run", "-A", "--config", config, "-"];
    const writers = [1, 2, 3].map(() => {
      const child = new Deno.Command(Deno.execPath(), { args, stdin: "piped" }).spawn();
      const writer = child.stdin.getWriter();
      return writer.write(new TextEncoder().encode(script)).then(() => writer.close())
        .then(() => child.status);
    });
    let running = true;
    const written = Promise.all(writers).finally(() => running = false);
    while (running) {
      readTuning(path, "a", fail); // never half a file
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    assert.deepEqual((await written).map(({ code }) => code), [0, 0, 0]);
    assert.ok(lookAtTuning(path).adapters.length > 0); // of those who wrote at once one counts
  }));
