import assert from "node:assert/strict";
import { structureOf } from "../../src/serve/http/body.ts";
import { sameText } from "../../src/serve/http/guard.ts";
import { usedKey } from "../../src/cli/serve/serve.ts";
import { UsageError } from "../../src/errors.ts";
import type { ServerOptions } from "../../src/serve/server.ts";
import { fakeServer } from "./fake_server.ts";
import { rawHttp } from "./raw.ts";
import { user } from "./server.ts";

const CHAT = "/v1/chat/completions";

/** The status of the answer to a raw request. */
async function statusOf(url: string, request: string | Uint8Array): Promise<number> {
  const answer = await rawHttp(url, request);
  return Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1]);
}

function getWith(path: string, headers: Record<string, string>): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `GET ${path} HTTP/1.1\r\n${lines.join("")}Connection: close\r\n\r\n`;
}

function postWith(path: string, headers: Record<string, string>, body = "{}"): string {
  return getWith(path, { Host: "localhost", ...headers }).replace("GET", "POST") + body;
}

async function withServer(
  options: Partial<ServerOptions>,
  use: (server: Awaited<ReturnType<typeof fakeServer>>) => Promise<void>,
): Promise<void> {
  await using server = await fakeServer(options);
  await use(server);
}

Deno.test("the Host header: addresses, localhost and names that were told, nobody else's", () =>
  withServer({ hosts: ["models.example.org"] }, async ({ url }) => {
    const own = ["localhost:8000", "127.0.0.1", "[::1]:80", "a.localhost", "Models.example.org:1"];
    for (const Host of own) {
      assert.equal(await statusOf(url, getWith("/v1/models", { Host })), 200, Host);
    }
    const other = [
      "evil.example.com",
      "models.example.org.evil.com",
      "localhost.evil.com",
      "127.0.0.1.evil.com",
    ];
    for (const Host of other) {
      assert.equal(await statusOf(url, getWith("/v1/models", { Host })), 403, Host);
      assert.equal(await statusOf(url, getWith("/health", { Host })), 403, Host);
    }
  }));

Deno.test("pages of other origins may not ask; of those that were told, browsers may read", () =>
  withServer({ origins: ["http://app.example.org"] }, async ({ url, ask }) => {
    const { host } = new URL(url);
    for (const origin of ["http://evil.example.com", "null", `http://${host}.evil.com`]) {
      for (const method of ["GET", "OPTIONS"]) {
        const response = await ask("/v1/models", undefined, { method, headers: { origin } });
        assert.equal(response.status, 403, origin);
        assert.equal(response.headers.get("access-control-allow-origin"), null);
        await response.body?.cancel();
      }
      const chat = await ask(CHAT, user("hi"), { method: "POST", headers: { origin } });
      assert.equal(chat.status, 403);
      await chat.body?.cancel();
    }
    const own = await ask("/v1/models", undefined, { headers: { origin: url } });
    assert.equal(own.status, 200);
    await own.body?.cancel();
    const headers = {
      origin: "http://app.example.org",
      "access-control-request-headers": "authorization",
    };
    const asked = await ask(CHAT, undefined, { method: "OPTIONS", headers });
    assert.equal(asked.status, 204);
    assert.equal(asked.headers.get("access-control-allow-origin"), headers.origin);
    assert.equal(asked.headers.get("access-control-allow-headers"), "authorization");
    assert.match(
      asked.headers.get("access-control-expose-headers") ?? "",
      /x-request-id, request-id/,
    );
  }));

