import assert from "node:assert/strict";
import { linkBlob, repoFolders } from "../../src/hub/cache.ts";
import { download } from "../../src/hub/download.ts";
import { parseModelName } from "../../src/hub/names.ts";
import { planRemovals, remove } from "../../src/hub/remove.ts";
import { cachedRepos, scanCache, scanRepo } from "../../src/hub/scan.ts";
import { COMMIT, noise, SECOND, type TestCache, testCache, text, toyFiles } from "./caches.ts";
import { startHub } from "./hub.ts";

/** Two commits of a model that differ only in config.json and 100 bytes of weights, and another model. */
async function fill(cache: TestCache): Promise<void> {
  const first = toyFiles();
  const second = { ...first, "config.json": text("{}"), "model.safetensors": noise(400_000, 5) };
  await using server = startHub({
    "org/toy": [
      { files: first, commit: COMMIT, refs: ["v1"] },
      { files: second, commit: SECOND },
    ],
    "org/other": [{ files: first, commit: COMMIT }],
  });
  for (const name of ["org/toy", "org/toy@v1", "org/other"]) {
    await download(parseModelName(name), cache.hub(server));
  }
}

function removeNamed(cache: TestCache, ...names: string[]): number {
  const removals = planRemovals(cache.path, names);
  for (const removal of removals) remove(cache.path, removal);
  return removals.reduce((sum, { freedBytes }) => sum + freedBytes, 0);
}

Deno.test("the cache is listed by name and revision", async () => {
  using cache = testCache();
  await fill(cache);
  Deno.mkdirSync(`${cache.path}/datasets--org--data/snapshots/${COMMIT}`, { recursive: true });
  Deno.mkdirSync(`${cache.path}/models--org--empty`);
  Deno.symlinkSync("../../blobs/gone", `${cache.path}/models--org--other/snapshots/${COMMIT}/x`);
  const repos = scanCache(cache.path).map(({ repo, revisions }) => ({
    repo,
    revisions: revisions.map(({ commit, refs, bytes }) => ({ commit, refs, bytes }))
      .toSorted((a, b) => a.commit < b.commit ? -1 : 1),
  }));
  assert.deepEqual(repos, [
    { repo: "org/empty", revisions: [] },
    { repo: "org/other", revisions: [{ commit: COMMIT, refs: ["main"], bytes: 350_010 }] },
    {
      repo: "org/toy",
      revisions: [
        { commit: COMMIT, refs: ["v1"], bytes: 350_010 },
        { commit: SECOND, refs: ["main"], bytes: 450_002 },
      ],
    },
  ]);
  assert.deepEqual(scanCache(`${cache.path}/none`), []);
});

for (const spelled of ["org/toy@v1", "org/toy@11111"]) {
  Deno.test(`${spelled}: what the other revision needs stays`, async () => {
    using cache = testCache();
    await fill(cache);
    assert.equal(removeNamed(cache, spelled), 300_000 + 10);
    const offline = cache.hub(undefined, { offline: true });
    const kept = await download(parseModelName("org/toy"), offline);
    assert.equal(kept.commit, SECOND);
    assert.equal(Deno.readFileSync(`${kept.folder}/tokenizer.json`).length, 50_000);
    await assert.rejects(download(parseModelName("org/toy@v1"), offline));
    const left = cache.tree().filter((path) => path.startsWith("models--org--toy/blobs"));
    assert.equal(left.length, 3);
  });
}

Deno.test("revisions removed together leave nothing that only they shared", async () => {
  using cache = testCache();
  await fill(cache);
  const names = ["org/toy@v1", "org/toy@main", "org/toy@v1"];
  assert.equal(removeNamed(cache, ...names), 300_010 + 400_002 + 50_000);
  assert.deepEqual(cache.tree().filter((path) => path.startsWith("models--org--toy/")), []);
});

