import assert from "node:assert/strict";
import { download, downloadFile } from "../../src/hub/download.ts";
import { parseModelName } from "../../src/hub/names.ts";
import { COMMIT, noise, SECOND, testCache, text, toyFiles } from "./caches.ts";
import { etagOf, gitSha1, sha256, startHub } from "./hub.ts";

const TOY = parseModelName("org/toy");
const FILES = toyFiles();
const WEIGHTS = FILES["model.safetensors"] as Uint8Array;
const BLOB = `models--org--toy/blobs/${sha256(WEIGHTS)}`;

Deno.test("a model comes into the cache as Python lays it out, only what is needed", async () => {
  await using server = startHub({ "org/toy": [{ files: FILES, commit: COMMIT }] });
  using cache = testCache();
  const snapshot = await download(TOY, cache.hub(server));
  const needed = ["config.json", "model.safetensors", "tokenizer.json"];
  const etags = needed.map((file) => etagOf(FILES[file] as Uint8Array));
  assert.equal(etags[0], gitSha1(FILES["config.json"] as Uint8Array));
  assert.deepEqual(
    cache.tree(),
    [
      ...etags.map((etag) => `.locks/models--org--toy/${etag}.lock`),
      ...etags.map((etag) => `models--org--toy/blobs/${etag}`),
      "models--org--toy/refs/main",
      ...needed.map((file, i) =>
        `models--org--toy/snapshots/${COMMIT}/${file} -> ../../blobs/${etags[i]}`
      ),
    ].toSorted(),
  );
  assert.equal(Deno.readTextFileSync(`${cache.path}/models--org--toy/refs/main`), COMMIT);
  assert.equal(snapshot.folder, `${cache.path}/models--org--toy/snapshots/${COMMIT}`);
  assert.deepEqual(Deno.readFileSync(`${snapshot.folder}/model.safetensors`), WEIGHTS);
  const size = needed.reduce((sum, file) => sum + (FILES[file] as Uint8Array).length, 0);
  assert.equal(snapshot.downloaded, size);
  assert.equal(server.sent(), size);
  const last = cache.progress.at(-1);
  assert.deepEqual(last, { label: "org/toy", bytes: 300_000, total: 300_000, before: 0 });
});

Deno.test("what is there is not downloaded again, nor written to", async () => {
  await using server = startHub({ "org/toy": [{ files: FILES, commit: COMMIT }] });
  using cache = testCache();
  await download(TOY, cache.hub(server));
  const sent = server.sent();
  const before = Deno.statSync(`${cache.path}/models--org--toy/refs/main`).mtime;
  const again = await download(TOY, cache.hub(server));
  assert.equal(again.downloaded, 0);
  assert.equal(server.sent(), sent);
  assert.deepEqual(Deno.statSync(`${cache.path}/models--org--toy/refs/main`).mtime, before);
});

Deno.test("a branch that moves: the new commit, and content that both have comes once", async () => {
  const changed = { ...FILES, "config.json": text('{"seed":2}') };
  using cache = testCache();
  {
    await using server = startHub({ "org/toy": [{ files: FILES, commit: COMMIT }] });
    await download(TOY, cache.hub(server));
  }
  await using server = startHub({
    "org/toy": [
      { files: FILES, commit: COMMIT, refs: ["v1", "refs/pr/1"] },
      { files: changed, commit: SECOND },
    ],
  });
  const moved = await download(TOY, cache.hub(server));
  assert.equal(moved.commit, SECOND);
  assert.equal(moved.downloaded, 10);
  assert.equal(Deno.readTextFileSync(`${moved.folder}/config.json`), '{"seed":2}');
  for (const revision of ["v1", "refs/pr/1", COMMIT]) {
    const pinned = await download(parseModelName(`org/toy@${revision}`), cache.hub(server));
    assert.equal(pinned.commit, COMMIT, revision);
    assert.equal(pinned.downloaded, 0);
  }
  const refs = cache.tree().filter((path) => path.includes("/refs/"));
  assert.deepEqual(refs.map((path) => path.split("/refs/").slice(1).join("/refs/")), [
    "main",
    "refs/pr/1",
    "v1",
  ]);
});

Deno.test("shards are those that the index names; no safetensors, then pickles", async () => {
  const index = text(JSON.stringify({
    weight_map: {
      a: "model-1.safetensors",
      b: "deep/model-2.safetensors",
      c: "model-1.safetensors",
    },
  }));
  const sharded = {
    "config.json": text("{}"),
    "model.safetensors.index.json": index,
    "model-1.safetensors": noise(100),
    "deep/model-2.safetensors": noise(200),
    "model-3.safetensors": noise(300),
    "pytorch_model.bin": noise(400),
  };
  const pickled = { "config.json": text("{}"), "pytorch_model.bin": noise(400) };
  await using server = startHub({
    "org/sharded": [{ files: sharded, commit: COMMIT }],
    "org/pickled": [{ files: pickled, commit: COMMIT }],
  });
  using cache = testCache();
  await download(parseModelName("org/sharded"), cache.hub(server));
  await download(parseModelName("org/pickled"), cache.hub(server));
  const files = cache.tree().flatMap((path) => path.split(`/snapshots/${COMMIT}/`)[1] ?? []);
  assert.deepEqual(files.map((link) => link.replace(/[0-9a-f]{40}$/, "")), [
    "config.json -> ../../blobs/",
    "pytorch_model.bin -> ../../blobs/",
    "config.json -> ../../blobs/",
    "deep/model-2.safetensors -> ../../../blobs/",
    "model-1.safetensors -> ../../blobs/",
    "model.safetensors.index.json -> ../../blobs/",
  ]);
});

