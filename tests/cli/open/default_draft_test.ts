import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import { UsageError } from "../../../src/errors.ts";
import { draftingByDefault } from "../../../src/cli/open/default_draft.ts";
import type { EngineOptions } from "../../../src/engine/options.ts";
import { hubSettings } from "../../../src/hub/settings.ts";
import { COMMIT, SECOND, testCache, toyFiles } from "../../hub/caches.ts";
import { type LocalHub, startHub } from "../../hub/hub.ts";
import { fakeIo } from "../fake.ts";

const TARGET = "Qwen/Qwen3-8B";
const HEAD = "AngelSlim/Qwen3-8B_eagle3";
const FLEDGLING = new URL("../../../models/fledgling/", import.meta.url).pathname;
const TEXT = "from the text itself (SUFFIX)";

interface Asked {
  readonly model?: string;
  readonly draft?: string;
  readonly algorithm?: string;
  readonly speculate?: { readonly policy: string; readonly numSteps?: number };
}

/** Opens with an engine that accepts what `refuse` lets through. Returns what it was asked for, and stderr. */
async function opening(
  options: Asked,
  { cache, server, refuse = () => undefined, quiet = false }: {
    readonly cache: string;
    readonly server?: LocalHub;
    readonly refuse?: (options: Asked) => string | undefined;
    readonly quiet?: boolean;
  },
) {
  const io = fakeIo();
  const asked: Asked[] = [];
  const endpoint = server?.endpoint ?? "http://127.0.0.1:2";
  const env: Record<string, string> = { HF_HUB_CACHE: cache, HF_ENDPOINT: endpoint };
  if (server === undefined) env["HF_HUB_OFFLINE"] = "1";
  const hub = hubSettings((name) => env[name], () => undefined);
  const open = draftingByDefault(({ model, speculation }: EngineOptions) => {
    const options = { ...model, ...speculation } as Asked;
    asked.push(options);
    const why = refuse(options);
    return why === undefined ? Promise.resolve("open") : Promise.reject(new UsageError(why));
  }, { io, quiet, hub });
  const { speculate, ...model } = options;
  const opened = await open({
    model: model as NonNullable<EngineOptions["model"]>,
    speculation: speculate ? { speculate } : {},
  });
  equal(opened, "open");
  return { asked, err: io.err() };
}

const repos = () => ({
  [TARGET]: [{ files: toyFiles(), commit: COMMIT }],
  [HEAD]: [{ files: toyFiles(2), commit: SECOND }],
});

Deno.test("a draft by default: the known head, with its size before it is downloaded", async () => {
  await using server = startHub(repos());
  using cache = testCache();
  const place = { cache: cache.path, server };
  const { asked, err } = await opening({ model: TARGET }, place);
  equal(asked.length, 1);
  match(asked[0]?.model ?? "", /models--Qwen--Qwen3-8B\/snapshots\/1{40}$/);
  match(asked[0]?.draft ?? "", /models--AngelSlim--Qwen3-8B_eagle3\/snapshots\/2{40}$/);
  equal(
    err,
    `draft: ${HEAD} (known for ${TARGET}), 300 kB to download; --draft none does without it\n`,
  );
  const again = await opening({ model: TARGET }, place);
  equal(again.err, `draft: ${HEAD} (known for ${TARGET})\n`);
  equal((await opening({ model: TARGET }, { ...place, quiet: true })).err, "");
});

Deno.test("a draft by default: without a network the text drafts, and one line says so", async () => {
  using cache = testCache();
  {
    await using server = startHub({ [TARGET]: repos()[TARGET] ?? [] });
    const { asked, err } = await opening({ model: TARGET }, { cache: cache.path, server });
    deepEqual(asked.map(({ draft, algorithm }) => [draft, algorithm]), [[undefined, "SUFFIX"]]);
    match(
      err,
      /^draft: from the text itself \(SUFFIX\); not AngelSlim\/Qwen3-8B_eagle3: .*no such model.*\n$/,
    );
  }
  const { asked, err } = await opening({ model: TARGET }, { cache: cache.path });
  deepEqual(asked.map(({ draft, algorithm }) => [draft, algorithm]), [[undefined, "SUFFIX"]]);
  match(
    err,
    /^draft: from the text itself \(SUFFIX\); not AngelSlim\S+: .*HF_HUB_OFFLINE is set.*\n$/,
  );
});

