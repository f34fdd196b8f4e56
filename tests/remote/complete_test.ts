import assert from "node:assert/strict";
import { complete } from "../../src/remote/complete.ts";
import { endpointOf } from "../../src/remote/endpoint.ts";
import { readServer } from "../../src/remote/reading.ts";
import { playback, recorded, stream } from "./playback.ts";

const data = (json: unknown) => `data: ${JSON.stringify(json)}\n\n`;
const delta = (content: string, finish_reason: string | null = null) => ({
  choices: [{ index: 0, delta: { content }, finish_reason }],
});
const counted = (completion_tokens: number) => ({
  usage: { prompt_tokens: 5, completion_tokens, total_tokens: 5 + completion_tokens },
});

const STREAMS: readonly [what: string, chunks: readonly object[], tokens: unknown][] = [
  [
    "each chunk has the count until there",
    [{ ...delta(""), ...counted(0) }, { ...delta("a"), ...counted(1) }, {
      ...delta("bc", "stop"),
      ...counted(3),
    }],
    [1, 2],
  ],
  [
    "the chunk that ends the answer has the count of all",
    [delta("a"), delta("b"), delta("c"), { ...delta("", "stop"), ...counted(3) }],
    [undefined, undefined, undefined],
  ],
  [
    "the first chunk has a count of 0 and the last one that of all",
    [{ ...delta(""), ...counted(0) }, delta("a"), delta("b"), {
      ...delta("c", "stop"),
      ...counted(3),
    }],
    [undefined, undefined, undefined],
  ],
  [
    "every chunk has a count of 0",
    [{ ...delta("a"), ...counted(0) }, { ...delta("b", "stop"), ...counted(0) }, {
      choices: [],
      ...counted(2),
    }],
    [undefined, undefined],
  ],
];

for (const [what, chunks, tokens] of STREAMS) {
  Deno.test(`tokens of the pieces of an answer: ${what}`, async () => {
    await using server = playback(() => stream(...chunks.map(data), "data: [DONE]\n\n"));
    const endpoint = endpointOf(server.url, () => undefined);
    const pieces: (number | undefined)[] = [];
    await complete(
      { endpoint, kind: "other", model: "m" },
      {
        prompt: { raw: "x" },
        fields: {},
        signal: new AbortController().signal,
      },
      ({ tokens }) => void pieces.push(tokens),
    );
    assert.deepEqual(pieces, tokens);
  });
}

Deno.test("an answer is the same however its stream is cut, with CRLF, comments and any case of the type", async () => {
  const text = recorded("vllm_chat.sse").replaceAll("\n\n", "\n\n: comment\n\n");
  const crlf = text.replaceAll("\n", "\r\n");
  const bytes = Array.from(
    new TextEncoder().encode(crlf.replace("{", '{"\u{1f98a}":1,')),
    (byte) => Uint8Array.of(byte),
  );
  const answers = [];
  for (const pieces of [[new TextEncoder().encode(text)], bytes]) {
    const headers = { "content-type": "Text/Event-Stream" };
    await using server = playback(() => new Response(ReadableStream.from(pieces), { headers }));
    const signal = new AbortController().signal;
    const asked = { prompt: { raw: "x" }, fields: {}, signal };
    const endpoint = endpointOf(server.url, () => undefined);
    answers.push(await complete({ endpoint, kind: "vllm", model: "m" }, asked, () => {}));
  }
  assert.equal(answers[0]?.outputTokens, 7);
  assert.deepEqual(answers[1], answers[0]);
});

Deno.test("reading a server that does not answer ends with the signal, in one error", async () => {
  const asked = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<Response>();
  await using server = playback((_, all) => {
    if (all.length === 2) asked.resolve();
    return ended.promise;
  });
  const stop = new AbortController();
  const endpoint = endpointOf(server.url, () => undefined);
  const reading = readServer({ endpoint, kind: "sglang", model: "m" }, stop.signal);
  await asked.promise;
  stop.abort(new Error("stopped"));
  await assert.rejects(reading, /stopped/);
  ended.resolve(new Response());
});
