/** The program against a hub on this machine. */
import assert from "node:assert/strict";
import { main } from "../../main.ts";
import { COMMIT, SECOND, testCache, toyFiles } from "../hub/caches.ts";
import { fakeIo } from "./fake.ts";
import { type FakeRepo, type LocalHub, sha256, startHub } from "../hub/hub.ts";

const MAIN = new URL("../../main.ts", import.meta.url).pathname;
const FLEDGLING = new URL("../../models/fledgling/", import.meta.url).pathname;
const TOY = toyFiles();
const WEIGHTS = TOY["model.safetensors"] as Uint8Array;
const BLOB = `models--org--toy/blobs/${sha256(WEIGHTS)}`;

interface Place {
  readonly cache: string;
  readonly server?: LocalHub;
  readonly env?: Record<string, string>;
}

function variablesOf({ cache, server, env = {} }: Place): Record<string, string> {
  return {
    HF_ENDPOINT: server?.endpoint ?? "http://127.0.0.1:2",
    HF_HUB_CACHE: cache,
    HF_TOKEN: "",
    XDG_RUNTIME_DIR: "/tmp",
    ...env,
  };
}

function start(args: readonly string[], place: Place): Deno.ChildProcess {
  return new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-check", MAIN, ...args],
    env: variablesOf(place),
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
}

/** Runs the program as a separate process would, but without starting one. */
async function run(args: readonly string[], place: Place & { readonly stdin?: string }) {
  const io = fakeIo({ stdin: place.stdin ?? "" });
  const before = Object.keys(variablesOf(place)).map((name) => [name, Deno.env.get(name)] as const);
  try {
    for (const [name, value] of Object.entries(variablesOf(place))) Deno.env.set(name, value);
    const code = await main([...args], io);
    return { code, out: io.out(), err: io.err() };
  } finally {
    for (const [name, value] of before) {
      if (value === undefined) Deno.env.delete(name);
      else Deno.env.set(name, value);
    }
  }
}

function fledgling(part: string): FakeRepo {
  const files = [...Deno.readDirSync(FLEDGLING + part)]
    .map(({ name }) => [name, Deno.readFileSync(`${FLEDGLING}${part}/${name}`)] as const);
  return { files: Object.fromEntries(files), commit: part === "target" ? COMMIT : SECOND };
}

Deno.test("names give the text that folders give, and are known offline", async () => {
  await using server = startHub({
    "org/fledgling": [fledgling("target")],
    "org/fledgling-eagle3": [fledgling("eagle3")],
  });
  using cache = testCache();
  const place = { cache: cache.path, server };
  const flags = ["--temperature", "0", "--json", "--quiet", "Count from 1 to 9."];
  const named = ["--model", "org/fledgling", "--draft", "hf://org/fledgling-eagle3@main"];
  const folders = ["--model", `${FLEDGLING}target`, "--draft", `${FLEDGLING}eagle3`];
  const text = (output: { code: number; out: string; err: string }) => {
    assert.equal(output.code, 0, output.err);
    const { text, speculative } = JSON.parse(output.out);
    return { text, algorithm: speculative.algorithm, rounds: speculative.rounds };
  };
  const expected = text(await run(["generate", ...folders, ...flags], place));
  assert.equal(expected.algorithm, "EAGLE3");
  assert.deepEqual(text(await run(["generate", ...named, ...flags], place)), expected);
  const env = { HF_HUB_OFFLINE: "1" };
  const offline = { cache: cache.path, env };
  const inspected = await run(["inspect", ...named], offline);
  assert.match(inspected.out, /^target +org\/fledgling@1111111 \(LlamaForCausalLM\)\n/);
  assert.match(inspected.out, /\ndraft +org\/fledgling-eagle3@2222222 /);

  const listed = await run(["models", "--json"], offline);
  const { models } = JSON.parse(listed.out);
  assert.deepEqual(
    models.map(({ name, kind, algorithm, runs, refs }: Record<string, unknown>) => [
      name,
      kind,
      algorithm,
      runs,
      refs,
    ]),
    [
      ["org/fledgling", "target", null, models[0].runs, ["main"]],
      ["org/fledgling-eagle3", "draft", "EAGLE3", models[1].runs, ["main"]],
    ],
  );
  assert.notEqual(models[0].runs, false);
  assert.ok(models[0].memory_bytes > 12_000_000);
});