Deno.test("the key: every route but /health needs it, whatever the path's spelling", () =>
  withServer({ apiKey: "right" }, async ({ url, ask }) => {
    const paths = [
      "/v1/models",
      "/metrics",
      "/server_info",
      "/slots",
      "/props",
      "/openapi.json",
      "/nowhere",
      CHAT, // not 405
    ];
    const keys: Record<string, string>[] = [{}, { authorization: "Bearer wrong" }, {
      "x-api-key": "righ",
    }, {
      authorization: "Basic right",
    }, { authorization: "right" }];
    for (const path of paths) {
      for (const headers of keys) {
        const response = await ask(path, undefined, { headers });
        assert.equal(response.status, 401, `${path} ${JSON.stringify(headers)}`);
        assert.equal((await response.json()).error.code, "invalid_api_key");
      }
    }
    const tricks = [
      "//v1/models",
      "/health/../v1/models",
      "/health/%2e%2e/v1/models",
      "/%76%31/models",
      "/V1/models",
      "/v1/models/",
      "/health/v1/models",
      "/v1/models?/health",
    ];
    for (const path of tricks) {
      assert.equal(await statusOf(url, getWith(path, { Host: "localhost" })), 401, path);
    }
    for (const headers of [{ authorization: "Bearer right" }, { "x-api-key": "right" }]) {
      const response = await ask("/v1/models", undefined, { headers });
      assert.equal(response.status, 200);
      await response.body?.cancel();
    }
    assert.equal((await ask("/health")).status, 200);
    // A client with the key may use any host name.
    const named = getWith("/v1/models", {
      Host: "proxy.example.com",
      authorization: "Bearer right",
    });
    assert.equal(await statusOf(url, named), 200);
  }));

Deno.test("a key is used without the space around it; one that no header can hold is refused", () => {
  assert.equal(usedKey(" secret\n"), "secret");
  for (const key of ["", " \n", "two words", "two\nlines", "schl\u00fcssel"]) {
    assert.throws(() => usedKey(key), UsageError, JSON.stringify(key));
  }
});

