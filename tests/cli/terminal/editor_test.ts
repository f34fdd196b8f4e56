import assert from "node:assert/strict";
import { setImmediate } from "node:timers/promises";
import { terminalLines } from "../../../src/cli/terminal/editor.ts";
import { memoryHistory } from "../../../src/cli/terminal/history.ts";
import type { Line } from "../../../src/cli/terminal/lines.ts";
import { type FakeIo, fakeIo } from "../fake.ts";

const CTRL = {
  a: "\x01",
  c: "\x03",
  g: "\x07",
  k: "\x0b",
  r: "\x12",
  t: "\x14",
  u: "\x15",
  w: "\x17",
  y: "\x19",
  z: "\x1a",
};
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

/** Runs a test with an editor at its prompt, and closes the editor at the end. */
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
    await type(UP, '"""a\r\n... b"""');
    await type(UP, "older");
    await type(`${CTRL.u}\x1b[B`, '"""a\r\n... b"""');
    assert.deepEqual(await enter(), line('"""a\nb"""'));
  }));

Deno.test("Tab completes, twice lists; in a paste it is text", () =>
  edit([], async ({ type, enter, io }) => {
    await type("/set", "/set");
    io.type("\t");
    assert.deepEqual(await enter(), line("/set "));
    await type("/s", "/s");
    io.type("\t");
    await type("\t", "/set    /save\r\n");
    await type(`${CTRL.u}\x1b[200~a\tb\x1b[201~`, "a\u2409b");
    assert.deepEqual(await enter(), line("a\tb"));
  }));

Deno.test("lines that were typed before the terminal was raw end with the \\n that it made of Enter", async () => {
  const io = fakeIo({ terminal: true, columns: 40 });
  io.type("one\ntwo\nthr");
  using lines = terminalLines(io, { history: memoryHistory(), complete: (text) => [[], text] });
  await setImmediate();
  assert.deepEqual([await lines.next("> "), await lines.next("> ")], [line("one"), line("two")]);
  const last = lines.next("> ");
  io.type("ee\n"); // Ctrl+J
  io.type("four\r");
  assert.deepEqual(await last, line("three\nfour"));
});

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

Deno.test("a resize while the process is stopped is drawn when it goes on", () =>
  edit([], async ({ io, type, enter }) => {
    await type("a line of more than twenty columns", "columns");
    await type(CTRL.z, "\x1b[?2004l");
    io.resize(20);
    const before = io.err().length;
    io.raise("SIGWINCH");
    assert.equal(io.err().length, before, "the terminal is the shell's");
    io.raise("SIGCONT");
    await io.seen("\r\x1b[J> a line of more than twenty columns");
    io.raise("SIGWINCH");
    await io.seen("\x1b[1A\r\x1b[J> a line");
    assert.deepEqual(await enter(), line("a line of more than twenty columns"));
  }));

Deno.test("another width draws prompt and line anew", () =>
  edit([], async ({ io, type, enter }) => {
    await type("a line of more than twenty columns", "columns");
    io.resize(20);
    io.raise("SIGWINCH");
    // The cursor is one row down at the new width: the prompt is drawn a row above it.
    await io.seen("\x1b[1A\r\x1b[J> a line");
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

Deno.test("a long paste is one edit, shown shortened and drawn once, and given whole", () =>
  edit([], async ({ io, type, enter }) => {
    const pasted = Array.from({ length: 2000 }, (_, at) => `line ${at} of a text that was pasted`);
    const before = io.err().length;
    await type(`a \x1b[200~${pasted.join("\r\n")}\x1b[201~ b`, "> a [pasted 2000 lines] b");
    assert.ok(io.err().length - before < 100, "one drawing of one row");
    assert.deepEqual(await enter(), line(`a ${pasted.join("\n")} b`));
    await type(UP, "> ");
    await type(`\x1b[200~${"x".repeat(2000)}\x1b[201~`, "> [pasted 2000 characters]");
    await type(BACKSPACE, "> ");
    io.type("!");
    assert.deepEqual(await enter(), line("!"), "Backspace removes a paste at once");
  }));

Deno.test("a paste whose end mark never arrives ends at Ctrl+C", () =>
  edit([], async ({ io, enter }) => {
    io.type("\x1b[200~half a paste");
    io.type(CTRL.c);
    assert.deepEqual(await enter(), { kind: "interrupt", empty: true });
  }));

Deno.test("Ctrl+J and Alt+Enter begin a new line, Up and Down move between lines", () =>
  edit(["older"], async ({ io, type, enter }) => {
    await type("one\ntwo\x1b\rthree", "> one\r\n... two\r\n... three");
    io.type(`${UP}${UP}!\x1b[B?`);
    assert.deepEqual(await enter(), line("one!\ntwo?\nthree"));
    await type("a\n", "> a\r\n... ");
    await type(`b${UP}${UP}`, "> a\r\n... b");
    assert.deepEqual(await enter(), line("a\nb"), "no entry begins with it");
  }));

for (
  const [name, keys, text] of [
    ["words", `one two${CTRL.w}x\x1bb\x1b[1;5D,`, ",one x"],
    ["killed text comes back", `one two${CTRL.w}${CTRL.a}${CTRL.y} `, "two one "],
    ["Ctrl+K takes the rest, then the line end", `a\nb${UP}${CTRL.a}${CTRL.k}${CTRL.k}!`, "!b"],
    ["Ctrl+T exchanges", `ab${CTRL.t}`, "ba"],
    ["Ctrl+_ undoes", `one${CTRL.u}\x1f!`, "one!"],
    ["Home, End, Delete", "bc\x1b[Ha\x1b[3~\x1b[Fd", "acd"],
    ["an accent typed after its letter is one character with it", "e\u0301x\x7f\x7fa", "a"],
  ] as const
) {
  Deno.test(`editing keys: ${name}`, () =>
    edit([], async ({ io, enter }) => {
      for (const key of keys) io.type(key);
      assert.deepEqual(await enter(), line(text));
    }));
}

Deno.test("a text higher than the terminal shows the rows around the cursor", () =>
  edit([], async ({ io, type, enter }) => {
    const lines = Array.from({ length: 30 }, (_, at) => `line ${at}`);
    const before = io.err().length;
    await type(lines.join("\n"), "... line 29");
    assert.equal(io.err().slice(before).split("\n").length, 24);
    assert.deepEqual(await enter(), line(lines.join("\n")));
  }));

Deno.test("wide characters wrap before the edge, and the cursor counts their columns", () =>
  edit([], async ({ io, type, enter }) => {
    io.resize(7);
    await type(`漢字漢字`, "> 漢字漢字");
    await type(LEFT, "> 漢字漢字\r\x1b[2C");
    await type(LEFT, "\x1b[1A\r\x1b[J> 漢字漢字\r");
    assert.deepEqual(await enter(), line("漢字漢字"));
  }));