Deno.test("a broken index in the cache is downloaded again; offline it is told of", async () => {
  const index = "model.safetensors.index.json";
  const map = { a: "model-1.safetensors", b: "model-2.safetensors" };
  const files = {
    "config.json": text("{}"),
    [index]: text(JSON.stringify({ weight_map: map })),
    "model-1.safetensors": noise(100),
    "model-2.safetensors": noise(200),
  };
  await using server = startHub({ "org/toy": [{ files, commit: COMMIT }] });
  using cache = testCache();
  const { folder } = await download(TOY, cache.hub(server));
  for (const broken of ["", '{"weight_map": {', "[]"]) {
    Deno.writeTextFileSync(Deno.realPathSync(`${folder}/${index}`), broken);
    await assert.rejects(download(TOY, cache.hub(undefined, { offline: true })), {
      message: /--toy" has no shards that model\.safetensors\.index\.json names; /,
    });
    const again = await download(TOY, cache.hub(server));
    assert.equal(again.downloaded, files[index]?.length);
  }
});

Deno.test("offline, and with the hub away, the cache does", async () => {
  using cache = testCache();
  const offline = cache.hub(undefined, { offline: true });
  await assert.rejects(download(TOY, offline), {
    name: "UsageError",
    message: `Cannot use "org/toy": HF_HUB_OFFLINE is set, and there is no such model in ` +
      `"${cache.path}"`,
  });
  {
    await using server = startHub({ "org/toy": [{ files: FILES, commit: COMMIT }] });
    await download(TOY, cache.hub(server));
  }
  assert.equal((await download(TOY, offline)).commit, COMMIT);
  assert.deepEqual(cache.warnings, []);
  const away = await download(TOY, cache.hub(undefined));
  assert.equal(away.commit, COMMIT);
  assert.match(
    cache.warnings.join(),
    /^Cannot get .*, tried 2 times; using 1111111 from the cache$/,
  );
  Deno.removeSync(`${away.folder}/model.safetensors`);
  await assert.rejects(download(TOY, offline), {
    message:
      /--toy" has no model\.safetensors; without it eyrie pull org\/toy continues the download$/,
  });
  await assert.rejects(download(parseModelName("org/toy@v9"), offline), {
    message: /--toy" has no revision "v9", but main = 1111111$/,
  });
});

Deno.test("a name with the 7 digits of a commit that are printed is known, with the hub and offline", async () => {
  await using server = startHub({
    "org/toy": [{ files: FILES, commit: COMMIT }, { files: FILES, commit: SECOND, refs: ["v2"] }],
  });
  using cache = testCache();
  const printed = parseModelName(`org/toy@${COMMIT.slice(0, 7)}`);
  await assert.rejects(download(printed, cache.hub(server)), {
    message: /no revision "1111111" at .*; a commit is given by all 40 digits$/,
  });
  await download(TOY, cache.hub(server));
  await download(parseModelName("org/toy@v2"), cache.hub(server));
  for (const offline of [false, true]) {
    const hub = cache.hub(offline ? undefined : server, { offline });
    assert.equal((await download(printed, hub)).commit, COMMIT);
    assert.match(await downloadFile(printed, "config.json", hub), /\/1{40}\/config\.json$/);
  }
});

Deno.test("without a network a name fails at once, with the nearest name that the cache has", async () => {
  using cache = testCache();
  {
    await using server = startHub({ "org/Toy-8B": [{ files: FILES, commit: COMMIT }] });
    await download(parseModelName("org/Toy-8B"), cache.hub(server));
  }
  const none = `there is no such model in "${cache.path}"`;
  const advice = "eyrie models lists what runs from there, and --model takes a folder";
  const away = cache.hub(undefined);
  const why = "connection refused";
  for (
    const [name, near] of [
      ["org/toy-4b", '; it has "org/Toy-8B"'],
      ["gro/Toy", '; it has "org/Toy-8B"'],
      ["other/thing", ""],
    ]
  ) {
    await assert.rejects(download(parseModelName(name!), { ...away, waits: [1, 1e9] }), {
      name: "UsageError",
      message: `Cannot get "${name}": no connection to 127.0.0.1:2 (${why}), tried 2 times, and ` +
        `${none}${near}; ${advice}`,
    });
  }
  assert.deepEqual(cache.warnings, []);
});

Deno.test("a network that swallows everything is given up after seconds", async () => {
  using cache = testCache();
  // The connection never opens, and it ignores the signal to stop.
  const connect = () => new Promise<never>(() => {});
  const swallowed = cache.hub(undefined, { endpoint: "https://hub.example", connect });
  await assert.rejects(download(TOY, swallowed), {
    message:
      /no connection to hub\.example \(nothing answers within 2 s\), tried 2 times, and there/,
  });
});

