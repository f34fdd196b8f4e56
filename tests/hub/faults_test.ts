import assert from "node:assert/strict";
import { writing } from "../../src/hub/cache.ts";
import { download, freeOn, type Hub } from "../../src/hub/download.ts";
import { asker } from "../../src/hub/http.ts";
import { parseModelName } from "../../src/hub/names.ts";
import { transfer, type Transport } from "../../src/hub/transfer.ts";
import { COMMIT, testCache, toyFiles } from "./caches.ts";
import { type Fault, sha256, startHub } from "./hub.ts";

const TOY = parseModelName("org/toy");
const FILES = toyFiles();
const WEIGHTS = FILES["model.safetensors"] as Uint8Array;
const BLOB = `models--org--toy/blobs/${sha256(WEIGHTS)}`;

const MENDED: Readonly<Record<string, readonly Fault[]>> = {
  "two cuts": [{ kind: "cut", after: 40_000 }, { kind: "cut", after: 90_000 }],
  "silence": [{ kind: "stall", after: 50_000 }],
  "429, 500, 503": [
    { kind: "status", status: 429, headers: { "Retry-After": "0" } },
    { kind: "status", status: 500 },
    { kind: "status", status: 503 },
  ],
  "a signature that has expired": [{ kind: "cut", after: 40_000 }, { kind: "status", status: 403 }],
  "a cut, then a server without ranges": [{ kind: "cut", after: 40_000 }, { kind: "no-ranges" }],
  "a page of a proxy": [{ kind: "page", bytes: 500, headed: false }],
};

for (const [name, faults] of Object.entries(MENDED)) {
  Deno.test(`a transfer survives ${name}`, async () => {
    await using server = startHub({ "org/toy": [{ files: FILES, commit: COMMIT }] });
    using cache = testCache();
    server.fail("/model.safetensors", ...faults);
    const idleMs = name === "silence" ? { idleMs: 300 } : {};
    const { folder } = await download(TOY, cache.hub(server, idleMs));
    assert.deepEqual(Deno.readFileSync(`${folder}/model.safetensors`), WEIGHTS);
    assert.equal(cache.progress.at(-1)?.bytes, WEIGHTS.length);
    assert.deepEqual(cache.tree().filter((path) => path.endsWith(".incomplete")), []);
  });
}

Deno.test("a page of a proxy in the middle of a transfer does not lose what was received", async () => {
  await using server = startHub({ "org/toy": [{ files: FILES, commit: COMMIT }] });
  using cache = testCache();
  const page = { kind: "page", bytes: 500, headed: true } as const;
  server.fail("/model.safetensors", { kind: "cut", after: 40_000 }, page);
  await download(TOY, cache.hub(server));
  const ranges = server.asked.filter(({ path }) => path === "/model.safetensors")
    .map(({ range }) => range);
  assert.equal(ranges.length, 3);
  assert.equal(ranges[0], "bytes=0-");
  assert.notEqual(ranges[1], "bytes=0-");
  assert.equal(ranges[2], ranges[1]);
});

Deno.test("a hub that is busy is asked again", async () => {
  await using server = startHub({ "org/toy": [{ files: FILES, commit: COMMIT }] });
  using cache = testCache();
  server.fail("/revision/main", { kind: "status", status: 502 }, { kind: "status", status: 429 });
  assert.equal((await download(TOY, cache.hub(server))).commit, COMMIT);
});

Deno.test("a hub whose answer breaks off is asked again, and given up where it always does", async () => {
  await using server = startHub({ "org/toy": [{ files: FILES, commit: COMMIT }] });
  using cache = testCache();
  const cut = { kind: "cut", after: 30 } as const;
  server.fail("/revision/main", cut, cut);
  assert.equal((await download(TOY, cache.hub(server))).commit, COMMIT);
  assert.deepEqual(cache.warnings, []);
  server.fail("/revision/main", cut, cut);
  assert.equal((await download(TOY, cache.hub(server))).commit, COMMIT);
  assert.match(
    cache.warnings.join(),
    /^Cannot get "org\/toy": no connection .*, tried 2 times; using 1111111 from the cache$/,
  );
});

Deno.test("a hub that takes connections and says nothing is waited for less where the cache has the model", async () => {
  using cache = testCache();
  using silent = Deno.listen({ port: 0, hostname: "127.0.0.1" });
  const hub = cache.hub(undefined, { endpoint: `http://127.0.0.1:${silent.addr.port}` });
  /** The limits of connecting and of answers that `run` sets; the latter end after 20 ms here. */
  const limitsOf = async (run: () => Promise<unknown>): Promise<number[]> => {
    const { timeout } = AbortSignal;
    const limits: number[] = [];
    AbortSignal.timeout = (ms) => {
      limits.push(ms);
      return timeout.call(AbortSignal, ms >= 10_000 ? 20 : ms);
    };
    await run().finally(() => AbortSignal.timeout = timeout);
    return limits;
  };
  const none = () => assert.rejects(download(TOY, hub), { message: /, tried 4 times/ });
  assert.deepEqual(await limitsOf(none), [2000, 30_000, 30_000, 30_000, 30_000]);
  {
    await using server = startHub({ "org/toy": [{ files: FILES, commit: COMMIT }] });
    await download(TOY, cache.hub(server));
  }
  assert.deepEqual(await limitsOf(() => download(TOY, hub)), [2000, 10_000, 10_000]);
  assert.match(cache.warnings.join(), /, tried 2 times; using 1111111 from the cache$/);
});

