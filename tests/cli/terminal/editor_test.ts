import assert from "node:assert/strict";
import { terminalLines } from "../../../src/cli/terminal/editor.ts";
import { memoryHistory } from "../../../src/cli/terminal/history.ts";
import type { Line } from "../../../src/cli/terminal/lines.ts";
import { type FakeIo, fakeIo } from "../fake.ts";

const CTRL = { c: "\x03", g: "\x07", r: "\x12", u: "\x15", z: "\x1a" };
const LEFT = "\x1b[D";
const UP = "\x1b[A";
const BACKSPACE = "\x7f";

interface Desk {
  readonly io: FakeIo;
  /** Types and waits until the terminal shows the text. */
  readonly type: (keys: string, shows: string) => Promise<void>;
  /** The line that Enter gives. */
  readonly enter: () => Promise<Line>;
  readonly remember: (text: string) => void;
}

/** An editor at its prompt, closed at the end. */
async function edit(history: string[], use: (desk: Desk) => Promise<void>): Promise<void> {
  const io = fakeIo({ terminal: true, columns: 40 });
  using lines = terminalLines(io, {
    history: memoryHistory(history),
    complete: (line) => [["/set ", "/save "].filter((name) => name.startsWith(line)), line],
  });
  let line = lines.next("> ");
  await io.seen("> ");
  await use({
    io,
    async type(keys, shows) {
      io.type(keys);
      await io.seen(shows);
    },
    async enter() {
      io.type("\r");
      const given = await line;
      line = lines.next("> ");
      return given;
    },
    remember: lines.remember,
  });
}

const line = (text: string): Line => ({ kind: "line", text });

Deno.test("Ctrl+R finds the newest line, again an older one, Enter gives it", () =>
  edit(["tell me more", "hello", "tell a story"], async ({ type, enter }) => {
    await type(CTRL.r, "(reverse-i-search)`': ");
    await type("tel", "`tel': tell me more");
    await type(CTRL.r, "`tel': tell a story");
    await type(CTRL.r, "(failed reverse-i-search)`tel': tell a story");
    await type(BACKSPACE, "(reverse-i-search)`te': tell me more");
    await type("ll a", "`tell a': tell a story");
    assert.deepEqual(await enter(), line("tell a story"));
  }));

Deno.test("Ctrl+R: Ctrl+G and Escape give back what was typed, other keys edit what was found", () =>
  edit(["one two", "x"], async ({ io, type, enter }) => {
    await type(`my line${LEFT}`, "line");
    for (const key of [CTRL.g, "\x1b"]) {
      await type(`${CTRL.r}two`, "`two': one two");
      await type(key, "> my line");
    }
    await type("!", "> my lin!e");
    await type(`${CTRL.r}two`, "`two': one two");
    await type(LEFT, "> one two");
    io.type(",");
    assert.deepEqual(await enter(), line("one, two"));
    await type(`${CTRL.r}${CTRL.r}`, "`two': one two"); // the last search again
    io.type(CTRL.c);
    assert.deepEqual(await enter(), { kind: "interrupt", empty: false });
  }));

Deno.test("history: what was remembered is recalled, several lines as one", () =>
  edit(["older"], async ({ type, enter, remember }) => {
    await type("a line of a message", "message");
    await enter();
    remember('"""a\nb"""');
    await type(UP, '"""a\u240Ab"""');
    await type(UP, "older");
    await type(`${CTRL.u}\x1b[B`, '"""a\u240Ab"""');
    assert.deepEqual(await enter(), line('"""a\nb"""'));
  }));

Deno.test("Tab completes, twice lists; in a paste it is text", () =>
  edit([], async ({ type, enter, io }) => {
    await type("/set", "/set");
    io.type("\t");
    assert.deepEqual(await enter(), line("/set "));
    await type("/s", "/s");
    io.type("\t");
    await type("\t", "/save ");
    await type(`${CTRL.u}\x1b[200~a\tb\x1b[201~`, "a\u2409b");
    assert.deepEqual(await enter(), line("a\tb"));
  }));

Deno.test("Ctrl+Z gives the terminal back; then prompt and line come back, and keys work", () =>
  edit([], async ({ io, type, enter }) => {
    await type(`half${LEFT}`, "half");
    await type(CTRL.z, "\x1b[?2004l");
    assert.deepEqual(io.modes.slice(-2), [false, "stop"]);
    io.raise("SIGCONT");
    assert.equal(io.modes.at(-1), true, "raw again");
    await io.seen("\x1b[?2004h");
    await io.seen("> half");
    io.type("X");
    assert.deepEqual(await enter(), line("halXf"));
  }));

Deno.test("Ctrl+Z where no shell stops the process goes on by itself", () =>
  edit([], async ({ io, type, enter }) => {
    await type("half", "half");
    await type(CTRL.z, "\x1b[?2004l");
    await io.seen("> half");
    assert.equal(io.modes.at(-1), true);
    assert.deepEqual(await enter(), line("half"));
  }));

Deno.test("another width draws prompt and line anew", () =>
  edit([], async ({ io, type, enter }) => {
    await type("a line of more than twenty columns", "columns");
    io.resize(20);
    io.raise("SIGWINCH");
    // The cursor is one row down at the new width: the prompt is drawn a row above it.
    await io.seen("\x1b[1A\x1b[1G\x1b[0J> a line");
    assert.deepEqual(await enter(), line("a line of more than twenty columns"));
  }));

Deno.test("the end, an error that nobody catches and a signal give the terminal back", async () => {
  const closed: FakeIo[] = [];
  await edit([], ({ io }) => Promise.resolve(void closed.push(io)));
  for (const io of closed) {
    assert.ok(io.err().endsWith("\x1b[?2004l"));
    assert.equal(io.modes.at(-1), false);
  }
  await edit([], async ({ io }) => {
    dispatchEvent(new ErrorEvent("error", { error: new Error("nobody's") }));
    await io.seen("\x1b[?2004l");
    assert.equal(io.modes.at(-1), false);
  });
  await edit([], async ({ io }) => {
    io.interrupt();
    await io.seen("\x1b[?2004l");
    assert.equal(io.modes.at(-1), false);
  });
});