Deno.test("a cache that Python wrote is used as it is", async () => {
  // The cache as huggingface_hub 2.0.0 leaves it: refs without newline, relative links, no lock needed.
  using cache = testCache();
  const root = `${cache.path}/models--org--toy`;
  for (const folder of ["blobs", "refs", `snapshots/${COMMIT}`, ".no_exist/x"]) {
    Deno.mkdirSync(`${root}/${folder}`, { recursive: true });
  }
  for (const [file, bytes] of Object.entries(FILES)) {
    if (file.includes("/")) continue;
    Deno.writeFileSync(`${root}/blobs/${etagOf(bytes)}`, bytes);
    Deno.symlinkSync(`../../blobs/${etagOf(bytes)}`, `${root}/snapshots/${COMMIT}/${file}`);
  }
  Deno.writeTextFileSync(`${root}/refs/main`, COMMIT);
  const before = cache.tree();
  const offline = await download(TOY, cache.hub(undefined, { offline: true }));
  assert.equal(offline.folder, `${root}/snapshots/${COMMIT}`);
  await using server = startHub({ "org/toy": [{ files: FILES, commit: COMMIT }] });
  assert.equal((await download(TOY, cache.hub(server))).downloaded, 0);
  assert.equal(server.sent(), 0);
  assert.deepEqual(cache.tree(), before);
});

Deno.test("a beginning that Python or a killed process left is gone on from", async () => {
  await using server = startHub({ "org/toy": [{ files: FILES, commit: COMMIT }] });
  using cache = testCache();
  Deno.mkdirSync(`${cache.path}/models--org--toy/blobs`, { recursive: true });
  Deno.writeFileSync(`${cache.path}/${BLOB}.incomplete`, WEIGHTS.subarray(0, 123_456));
  const { folder, downloaded } = await download(TOY, cache.hub(server));
  const others = ["config.json", "tokenizer.json"]
    .reduce((sum, file) => sum + (FILES[file] as Uint8Array).length, 0);
  assert.equal(downloaded, 300_000 - 123_456 + others);
  assert.equal(server.sent(), downloaded);
  assert.deepEqual(Deno.readFileSync(`${folder}/model.safetensors`), WEIGHTS);
  const ranges = server.asked.filter(({ path }) => path.endsWith("/model.safetensors"));
  assert.deepEqual([...new Set(ranges.map(({ range }) => range))], ["bytes=123456-"]);
  const [first] = cache.progress.filter(({ total }) => total === 300_000);
  assert.equal(first?.before, 123_456);
});

Deno.test("beginnings that are wrong or too long start over, with the right content", async () => {
  for (const left of [noise(1000, 7), noise(300_000, 7), noise(400_000, 7)]) {
    await using server = startHub({ "org/toy": [{ files: FILES, commit: COMMIT }] });
    using cache = testCache();
    Deno.mkdirSync(`${cache.path}/models--org--toy/blobs`, { recursive: true });
    Deno.writeFileSync(`${cache.path}/${BLOB}.incomplete`, left);
    const { folder } = await download(TOY, cache.hub(server));
    assert.deepEqual(Deno.readFileSync(`${folder}/model.safetensors`), WEIGHTS);
    assert.equal(cache.progress.at(-1)?.bytes, 300_000);
  }
});

Deno.test("the token goes to the hub and not to the servers it redirects to", async () => {
  await using server = startHub({ "org/toy": [{ files: FILES, commit: COMMIT }] });
  using cache = testCache();
  await download(TOY, cache.hub(server, { token: "hf_right" }));
  const tokens = Map.groupBy(server.asked, ({ path }) => path === "/model.safetensors");
  assert.deepEqual(tokens.get(true)?.map(({ token }) => token), [null]);
  assert.ok(tokens.get(false)?.some(({ token }) => token === "Bearer hf_right"));
});

Deno.test("one file of a repository comes alone, once, and is found without a network", async () => {
  using cache = testCache();
  {
    await using server = startHub({ "org/toy": [{ files: FILES, commit: COMMIT }] });
    const path = await downloadFile(TOY, "config.json", cache.hub(server));
    assert.deepEqual(Deno.readFileSync(path), FILES["config.json"]);
    const sent = server.sent();
    assert.equal(await downloadFile(TOY, "config.json", cache.hub(server)), path);
    assert.equal(server.sent(), sent);
    await assert.rejects(downloadFile(TOY, "freq.pt", cache.hub(server)), {
      message: 'Cannot get "freq.pt" of "org/toy": the repository has no such file',
    });
    const offline = { ...cache.hub(server) };
    const settings = { ...offline.settings, offline: true };
    assert.equal(await downloadFile(TOY, "config.json", { ...offline, settings }), path);
    await assert.rejects(downloadFile(TOY, "freq.pt", { ...offline, settings }), {
      message: /^Cannot get "freq.pt" of "org\/toy": HF_HUB_OFFLINE is set/,
    });
  }
});