Deno.test("a hub that refuses a model does not matter where the cache has it", async () => {
  using cache = testCache();
  {
    await using server = startHub({ "org/toy": [{ files: FILES, commit: COMMIT }] });
    await download(TOY, cache.hub(server));
    const { commit } = await download(TOY, cache.hub(server, { token: "hf_wrong" }));
    assert.equal(commit, COMMIT);
  }
  await using server = startHub({ "org/other": [{ files: FILES, commit: COMMIT }] });
  assert.equal((await download(TOY, cache.hub(server))).commit, COMMIT);
  await using page = Deno.serve(
    { port: 0, hostname: "127.0.0.1", onListen: () => {} },
    () => new Response("<html>"),
  );
  const endpoint = `http://127.0.0.1:${page.addr.port}`;
  assert.equal((await download(TOY, cache.hub(undefined, { endpoint }))).commit, COMMIT);
  const whys = [/does not accept the token/, /there is no such model/, /does not answer as a hub/];
  assert.equal(cache.warnings.length, whys.length);
  for (const [i, why] of whys.entries()) {
    assert.match(cache.warnings[i] ?? "", why);
    assert.match(cache.warnings[i] ?? "", /; using 1111111 from the cache$/);
  }
});

Deno.test("cuts without end are given up; the beginning is kept and gone on from", async () => {
  await using server = startHub({ "org/toy": [{ files: FILES, commit: COMMIT }] });
  using cache = testCache();
  server.fail("/model.safetensors", ...Array<Fault>(4).fill({ kind: "cut", after: 32_768 }));
  await assert.rejects(download(TOY, cache.hub(server)), {
    name: "UsageError",
    message:
      /^Cannot download ".*": .*, tried 4 times; eyrie pull org\/toy continues the download$/,
  });
  const there = Deno.statSync(`${cache.path}/${BLOB}.incomplete`).size;
  assert.ok(there > 32_768 && there <= 4 * 32_768, `${there}`);
  assert.ok(!cache.tree().some((path) => path === BLOB || path.includes("/refs/")));
  await assert.rejects(download(TOY, cache.hub(server, { offline: true })), {
    message: `Cannot use "org/toy": HF_HUB_OFFLINE is set, and "${cache.path}/models--org--toy" ` +
      "has no model.safetensors; without it eyrie pull org/toy continues the download",
  });
  const sent = server.sent();
  await download(TOY, cache.hub(server));
  assert.equal(server.sent() - sent, WEIGHTS.length - there);
});

Deno.test("wrong content is an error and stays nowhere", async () => {
  await using server = startHub({ "org/toy": [{ files: FILES, commit: COMMIT }] });
  using cache = testCache();
  server.fail("/model.safetensors", { kind: "corrupt" });
  await assert.rejects(download(TOY, cache.hub(server)), {
    name: "UsageError",
    message: new RegExp(`its sha256 is [0-9a-f]{64}, the hub lists ${sha256(WEIGHTS)}; `),
  });
  assert.ok(!cache.tree().some((path) => path.startsWith(BLOB) || /model.safetensors/.test(path)));
  await download(TOY, cache.hub(server));
});

Deno.test("a small file of wrong content is one too", async () => {
  await using server = startHub({ "org/toy": [{ files: FILES, commit: COMMIT }] });
  using cache = testCache();
  server.fail("/config.json", { kind: "corrupt" });
  await assert.rejects(download(TOY, cache.hub(server)), {
    message: /its git-sha1 is [0-9a-f]{40},/,
  });
});

Deno.test("a file of another size than listed is an error", async () => {
  for (const faults of [[{ kind: "longer" }], [{ kind: "longer" }, { kind: "longer" }]] as const) {
    await using server = startHub({ "org/toy": [{ files: FILES, commit: COMMIT }] });
    using cache = testCache();
    server.fail("/model.safetensors", ...faults);
    await assert.rejects(download(TOY, cache.hub(server)), {
      message: /it has 300001 bytes, the hub lists 300000$/,
    });
    assert.ok(!cache.tree().includes(BLOB));
  }
});

