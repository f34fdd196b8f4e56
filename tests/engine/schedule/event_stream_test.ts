import assert from "node:assert/strict";
import { EventStream } from "../../../src/engine/schedule/event_stream.ts";
import { type EngineEvent, resultOf } from "../../../src/engine/schedule/events.ts";

const text = (of: string): EngineEvent => ({ kind: "text", text: of });
const FINISH = { kind: "finish", result: { text: "ab" } } as EngineEvent;
const error: EngineEvent = { kind: "error", error: new RangeError("broken") };

/** A stream that says how often it was cancelled. */
function open() {
  const counts = { cancelled: 0 };
  return { counts, stream: new EventStream(() => void counts.cancelled++) };
}

Deno.test("events are read in their order, those that were pushed before and those that follow", async () => {
  const { counts, stream } = open();
  stream.push(text("a"));
  const texts: string[] = [];
  const reading = resultOf(stream, (event) => event.kind === "text" && texts.push(event.text));
  await undefined;
  stream.push(text("b"));
  stream.push(FINISH);
  stream.push(text("after the end"));
  assert.equal((await reading).text, "ab");
  assert.deepEqual([texts, stream.ended, counts.cancelled], [["a", "b"], true, 0]);
  assert.deepEqual(await stream.next(), { done: true, value: undefined });
});

Deno.test("a listener is called as an event is pushed, also for those before it listened", () => {
  const { stream } = open();
  const kinds: string[] = [];
  stream.push(text("a"));
  stream.listen((event) => {
    kinds.push(event.kind);
    // A listener may end the request itself.
    if (kinds.length === 2) stream.push(error);
    return kinds.length;
  });
  assert.equal(stream.push(text("b")), 3);
  assert.equal(stream.push(FINISH), undefined);
  assert.deepEqual([kinds, stream.ended], [["text", "text", "error"], true]);
});

Deno.test("what a listener pushes comes after what was pushed before it listened", () => {
  const { stream } = open();
  for (const one of ["a", "b"]) stream.push(text(one));
  const kinds: string[] = [];
  stream.listen((event) => {
    // As closing the engine does.
    if (kinds.push(event.kind) === 1) stream.push(error);
  });
  assert.deepEqual([kinds, stream.ended], [["text", "text", "error"], true]);
});

Deno.test("several reads at once get an event each, in their order", async () => {
  const { stream } = open();
  const reads = Promise.all(Array.from({ length: 3 }, () => stream.next()));
  for (const event of [text("a"), text("b")]) stream.push(event);
  await undefined;
  stream.push(FINISH);
  assert.deepEqual((await reads).map(({ value }) => value), [text("a"), text("b"), FINISH]);
});

Deno.test("what a listener throws is thrown where the event was pushed", () => {
  const { stream } = open();
  stream.listen(() => {
    throw new RangeError("the listener's own");
  });
  assert.throws(() => stream.push(text("a")), RangeError);
  assert.equal(stream.ended, false);
  assert.throws(() => stream.push(FINISH), RangeError);
  assert.equal(stream.ended, true);
});

Deno.test("an error is thrown to who iterates, after the events before it", async () => {
  const { counts, stream } = open();
  stream.push(text("a"));
  stream.push(error);
  const texts: string[] = [];
  const reading = resultOf(stream, (event) => event.kind === "text" && texts.push(event.text));
  await assert.rejects(reading, RangeError);
  assert.deepEqual([texts, counts.cancelled], [["a"], 0]);
});

Deno.test("leaving the iteration cancels the request and waits for its end", async () => {
  const { counts, stream } = open();
  stream.push(text("a"));
  let left = false;
  const reading = (async () => {
    for await (const _ of stream) break;
    left = true;
  })();
  for (let turn = 0; turn < 20; turn++) await undefined;
  assert.deepEqual([left, counts.cancelled], [false, 1]);
  stream.push(text("b"));
  stream.push(FINISH);
  await reading;
  stream.cancel();
  assert.deepEqual([left, counts.cancelled], [true, 1]);
});
