import assert from "node:assert/strict";
import { locate } from "../../../src/cli/open/locate.ts";
import { startHub } from "../../hub/hub.ts";
import { fakeIo } from "../fake.ts";

/** The message about a model, seen from the folder `at`. */
async function mistake(model: string, at: string): Promise<string> {
  const before = Deno.cwd();
  Deno.chdir(at);
  try {
    await locate({ model }, { io: fakeIo(), quiet: true });
  } catch (error) {
    assert.ok(error instanceof Error && error.name === "UsageError", String(error));
    return error.message;
  } finally {
    Deno.chdir(before);
  }
  assert.fail(`${model} was found`);
}

Deno.test("the embedded model has no name to be given", async () => {
  for (const model of ["fledgling", "fledgling/target"]) {
    await assert.rejects(locate({ model }, { io: fakeIo(), quiet: true }), {
      name: "UsageError",
      message: `Cannot use "${model}": it is the model that runs where none is named`,
    });
  }
});

Deno.test("random weights are only measured", async () => {
  await assert.rejects(locate({ model: "random:llama.json" }, { io: fakeIo(), quiet: true }), {
    name: "UsageError",
    message:
      'Cannot open "random:llama.json": random weights are for bench, bench load, breakeven and profile',
  });
});

Deno.test("a folder that is not there: what is near it, and where the path leaves what is there", async () => {
  const at = Deno.makeTempDirSync({ prefix: "eyrie-test-" });
  const env = { HF_HUB_OFFLINE: "1", HF_HUB_CACHE: `${at}/cache` };
  for (const [name, value] of Object.entries(env)) Deno.env.set(name, value);
  try {
    for (
      const folder of ["cache/models--org--toy-8b", "model", "models/fledgling/target", "notes"]
    ) {
      Deno.mkdirSync(`${at}/${folder}`, { recursive: true });
    }
    Deno.symlinkSync("/nowhere", `${at}/models/link`);
    const none = (path: string) => `Cannot open "${path}": no such folder`;
    const offline = (name: string) =>
      `Cannot use "${name}": HF_HUB_OFFLINE is set, and there is no such model in "${at}/cache"`;
    const cases: [string, string][] = [
      ["./modle", `${none("./modle")}; "." has no "modle", but "model", "models"`],
      [`${at}/xyz`, none(`${at}/xyz`)],
      ["modle", `${none("modle")}; "." has no "modle", but "model", "models"`],
      ["zephyr", `${none("zephyr")}; a model of the hub is org/name`],
      [
        "Qwen3-4B",
        `${none("Qwen3-4B")}; a model of the hub is org/name`,
      ],
      [
        "meta-llama/Llama-3.1-8B-Instrct",
        offline("meta-llama/Llama-3.1-8B-Instrct"),
      ],
      ["Qwen/Qwen3-4b", offline("Qwen/Qwen3-4b")],
      ["toy", `${none("toy")}; a model of the hub is org/name, the cache has "org/toy-8b"`],
      [
        "models/fledglin/target",
        `${none("models/fledglin/target")}; "models" has no "fledglin", but "fledgling"`,
      ],
      [
        "models/fledglng",
        `${offline("models/fledglng")}; nor is there a folder "models/fledglng"` +
        '; "models" has no "fledglng", but "fledgling"',
      ],
      ["models/qqq", `${offline("models/qqq")}; nor is there a folder "models/qqq"`],
      ["org/name", offline("org/name")],
    ];
    for (const [model, message] of cases) {
      assert.equal(await mistake(model, at), message);
    }
    const io = fakeIo();
    assert.equal(
      (await locate({ model: `${at}/model/` }, { io, quiet: true })).model,
      `${at}/model/`,
    );
  } finally {
    for (const name of Object.keys(env)) Deno.env.delete(name);
    Deno.removeSync(at, { recursive: true });
  }
});

Deno.test("a name that the hub does not have: near ones of its search, the cache and the known models", async () => {
  await using server = startHub({
    "org/Toy-1.5B-Instruct": [{ files: {}, commit: "1".repeat(40) }],
    "org/Toy-1.5B-Instruct-Long-Context-Chat": [{ files: {}, commit: "2".repeat(40) }],
  });
  const at = Deno.makeTempDirSync({ prefix: "eyrie-test-" });
  const env = { HF_ENDPOINT: server.endpoint, HF_HUB_CACHE: `${at}/cache` };
  for (const [name, value] of Object.entries(env)) Deno.env.set(name, value);
  try {
    Deno.mkdirSync(`${at}/cache/models--org--kept-8b`, { recursive: true });
    const cases: [string, string][] = [
      ["org/Toy-1.5B-Instrct", "org/Toy-1.5B-Instruct"],
      ["orf/toy-1.5b-instruct", "org/Toy-1.5B-Instruct"],
      ["org/kept-8c", "org/kept-8b"],
      ["meta-llama/Llama-3.1-8B-Instrct", "meta-llama/Llama-3.1-8B-Instruct"],
    ];
    for (const [model, near] of cases) {
      const message = await mistake(model, at);
      assert.match(message, new RegExp(`^Cannot get "${model}": there is no such model at `));
      assert.ok(message.includes(`did you mean "${near}"`), message);
    }
    assert.doesNotMatch(await mistake("org/boat", at), /did you mean/);
    // A known model that the hub does not show to us is not a typing error.
    assert.doesNotMatch(await mistake("meta-llama/Llama-3.1-8B-Instruct", at), /did you mean/);
  } finally {
    for (const name of Object.keys(env)) Deno.env.delete(name);
    Deno.removeSync(at, { recursive: true });
  }
});

Deno.test("where the hub does not answer, no model is proposed that would have to be downloaded", async () => {
  const at = Deno.makeTempDirSync({ prefix: "eyrie-test-" });
  const env = { HF_ENDPOINT: "http://127.0.0.1:9", HF_HUB_CACHE: `${at}/cache` };
  for (const [name, value] of Object.entries(env)) Deno.env.set(name, value);
  try {
    Deno.mkdirSync(`${at}/cache/models--org--kept-8b`, { recursive: true });
    const message = await mistake("meta-llama/Llama-3.1-8B-Instrct", at);
    assert.match(message, /^Cannot get .*no connection/);
    assert.doesNotMatch(message, /did you mean|8B-Instruct"/);
  } finally {
    for (const name of Object.keys(env)) Deno.env.delete(name);
    Deno.removeSync(at, { recursive: true });
  }
});