const REFUSALS: readonly [string, Partial<Hub["settings"]>, string][] = [
  [
    "org/none",
    {},
    'Cannot get "org/none": there is no such model at HUB, or it is private or gated: ' +
    "accept the licence at HUB/org/none and set HF_TOKEN",
  ],
  ["org/none", { token: "hf_right" }, 'Cannot get "org/none": there is no such model at HUB'],
  [
    "org/toy@v9",
    {},
    'Cannot get "org/toy@v9": there is no revision "v9" at HUB/org/toy',
  ],
  [
    "org/toy",
    { token: "hf_wrong" },
    'Cannot get "org/toy": HUB does not accept the token of HF_TOKEN',
  ],
  [
    "org/gated",
    {},
    'Cannot get "org/gated": gated: accept the licence at HUB/org/gated and set HF_TOKEN',
  ],
  [
    "org/gguf",
    {},
    'Cannot get "org/gguf": no weights that Eyrie reads (model.safetensors or pytorch_model.bin); ' +
    "it has q4.gguf; it was made from org/original",
  ],
];

Deno.test("refusals say what is to be done", async () => {
  await using server = startHub({
    "org/toy": [{ files: FILES, commit: COMMIT }],
    "org/gated": [{ files: FILES, commit: COMMIT, gated: true }],
    "org/gguf": [{
      files: { "q4.gguf": WEIGHTS },
      commit: COMMIT,
      card: { base_model: ["org/original"] },
    }],
  });
  using cache = testCache();
  for (const [name, settings, message] of REFUSALS) {
    await assert.rejects(download(parseModelName(name), cache.hub(server, settings)), {
      name: "UsageError",
      message: message.replaceAll("HUB", server.endpoint),
    });
  }
  server.fail("/config.json", { kind: "status", status: 403 });
  await assert.rejects(download(TOY, cache.hub(server, { token: "hf_right" })), {
    message: `Cannot get "org/toy": gated: accept the licence at ${server.endpoint}/org/toy ` +
      "as the account of the token of HF_TOKEN",
  });
  await download(parseModelName("org/gated"), cache.hub(server, { token: "hf_right" }));
});