Deno.test("--draft auto says which it takes, for a name and for a folder that tells its own", async () => {
  await using server = startHub({
    "Qwen/Qwen3-8B": [fledgling("target")],
    "AngelSlim/Qwen3-8B_eagle3": [fledgling("eagle3")],
  });
  using cache = testCache();
  const place = { cache: cache.path, server };
  const named = await run(["inspect", "--model", "Qwen/Qwen3-8B", "--draft", "auto"], place);
  const told = "draft: AngelSlim/Qwen3-8B_eagle3 (known for Qwen/Qwen3-8B)\n";
  assert.deepEqual([named.code, named.err], [0, told]);
  assert.match(named.out, /\ndraft +AngelSlim\/Qwen3-8B_eagle3@2222222 /);
  const folder = `${cache.path}/mine`;
  Deno.mkdirSync(folder);
  for (const [file, bytes] of Object.entries(fledgling("target").files)) {
    Deno.writeFileSync(`${folder}/${file}`, bytes);
  }
  const config = JSON.parse(Deno.readTextFileSync(`${folder}/config.json`));
  const write = (name: unknown) =>
    Deno.writeTextFileSync(
      `${folder}/config.json`,
      JSON.stringify({ ...config, _name_or_path: name }),
    );
  write("Qwen/Qwen3-8B");
  assert.equal((await run(["inspect", "--model", folder, "--draft", "auto"], place)).err, told);
  for (const name of ["/somebody/elses/disk", 7, undefined]) {
    write(name);
    const { code, err } = await run(["inspect", "--model", folder, "--draft", "auto"], place);
    assert.equal(code, 2);
    assert.match(err, /^eyrie: Cannot use "--draft auto": the folder ".*" does not say which/);
  }
});

Deno.test("--draft auto: a model that no draft is known for gets SUFFIX, and is told so", async () => {
  await using server = startHub({ "org/fledgling": [fledgling("target")] });
  using cache = testCache();
  const place = { cache: cache.path, server };
  const flags = ["--draft", "auto", "--temperature", "0", "--json", "Count from 1 to 9."];
  const { code, out, err } = await run(["generate", "--model", "org/fledgling", ...flags], place);
  assert.equal(code, 0, err);
  const told = 'draft: from the text itself (SUFFIX; no draft for "org/fledgling" is known)\n';
  assert.ok(err.includes(told), err);
  const { speculative } = JSON.parse(out);
  assert.equal(speculative.algorithm, "SUFFIX");
  assert.ok(speculative.accepted_tokens > 0);
});

Deno.test("pull, models, rm", async () => {
  await using server = startHub({ "org/toy": [{ files: TOY, commit: COMMIT }] });
  using cache = testCache();
  const place = { cache: cache.path, server };
  const folder = `${cache.path}/models--org--toy/snapshots/${COMMIT}\n`;
  const pulled = await run(["pull", "org/toy"], place);
  assert.deepEqual(pulled, { code: 0, out: folder, err: "org/toy: 1111111, 350 kB downloaded\n" });
  const again = await run(["pull", "hf://org/toy", `org/toy@${COMMIT}`], place);
  assert.equal(again.out, folder + folder);
  assert.match(again.err, /^hf:\/\/org\/toy: 1111111, nothing to download\n/);
  const models = await run(["models"], place);
  assert.match(
    models.out,
    /^NAME +REVISION +SIZE +LAST USED +RUNS HERE\norg\/toy +1111111 main +350 kB +just now +no: .*\n$/,
  );
  const no = await run(["rm", "org/toy"], { ...place, stdin: "n\n" });
  assert.equal(no.code, 1);
  assert.equal(no.err, "Remove org/toy and free 350 kB? [y/N] nothing was removed\n");
  assert.equal((await run(["rm", "org/toy"], place)).code, 1, "the end of the input is no yes");
  // A name that is given twice, or within another, goes once.
  const names = [`org/toy@${COMMIT}`, "org/toy", "hf://org/toy"];
  const yes = await run(["rm", ...names], { ...place, stdin: "y\n" });
  assert.equal(yes.code, 0);
  assert.equal(yes.out, "removed org/toy, 350 kB freed\n");
  const gone = await run(["rm", "--force", "org/toy"], place);
  assert.deepEqual([gone.code, gone.out], [2, ""]);
  const empty = await run(["models"], place);
  assert.equal(
    empty.out,
    `no models in ${cache.path}; eyrie pull org/name gets one, eyrie models --known lists some\n`,
  );
});