Deno.test("files that another process removes or renames meanwhile are left out", async () => {
  using cache = testCache();
  await fill(cache);
  const passing = /\.incomplete$|^passing/;
  const toy = `${cache.path}/models--org--toy`;
  const { readDirSync } = Deno;
  const whileListing = <T>(look: () => T): T => {
    Deno.writeFileSync(`${toy}/blobs/x.incomplete`, noise(1000));
    Deno.writeFileSync(`${toy}/snapshots/${COMMIT}/passing`, noise(1000));
    Deno.readDirSync = (path) => {
      const entries = [...readDirSync(path)];
      for (const { name } of entries) if (passing.test(name)) Deno.removeSync(`${path}/${name}`);
      return entries.values();
    };
    try {
      return look();
    } finally {
      Deno.readDirSync = readDirSync;
    }
  };
  const repo = whileListing(() => scanRepo(cache.path, "org/toy"));
  assert.deepEqual(repo.revisions.map(({ bytes }) => bytes).toSorted(), [350_010, 450_002]);
  const [removal] = whileListing(() => planRemovals(cache.path, ["org/toy"]));
  assert.equal(removal?.freedBytes, 300_010 + 400_002 + 50_000);
});

Deno.test("a model whose folder is a link to another disk is listed and removed", async () => {
  using cache = testCache();
  await fill(cache);
  Deno.renameSync(`${cache.path}/models--org--toy`, `${cache.path}/disk`);
  Deno.symlinkSync("disk", `${cache.path}/models--org--toy`);
  Deno.symlinkSync("nowhere", `${cache.path}/models--org--gone`);
  assert.deepEqual(cachedRepos(cache.path), ["org/other", "org/toy"]);
  assert.equal(removeNamed(cache, "org/toy"), 300_010 + 400_002 + 50_000);
  assert.deepEqual(cachedRepos(cache.path), ["org/other"]);
});

Deno.test("a revision is removed where a link to content leads nowhere", async () => {
  using cache = testCache();
  await fill(cache);
  const blobs = `${cache.path}/models--org--toy/blobs`;
  Deno.symlinkSync("../../gone", `${blobs}/gone`);
  assert.equal(removeNamed(cache, "org/toy@v1"), 300_000 + 10);
  assert.ok(Deno.lstatSync(`${blobs}/gone`).isSymlink);
});

Deno.test("a whole model goes with its beginnings; the others stay", async () => {
  using cache = testCache();
  await fill(cache);
  Deno.writeFileSync(`${cache.path}/models--org--toy/blobs/x.incomplete`, noise(1000));
  assert.equal(removeNamed(cache, "org/toy"), 300_010 + 400_002 + 50_000 + 1000);
  assert.deepEqual(scanCache(cache.path).map(({ repo }) => repo), ["org/other"]);
  assert.throws(() => removeNamed(cache, "org/toy"), {
    name: "UsageError",
    message: `Cannot remove "org/toy": it is not in "${cache.path}"`,
  });
  assert.throws(() => removeNamed(cache, "org/other@v7"), {
    message: 'Cannot remove "org/other@v7": no such revision is in the cache; there is ' +
      "main = 1111111",
  });
});

Deno.test("content in Python's shared store is not freed by removing links to it", async () => {
  using cache = testCache();
  await fill(cache);
  const blobs = `${cache.path}/models--org--other/blobs`;
  const [large] = [...Deno.readDirSync(blobs)]
    .filter(({ name }) => Deno.statSync(`${blobs}/${name}`).size === 300_000);
  const shared = `${cache.path}/blobs/ab/abcdef`;
  Deno.mkdirSync(`${cache.path}/blobs/ab`, { recursive: true });
  Deno.renameSync(`${blobs}/${large?.name}`, shared);
  Deno.symlinkSync("../../blobs/ab/abcdef", `${blobs}/${large?.name}`);
  assert.equal(removeNamed(cache, "org/other"), 50_010);
  assert.equal(Deno.statSync(shared).size, 300_000);
});

Deno.test("where the system has no links, snapshots hold the content itself", () => {
  using cache = testCache();
  const folders = repoFolders(cache.path, "org/toy");
  Deno.mkdirSync(folders.blobs, { recursive: true });
  Deno.writeTextFileSync(`${folders.blobs}/abc`, "content");
  const place = { commit: COMMIT, file: "deep/config.json", etag: "abc" };
  linkBlob(folders, place, () => {
    throw new Deno.errors.PermissionDenied("A required privilege is not held by the client.");
  });
  const path = `${folders.snapshots}/${COMMIT}/deep/config.json`;
  assert.ok(Deno.lstatSync(path).isFile);
  assert.equal(Deno.readTextFileSync(path), "content");
  assert.equal(removeNamed(cache, "org/toy"), 7, "the same bytes under two names count once");
});