Deno.test("errors of no route have the shape of the API whose path it is", () =>
  withServer({}, async ({ url }) => {
    const shapes = [
      ["/v1/messages", /^\{"type":"error","error":\{"type":"(\w+)","message":"[^"\\]/],
      ["/api/chat", /^\{"error":"[^"]/],
      ["/v1/chat/completions", /^\{"error":\{"message":"/],
    ] as const;
    for (const [path, shape] of shapes) {
      const requests = [
        [404, getWith(`${path}/nowhere`, { Host: "localhost" })],
        [405, getWith(path, { Host: "localhost" })],
        [403, getWith(path, { Host: "evil.example.com" })],
        [413, postWith(path, { "Content-Length": String(2 ** 30) })],
        [415, postWith(path, { "Content-Encoding": "gzip", "Content-Length": "2" })],
      ] as const;
      for (const [status, request] of requests) {
        const answer = await rawHttp(url, request);
        assert.ok(answer.startsWith(`HTTP/1.1 ${status} `), `${path} ${status}: ${answer}`);
        const body = answer.split("\r\n\r\n")[1] ?? "";
        assert.match(body, shape);
        assert.match(answer, /\r\nx-content-type-options: nosniff\r\n/i);
        const type = shape.exec(body)?.[1];
        if (path === "/v1/messages" && (status === 405 || status === 415)) {
          assert.equal(type, "invalid_request_error");
        }
      }
    }
    const anthropic = { Host: "localhost", "anthropic-version": "2023-06-01" };
    for (const path of ["/v1/nowhere", "/v1/models/nobody", "/v1/chat/completions"]) {
      assert.match(await rawHttp(url, getWith(path, anthropic)), /\{"type":"error",/, path);
    }
  }));

Deno.test("a body may say that it is not encoded", () =>
  withServer({}, async ({ url }) => {
    const body = JSON.stringify(user("hi"));
    const headers = { "Content-Encoding": "Identity", "Content-Length": String(body.length) };
    assert.equal(await statusOf(url, postWith(CHAT, headers, body)), 200);
  }));

Deno.test("keys are compared whole", () => {
  assert.ok(sameText("a key", "a key"));
  for (const other of ["", "a", "a keyy", "A key", "b key"]) assert.ok(!sameText("a key", other));
});

Deno.test("paths and methods that are none", () =>
  withServer({}, async ({ url, ask }) => {
    for (const path of ["/v1", "/v1/chat", "/etc/passwd", "/v1/chat/completions/x"]) {
      const response = await ask(path);
      assert.equal(response.status, 404, path);
      assert.match((await response.json()).error.message, /^there is no GET/);
    }
    for (
      const path of [
        "/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/..%2f..%2fetc/passwd",
        "/%00",
        "/%ff",
      ]
    ) {
      assert.equal(await statusOf(url, getWith(path, { Host: "localhost" })), 404, path);
    }
    const wrong = await ask(CHAT);
    assert.deepEqual([wrong.status, wrong.headers.get("allow")], [405, "POST"]);
    await wrong.body?.cancel();
    const heads = await Promise.all(
      ["/v1/models", CHAT].map((path) => ask(path, undefined, { method: "HEAD" })),
    );
    assert.deepEqual(heads.map(({ status }) => status), [200, 405]);
    assert.equal(await statusOf(url, "BOGUS / HTTP/9.9\r\n\r\n"), 400);
    assert.equal(await statusOf(url, "GET\r\n\r\n"), 400);
    assert.equal(await statusOf(url, getWith("/v1\\models", { Host: "localhost" })), 400);
  }));

Deno.test("bodies: too large, too deep, no UTF-8, half", () =>
  withServer({}, async ({ url, ask, server }) => {
    const large = await ask(CHAT, "x".repeat(9 * 2 ** 20));
    assert.equal(large.status, 413);
    await large.body?.cancel();
    // A body without a length is counted as it comes.
    const endless = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(new Uint8Array(2 ** 20)),
    });
    const streamed = await ask(CHAT, undefined, { method: "POST", body: endless }).catch(() =>
      undefined
    );
    assert.ok(streamed === undefined || streamed.status === 413);
    await streamed?.body?.cancel();
    for (
      const deep of ["[".repeat(10_000), `{"messages":${"[".repeat(10_000)}${"]".repeat(10_000)}}`]
    ) {
      const { error } = await (await ask(CHAT, deep)).json();
      assert.match(error.message, /nested more than 100 levels/);
    }
    const bytes = Uint8Array.of(0x7b, 0x22, 0xff, 0xfe, 0x22, 0x7d);
    const { error } = await (await ask(CHAT, undefined, { method: "POST", body: bytes })).json();
    assert.match(error.message, /not UTF-8/);
    const head =
      "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n";
    const half = await rawHttp(url, `${head}{"mess`, { closeWrite: true });
    assert.ok(half === "" || half.startsWith("HTTP/1.1 400"), half);
    assert.equal(server.service.table.live.size, 0);
    assert.equal((await ask("/health")).status, 200);
  }));

Deno.test("bodies: too many parts are refused before they are checked; many that do not fit are 400", () =>
  withServer({}, async ({ ask }) => {
    const list = (item: string, count: number) => `[${Array(count).fill(item).join(",")}]`;
    const bodies = [
      [CHAT, `{"messages":${list("{}", 100_000)}}`, 413, /objects, lists and fields/],
      [CHAT, `{"messages":${list("1", 2 ** 18 + 1)}}`, 413, /262145 values, allowed are 262144/],
      ["/v1/completions", `{"prompt":${list("true", 200_000)}}`, 400, /Cannot use "prompt/],
    ] as const;
    for (const [path, body, status, message] of bodies) {
      const response = await ask(path, body);
      assert.match((await response.json()).error.message, message);
      assert.equal(response.status, status);
    }
  }));

Deno.test("the structure of JSON is counted outside of its texts", () => {
  assert.deepEqual(structureOf("[[{}]]"), { depth: 3, parts: 3, values: 1 });
  assert.deepEqual(structureOf('["[[[,", "\\"[[:", {"{": 1}]'), { depth: 2, parts: 3, values: 3 });
  assert.deepEqual(structureOf("7"), { depth: 0, parts: 0, values: 1 });
});