Deno.test("pull goes on after a failure, code 2 at the end", async () => {
  await using server = startHub({
    "org/toy": [{ files: TOY, commit: COMMIT }],
    "org/other": [{ files: TOY, commit: SECOND }],
  });
  using cache = testCache();
  const place = { cache: cache.path, server };
  const { code, out, err } = await run(["pull", "org/toy", "org/none", "org/other"], place);
  assert.equal(code, 2);
  const folder = (name: string, commit: string) =>
    `${cache.path}/models--org--${name}/snapshots/${commit}\n`;
  assert.equal(out, folder("toy", COMMIT) + folder("other", SECOND));
  const lines = err.trimEnd().split("\n");
  assert.equal(lines.length, 3, err);
  assert.match(lines[0] ?? "", /^org\/toy: 1111111, 350 kB downloaded$/);
  assert.match(lines[1] ?? "", /^eyrie: Cannot get "org\/none": there is no such model at /);
  assert.match(lines[2] ?? "", /^org\/other: 2222222, /);
});

Deno.test("models: what an interrupted pull left says how to go on", async () => {
  await using server = startHub({ "org/toy": [{ files: TOY, commit: COMMIT }] });
  using cache = testCache();
  const place = { cache: cache.path, server };
  const root = `${cache.path}/models--org--toy`;
  const listed = async () => (await run(["models"], place)).out.split("\n")[1] ?? "";
  Deno.mkdirSync(`${root}/blobs`, { recursive: true });
  Deno.writeFileSync(`${cache.path}/${BLOB}.incomplete`, WEIGHTS.subarray(0, 200_000));
  const goesOn = "no: incomplete; eyrie pull org\\/toy continues the download$";
  assert.match(await listed(), new RegExp(`^org\\/toy +none yet +200 kB +never +${goesOn}`));
  assert.equal((await run(["pull", "org/toy"], place)).code, 0);
  // As it is before the last file: no ref names the branch yet.
  Deno.removeSync(`${root}/refs/main`);
  Deno.removeSync(`${root}/snapshots/${COMMIT}/model.safetensors`);
  Deno.renameSync(`${cache.path}/${BLOB}`, `${cache.path}/${BLOB}.incomplete`);
  const line = await listed();
  assert.match(line, new RegExp(`^org\\/toy +1111111 +350 kB +just now +${goesOn}`));
  const { models } = JSON.parse((await run(["models", "--json"], place)).out);
  assert.equal(models[0].reason, "incomplete; eyrie pull org/toy continues the download");
  const offline = { ...place, env: { HF_HUB_OFFLINE: "1" } };
  assert.match(
    (await run(["inspect", "--model", "org/toy"], offline)).err,
    /HF_HUB_OFFLINE is set, and ".*" has no model\.safetensors; without it eyrie pull org\/toy continues the download\n$/,
  );
  const sent = server.sent();
  assert.equal((await run(["pull", "org/toy"], place)).code, 0);
  assert.equal(server.sent(), sent, "all bytes were there");
  assert.doesNotMatch(await listed(), /incomplete/);
});

Deno.test("without a network: one line within the patience of a person", async () => {
  using cache = testCache();
  const { code, out, err } = await run(["inspect", "--model", "org/toy"], { cache: cache.path });
  assert.deepEqual([code, out], [2, ""]);
  assert.match(err, /^eyrie: Cannot get "org\/toy": no connection to .*; eyrie models lists .*\n$/);
});