Deno.test("a server that is no hub, a broken endpoint", async () => {
  using cache = testCache();
  const answers = [
    new Response("<html>"),
    Response.json({ sha: "../../x" }),
    Response.json([]),
  ];
  await using plain = Deno.serve(
    { port: 0, hostname: "127.0.0.1", onListen: () => {} },
    () => answers.shift() ?? new Response("{}"),
  );
  const endpoint = `http://127.0.0.1:${plain.addr.port}`;
  for (let i = 0; i < 3; i++) {
    await assert.rejects(download(TOY, cache.hub(undefined, { endpoint })), {
      name: "UsageError",
      message: /^Cannot get "org\/toy": http:.* does not answer as a hub does \(/,
    });
  }
  await assert.rejects(download(TOY, cache.hub(undefined, { endpoint: "hub.example" })), {
    message: 'Cannot use HF_ENDPOINT "hub.example": not an http or https URL',
  });
  assert.deepEqual(cache.tree(), []);
});

Deno.test("names that would leave the cache are refused", async () => {
  for (const path of ["../../config.json", "a\\b", "/config.json", "c:x"]) {
    const files = { ...FILES, [path]: WEIGHTS };
    await using server = startHub({ "org/toy": [{ files, commit: COMMIT }] });
    using cache = testCache();
    await assert.rejects(download(TOY, cache.hub(server)), { message: /a file is listed as/ });
    assert.deepEqual(cache.tree(), []);
  }
});

Deno.test("free space is that of the nearest folder that is there, also where it is the root or the current one", () => {
  const root = freeOn("/");
  assert.ok(root > 0 && root < Infinity);
  for (const folder of ["/no_such_models", "/no_such_models/hub", "no_such_models/hub"]) {
    assert.ok(freeOn(folder) < Infinity, folder);
  }
});

Deno.test({
  name: "free space counts as enough where a file system reports no size",
  ignore: Deno.build.os !== "linux",
  fn: () => assert.equal(freeOn("/proc"), Infinity),
});

Deno.test("a full disk: told before, or when it is full", async () => {
  await using server = startHub({ "org/toy": [{ files: FILES, commit: COMMIT }] });
  using cache = testCache();
  await assert.rejects(download(TOY, cache.hub(server, { freeBytes: () => 10_000 })), {
    name: "UsageError",
    message:
      `Cannot download "org/toy": 50.0 kB have to be downloaded, and the disk of "${cache.path}" has ` +
      "10.0 kB free; free some or set HF_HUB_CACHE",
  });
  // Every write to this device fails because it is full.
  assert.throws(() => writing("x", () => Deno.writeTextFileSync("/dev/full", "text")), {
    name: "UsageError",
    message: /^Cannot write "x": no space left; free some space or set HF_HUB_CACHE/,
  });
});

Deno.test("a cache that cannot be written is one clear line", async () => {
  await using server = startHub({ "org/toy": [{ files: FILES, commit: COMMIT }] });
  using cache = testCache();
  Deno.writeTextFileSync(`${cache.path}/file`, "");
  const hub = cache.hub(server, { cache: `${cache.path}/file/hub` });
  await assert.rejects(download(TOY, hub), { name: "UsageError", message: /^Cannot write ".*": / });
});

Deno.test("stopped by a signal: the beginning is kept, the next call goes on", async () => {
  await using server = startHub({ "org/toy": [{ files: FILES, commit: COMMIT }] });
  using cache = testCache();
  const stop = new AbortController();
  server.fail("/model.safetensors", { kind: "slow", bytes: 20_000, ms: 5 });
  const onProgress: Hub["onProgress"] = ({ bytes, total }) => {
    if (total === 300_000 && bytes >= 60_000) stop.abort();
  };
  const stopped = download(TOY, cache.hub(server, { signal: stop.signal, onProgress }));
  await assert.rejects(stopped, { name: "AbortError" });
  const there = Deno.readFileSync(`${cache.path}/${BLOB}.incomplete`);
  assert.deepEqual(there, WEIGHTS.slice(0, there.length));
  assert.ok(there.length >= 60_000 && there.length < 300_000);
  // What was asked for: the stopped answer may still be sending a piece that nobody reads.
  const before = server.asked.length;
  await download(TOY, cache.hub(server));
  const ranges = server.asked.slice(before)
    .filter(({ path, method }) => path === "/model.safetensors" && method === "GET")
    .map(({ range }) => range);
  assert.deepEqual(ranges, [`bytes=${there.length}-`]);
});

Deno.test("a signal stops the hashing of what is there", async () => {
  const size = 2 ** 40; // A sparse file that takes many minutes to hash.
  const stop = new AbortController();
  using cache = testCache();
  const blob = `${cache.path}/blob`;
  using sparse = Deno.openSync(`${blob}.incomplete`, { write: true, createNew: true });
  sparse.truncateSync(size);
  const etag = "0".repeat(64);
  const file = { path: "model.safetensors", size, etag, hash: "sha256" } as const;
  const transport: Transport = {
    ask: () => Promise.reject(new Error("nothing is asked for")),
    persistence: { waits: [], signal: stop.signal },
    idleMs: 30_000,
    onBytes: () => {},
  };
  const route = { file, url: "http://hub.example/file", blob, lock: `${cache.path}/lock` };
  const stopped = transfer(route, transport);
  setTimeout(() => stop.abort(), 10);
  await assert.rejects(stopped, { name: "AbortError" });
  assert.equal(Deno.statSync(`${blob}.incomplete`).size, size);
});

Deno.test("two at once where locks lock nobody out: both end well, with the right content", async () => {
  await using server = startHub({ "org/toy": [{ files: FILES, commit: COMMIT }] });
  using cache = testCache();
  const slow = { kind: "slow", bytes: 20_000, ms: 5 } as const;
  server.fail("/model.safetensors", slow, slow);
  const etag = sha256(WEIGHTS);
  const { length: size } = WEIGHTS;
  const file = { path: "model.safetensors", size, etag, hash: "sha256" } as const;
  const blob = `${cache.path}/blob`;
  const url = `${server.endpoint}/org/toy/resolve/${COMMIT}/model.safetensors`;
  const ask = asker(TOY, { endpoint: server.endpoint, token: undefined });
  let second: Promise<void> | undefined;
  const start = (lock: string, onBytes: () => void) =>
    transfer({ file, url, blob, lock: `${cache.path}/${lock}` }, {
      ask,
      persistence: { waits: [1] },
      idleMs: 30_000,
      onBytes,
    });
  // On some file systems every process gets every lock: here they are two locks.
  await start("one", () => second ??= start("other", () => {}));
  await second;
  assert.deepEqual(Deno.readFileSync(blob), WEIGHTS);
  assert.deepEqual(cache.tree().filter((path) => path.endsWith(".incomplete")), []);
});

Deno.test("two at once in one cache: each byte comes once, both have the model", async () => {
  await using server = startHub({ "org/toy": [{ files: FILES, commit: COMMIT }] });
  using cache = testCache();
  const both = await Promise.all([
    download(TOY, cache.hub(server)),
    download(TOY, cache.hub(server)),
  ]);
  assert.deepEqual(both.map(({ commit }) => commit), [COMMIT, COMMIT]);
  assert.deepEqual(Deno.readFileSync(`${both[1]?.folder}/model.safetensors`), WEIGHTS);
  const files = ["config.json", "tokenizer.json", "model.safetensors"];
  assert.equal(server.sent(), files.reduce((sum, f) => sum + (FILES[f] as Uint8Array).length, 0));
});
