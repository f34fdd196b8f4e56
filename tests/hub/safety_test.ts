/** What a hub, a token or another user of the machine must not be able to do. */
import assert from "node:assert/strict";
import { download } from "../../src/hub/download.ts";
import { parseModelName } from "../../src/hub/names.ts";
import { hubSettings } from "../../src/hub/settings.ts";
import { COMMIT, testCache, toyFiles } from "./caches.ts";
import { sha256, startHub } from "./hub.ts";

const TOY = parseModelName("org/toy");
const FILES = toyFiles();
const WEIGHTS = FILES["model.safetensors"] as Uint8Array;
const BLOB = `models--org--toy/blobs/${sha256(WEIGHTS)}`;
const SECRET = "hf_secretsecret";

/** A server that answers every request with `answer`. */
function serve(answer: (request: Request) => Response) {
  const options = { port: 0, hostname: "127.0.0.1", onListen: () => {} };
  const server = Deno.serve(options, answer);
  return {
    endpoint: `http://127.0.0.1:${server.addr.port}`,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

async function failure(work: Promise<unknown>): Promise<Error> {
  return await work.then(() => assert.fail("no error"), (error: Error) => error);
}

Deno.test("a token that cannot be one is told of before it is used, and not shown", async () => {
  await using server = startHub({ "org/toy": [{ files: FILES, commit: COMMIT }] });
  using cache = testCache();
  const cases: [string, string, string][] = [
    [`${SECRET}\nhf_other`, "HF_TOKEN", "it has several lines, expected the token alone"],
    [`name: me\r\ntoken: ${SECRET}`, "HF_TOKEN", "it has several lines, expected the token alone"],
    [`${SECRET} x`, "HF_TOKEN", "it has characters that no token has"],
    [`${SECRET}ü`, "/home/me/.cache/huggingface/token", "it has characters that no token has"],
  ];
  for (const [text, from, why] of cases) {
    const { token, tokenFrom } = hubSettings(
      (name) => ({ HOME: "/home/me", ...from === "HF_TOKEN" ? { HF_TOKEN: text } : {} })[name],
      () => `${text}\n`,
    );
    const hub = cache.hub(server, { token: token!, tokenFrom: tokenFrom! });
    const error = await failure(download(TOY, hub));
    assert.equal(error.name, "UsageError");
    assert.equal(error.message, `Cannot use the token of ${from}: ${why}`);
  }
  assert.deepEqual(server.asked, []);
});

Deno.test("a server that repeats the token does not get it printed", async () => {
  using cache = testCache();
  const answers = [
    (text: string) => new Response("no", { status: 418, headers: { "X-Error-Message": text } }),
    (text: string) => new Response(text),
    (text: string) => Response.json({ sha: text }),
  ];
  for (const answer of answers) {
    await using server = serve(({ headers }) => answer(headers.get("Authorization") ?? ""));
    const { endpoint } = server;
    const error = await failure(download(TOY, cache.hub(undefined, { endpoint, token: SECRET })));
    assert.equal(error.name, "UsageError");
    assert.doesNotMatch(error.message, new RegExp(SECRET));
  }
});

Deno.test("a password in HF_ENDPOINT is told of and not shown", async () => {
  using cache = testCache();
  const endpoint = `https://me:${SECRET}@hub.example`;
  const { message } = await failure(download(TOY, cache.hub(undefined, { endpoint })));
  assert.equal(message, "Cannot use HF_ENDPOINT: it has a user name or a password in it");
});

Deno.test("who has a token set is not told to set one", async () => {
  await using server = serve(() => new Response("no", { status: 401 }));
  using cache = testCache();
  const { endpoint } = server;
  const hub = cache.hub(undefined, { endpoint, token: SECRET, tokenFrom: "/t/token" });
  const { message } = await failure(download(TOY, hub));
  assert.equal(
    message,
    `Cannot get "org/toy": there is no such model at ${endpoint}, or it is private or gated: ` +
      `accept the licence at ${endpoint}/org/toy as the account of the token of /t/token`,
  );
});

Deno.test("an answer without end is given up after some megabytes", async () => {
  let sent = 0;
  const piece = new TextEncoder().encode(" ".repeat(1 << 20));
  await using server = serve(() =>
    new Response(
      new ReadableStream({
        pull(controller) {
          sent += piece.length;
          controller.enqueue(piece);
        },
      }),
    )
  );
  using cache = testCache();
  const { endpoint } = server;
  const { message } = await failure(download(TOY, cache.hub(undefined, { endpoint })));
  assert.equal(message, `Cannot get "org/toy": ${endpoint} answers without end`);
  assert.ok(sent < 256 << 20, `${sent}`);
});

Deno.test("pages without end are given up", async () => {
  let asked = 0;
  await using server = serve(({ url }) => {
    asked += 1;
    if (url.includes("/revision/")) return Response.json({ id: "org/toy", sha: COMMIT });
    return Response.json([], { headers: { Link: `<${url}>; rel="next"` } });
  });
  using cache = testCache();
  const { endpoint } = server;
  const { message } = await failure(download(TOY, cache.hub(undefined, { endpoint })));
  assert.equal(message, `Cannot get "org/toy": ${endpoint} answers without end`);
  assert.equal(asked, 1000);
});

Deno.test("a beginning that is a link out of the cache is not written through", async () => {
  await using server = startHub({ "org/toy": [{ files: FILES, commit: COMMIT }] });
  using cache = testCache();
  const victim = `${cache.path}/victim`;
  const partial = `${cache.path}/${BLOB}.incomplete`;
  Deno.mkdirSync(`${cache.path}/models--org--toy/blobs`, { recursive: true });
  for (const there of [true, false]) {
    if (there) Deno.writeTextFileSync(victim, "mine");
    else Deno.removeSync(victim);
    Deno.symlinkSync(victim, partial);
    const { folder } = await download(TOY, cache.hub(server));
    assert.deepEqual(Deno.readFileSync(`${folder}/model.safetensors`), WEIGHTS);
    if (there) assert.equal(Deno.readTextFileSync(victim), "mine");
    else assert.throws(() => Deno.lstatSync(victim), Deno.errors.NotFound);
    assert.ok(Deno.lstatSync(`${cache.path}/${BLOB}`).isFile);
    Deno.removeSync(`${cache.path}/${BLOB}`);
  }
});