Deno.test("a draft by default: one that does not fit is left out, then all drafting", async () => {
  await using server = startHub(repos());
  using cache = testCache();
  const place = { cache: cache.path, server };
  const noHead = ({ draft }: Asked) => draft ? "Cannot load: it takes 9 GB" : undefined;
  const first = await opening({ model: TARGET }, { ...place, refuse: noHead });
  deepEqual(first.asked.map(({ algorithm }) => algorithm), [undefined, "SUFFIX"]);
  ok(first.err.endsWith(`\ndraft: ${TEXT}; not ${HEAD}: cannot load: it takes 9 GB\n`), first.err);

  const nothing = ({ draft, algorithm }: Asked) =>
    draft ?? algorithm ? "Cannot load: no" : undefined;
  const plain = await opening({ model: TARGET }, { ...place, refuse: nothing });
  equal(plain.asked.length, 3);
  deepEqual(Object.keys(plain.asked[2] ?? {}).toSorted(), ["model"]);
  ok(plain.err.endsWith(`\ndraft: none; not ${HEAD}: cannot load: no\n`), plain.err);

  // The model itself cannot be opened: its own error is printed once.
  await rejects(
    opening({ model: TARGET }, { ...place, refuse: () => "Cannot use the model" }),
    new UsageError("Cannot use the model"),
  );
});

Deno.test("a draft by default: models that none is known for, and the embedded one's folder", async () => {
  using cache = testCache();
  const place = { cache: cache.path };
  const folder = `${cache.path}/mine`;
  Deno.mkdirSync(folder);
  Deno.writeTextFileSync(`${folder}/config.json`, "{}");
  const mine = await opening({ model: folder }, place);
  deepEqual(mine.asked[0]?.algorithm, "SUFFIX");
  equal(
    mine.err,
    `draft: from the text itself (SUFFIX; the folder "${folder}" does not say which model it is)\n`,
  );
  for (const model of [`${FLEDGLING}target`, `${FLEDGLING}target/`]) {
    const { asked, err } = await opening({ model }, place);
    deepEqual(asked, [{ model, draft: `${FLEDGLING}eagle3` }]);
    equal(err, `draft: ${FLEDGLING}eagle3 (the folder next to the model's)\n`);
  }
  const named = await opening({ model: `${FLEDGLING}target`, algorithm: "EAGLE" }, place);
  equal(named.asked[0]?.draft, `${FLEDGLING}eagle1`);
});

Deno.test("a draft by default: only where something is to draft and nothing says what", async () => {
  using cache = testCache();
  const model = `${FLEDGLING}target`;
  const cases: Asked[] = [
    {},
    { draft: "none", model },
    { draft: model, model },
    ...["NONE", "NGRAM", "SUFFIX", "NEXTN"].map((algorithm) => ({ model, algorithm })),
    { model, speculate: { policy: "off" } },
    { model, speculate: { policy: "ema", numSteps: 0 } },
  ];
  for (const options of cases) {
    const { asked, err } = await opening(options, { cache: cache.path });
    deepEqual([asked, err], [[options], ""]);
  }
  const folder = `${cache.path}/mine`;
  Deno.mkdirSync(folder);
  Deno.writeTextFileSync(`${folder}/config.json`, "{}");
  await rejects(
    opening({ model: folder, algorithm: "EAGLE3" }, { cache: cache.path }),
    /Cannot use "--draft auto": the folder/,
  );
});
