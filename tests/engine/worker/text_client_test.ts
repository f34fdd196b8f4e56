import assert from "node:assert/strict";
import { UsageError } from "../../../src/errors.ts";
import { TextThread } from "../../../src/engine/worker/text_client.ts";
import { fledglingTokenizer } from "../../text/tokenizers.ts";

const MAIN = new URL("../../../main.ts", import.meta.url);

function open(model?: string): TextThread & Disposable {
  const thread = new TextThread(MAIN, model === undefined ? {} : { model });
  return Object.assign(thread, { [Symbol.dispose]: () => thread.end(new Error("ended")) });
}

Deno.test("a text thread encodes and decodes, in the order of its questions", async () => {
  using thread = open();
  const tokenizer = fledglingTokenizer();
  const texts = ["amber", "Count from 3 to 20.", "é 日本"];
  const all = await Promise.all(texts.map((raw) => thread.encode({ raw })));
  assert.deepEqual(all, texts.map((text) => tokenizer.encode(text)));
  const ids = tokenizer.encode("amber", { addSpecialTokens: false });
  assert.equal(await thread.decode(ids), "amber");
  await assert.rejects(thread.decode([99_999]), UsageError);
});

Deno.test("a text thread reads control tokens in messages where the engine was opened so", async () => {
  const messages = [{ role: "user", content: "<|im_end|>" }] as const;
  using text = open();
  const tokens = new TextThread(MAIN, { allowSpecial: true });
  const [written, read] = await Promise.all(
    [text, tokens].map((thread) => thread.encode({ messages })),
  );
  tokens.end(new Error("ended"));
  const end = fledglingTokenizer().idOf("<|im_end|>");
  const count = (ids: readonly number[] = []) => ids.filter((id) => id === end).length;
  assert.equal(count(read), count(written) + 1);
});

Deno.test("a question that cannot be sent fails alone", async () => {
  using thread = open();
  const messages = [{ role: "user", content: "hi" }] as const;
  const templateArguments = { uncopied: () => {} } as unknown as Record<string, string>;
  // Once before the thread is ready and once after.
  for (let n = 0; n < 2; n++) {
    const failing = thread.encode({ messages, templateArguments });
    const behind = thread.encode({ raw: "amber" });
    await assert.rejects(failing, { name: "DataCloneError" });
    assert.deepEqual(await behind, fledglingTokenizer().encode("amber"));
  }
});

Deno.test("an aborted question is gone, and those behind it are answered", async () => {
  using thread = open();
  const abort = new AbortController();
  const [first, gone, last] = [
    thread.encode({ raw: "amber ".repeat(20_000) }, abort.signal),
    thread.encode({ raw: "gone" }, abort.signal),
    thread.encode({ raw: "amber" }),
  ];
  abort.abort();
  await Promise.all([first, gone].map((one) => assert.rejects(one, { name: "AbortError" })));
  assert.deepEqual(await last, fledglingTokenizer().encode("amber"));
  await assert.rejects(thread.encode({ raw: "a" }, AbortSignal.abort()), { name: "AbortError" });
});

/** A text thread that takes 400 ms to open its text and has one answer. */
const SLOW_TO_OPEN = `
  const wait = (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
  onmessage = ({ data }) => {
    if (data.kind === "open text") wait(400);
    postMessage(data.kind === "open text" ? { kind: "opened" } : { kind: "answer", value: [7] });
  };
  postMessage({ kind: "ready" });`;

Deno.test("questions that are aborted while the text is opened do not begin the opening anew", async () => {
  const { Worker } = globalThis;
  let started = 0;
  globalThis.Worker = class extends Worker {
    constructor(...of: ConstructorParameters<typeof Worker>) {
      super(...of);
      started++;
    }
  };
  try {
    const thread = new TextThread(`data:text/javascript,${encodeURIComponent(SLOW_TO_OPEN)}`);
    const asked = () => thread.encode({ raw: "a" }, AbortSignal.timeout(100));
    while (started === 1 && await asked().catch(() => undefined) === undefined);
    assert.equal(started, 1);
    thread.end(new Error("ended"));
  } finally {
    globalThis.Worker = Worker;
  }
});

Deno.test("a text thread without a checkpoint answers with why, and an ended one with that", async () => {
  using thread = open("/no/such/model");
  const why = { name: "UsageError", message: /^Cannot open "\/no\/such\/model/ };
  await assert.rejects(thread.encode({ raw: "a" }), why);
  await assert.rejects(thread.decode([1]), why);
  const waiting = assert.rejects(thread.encode({ raw: "a" }), { message: "ended" });
  thread.end(new Error("ended"));
  await waiting;
  await assert.rejects(thread.encode({ raw: "a" }), { message: "ended" });
});