Deno.test("mistakes are one line, code 2", async () => {
  using cache = testCache();
  const place = { cache: cache.path };
  const cases: [string[], RegExp][] = [
    [["pull"], /^eyrie: Cannot run "pull": NAME is missing; org\/name or org\/name@revision\n$/],
    [["pull", "./folder"], /^eyrie: Cannot use "\.\/folder": not the name of a model; /],
    [["inspect", "--model", "org/new", "--draft", "auto"], /^eyrie: Cannot use "--draft auto": no/],
    [["inspect", "--model", "org/toy"], /^eyrie: Cannot use "org\/toy": HF_HUB_OFFLINE is set, /],
  ];
  for (const [args, message] of cases) {
    const { code, out, err } = await run(args, { ...place, env: { HF_HUB_OFFLINE: "1" } });
    assert.deepEqual([code, out], [2, ""], err);
    assert.match(err, message);
  }
});

Deno.test("a cache or a folder that cannot be looked into is one line, code 2", async () => {
  using cache = testCache();
  // As without permission, but also for root: a link that leads to itself.
  const path = `${cache.path}/round`;
  await Deno.symlink(path, path);
  const why = "its links go round in a circle\n";
  const cases: [string[], string, string][] = [
    [["models"], path, `eyrie: Cannot read "${path}": ${why}`],
    [["rm", "org/toy"], path, `eyrie: Cannot read "${path}/models--org--toy/snapshots": ${why}`],
    [["inspect", `${path}/toy`], cache.path, `eyrie: Cannot open "${path}/toy": ${why}`],
    [
      ["inspect", "nosuchmodel"],
      path,
      'eyrie: Cannot open "nosuchmodel": no such folder; a model of the hub is org/name\n',
    ],
  ];
  for (const [args, cache, message] of cases) {
    const { code, out, err } = await run(args, { cache, env: { HF_HUB_OFFLINE: "1" } });
    assert.deepEqual([code, out, err], [2, "", message]);
  }
});

Deno.test("Ctrl+C leaves a beginning that the next pull goes on from", async () => {
  await using server = startHub({ "org/toy": [{ files: TOY, commit: COMMIT }] });
  using cache = testCache();
  const place = { cache: cache.path, server };
  server.fail("/model.safetensors", { kind: "slow", bytes: 10_000, ms: 50 });
  const child = start(["pull", "org/toy"], place);
  while (sizeOf(`${cache.path}/${BLOB}.incomplete`) < 30_000) {
    await new Promise((go) => setTimeout(go, 10));
  }
  child.kill("SIGINT");
  await child.stdin.close();
  const { code, stderr } = await child.output();
  assert.equal(code, 130);
  assert.equal(
    new TextDecoder().decode(stderr),
    "stopped; what has been downloaded is kept, and the same command continues\n",
  );
  const there = sizeOf(`${cache.path}/${BLOB}.incomplete`);
  assert.ok(there >= 30_000 && there < WEIGHTS.length);
  const sent = server.sent();
  assert.equal((await run(["pull", "org/toy"], place)).code, 0);
  assert.equal(server.sent() - sent, WEIGHTS.length - there);
});

Deno.test("two processes that pull at once, one of them killed", async () => {
  await using server = startHub({ "org/toy": [{ files: TOY, commit: COMMIT }] });
  using cache = testCache();
  const place = { cache: cache.path, server };
  server.fail("/model.safetensors", { kind: "slow", bytes: 10_000, ms: 50 });
  const first = start(["pull", "org/toy"], place);
  while (sizeOf(`${cache.path}/${BLOB}.incomplete`) < 30_000) {
    await new Promise((go) => setTimeout(go, 10));
  }
  const second = run(["pull", "org/toy"], place);
  const third = run(["pull", "org/toy"], place);
  await new Promise((go) => setTimeout(go, 300));
  first.kill("SIGKILL");
  await first.stdin.close();
  await first.output();
  const outputs = await Promise.all([second, third]);
  assert.deepEqual(outputs.map(({ code }) => code), [0, 0], outputs[0]?.err);
  const folder = outputs[0]?.out.trim();
  assert.deepEqual(Deno.readFileSync(`${folder}/model.safetensors`), WEIGHTS);
  const ranges = server.asked.filter(({ path }) => path === "/model.safetensors");
  assert.equal(ranges.length, 2, "the killed one, and one that went on for both");
});

function sizeOf(path: string): number {
  try {
    return Deno.statSync(path).size;
  } catch {
    return 0;
  }
}
