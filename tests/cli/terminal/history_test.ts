import assert from "node:assert/strict";
import {
  HISTORY_SIZE,
  historyPath,
  memoryHistory,
  openHistory,
} from "../../../src/cli/terminal/history.ts";

async function inFolder(use: (path: string) => void): Promise<void> {
  const dir = await Deno.makeTempDir();
  try {
    use(`${dir}/state/eyrie/chat_history`);
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}

/** Opens a history that must not warn. */
const open = (path: string) => openHistory(path, (line) => assert.fail(line));

Deno.test("history: each text once, the newest first, blank ones never", () => {
  const history = memoryHistory(["b", "a", "b"]);
  assert.deepEqual(history.lines, ["b", "a"]);
  for (const text of ["c", "a", " ", ""]) history.add(text);
  assert.deepEqual(history.lines, ["a", "c", "b"]);
});

Deno.test("history: the next chat has it, several lines and all; only its owner reads it", () =>
  inFolder((path) => {
    const first = open(path);
    first.add("one");
    first.add('two\n\tlines "quoted"');
    assert.deepEqual(open(path).lines, ['two\n\tlines "quoted"', "one"]);
    if (Deno.build.os === "windows") return;
    assert.equal((Deno.statSync(path).mode ?? 0) & 0o777, 0o600);
    Deno.chmodSync(path, 0o644);
    open(path);
    assert.equal((Deno.statSync(path).mode ?? 0) & 0o777, 0o600, "again after somebody opened it");
  }));

Deno.test("history: two chats at once lose nothing of each other", () =>
  inFolder((path) => {
    const [one, two] = [open(path), open(path)];
    one.add("1");
    two.add("2");
    one.add("3");
    assert.deepEqual(open(path).lines, ["3", "2", "1"]);
    assert.deepEqual(one.lines, ["3", "1"]);
  }));

Deno.test("history: the oldest go, in memory and in the file", () =>
  inFolder((path) => {
    const history = open(path);
    for (let at = 0; at < 2 * HISTORY_SIZE + 1; at++) history.add(`line ${at}`);
    assert.deepEqual([history.lines.length, history.lines[0]], [1000, "line 2000"]);
    assert.deepEqual(open(path).lines, history.lines);
    const kept = Deno.readTextFileSync(path).trim().split("\n");
    assert.deepEqual([kept.length, kept[0], kept.at(-1)], [1000, '"line 1001"', '"line 2000"']);
  }));

Deno.test("history: a line that a crash cut costs that line only", () =>
  inFolder((path) => {
    open(path).add("whole");
    Deno.writeTextFileSync(path, '"cut\n12\n\n"after"\n', { append: true });
    assert.deepEqual(open(path).lines, ["after", "whole"]);
  }));

Deno.test("history: a file that cannot be used is told of once and stops nobody", () =>
  inFolder((path) => {
    Deno.mkdirSync(path, { recursive: true });
    const warnings: string[] = [];
    const history = openHistory(path, (line) => warnings.push(line));
    history.add("kept here");
    assert.deepEqual(history.lines, ["kept here"]);
    assert.equal(warnings.length, 1);
    assert.match(warnings[0] ?? "", /^Cannot keep the history in ".*chat_history": /);
  }));

Deno.test("history: where the file is", () => {
  const at = (os: typeof Deno.build.os, env: Record<string, string>) =>
    historyPath((name) => env[name], os);
  const home = { HOME: "/h" };
  assert.equal(at("linux", home), "/h/.local/state/eyrie/chat_history");
  assert.equal(at("linux", { ...home, XDG_STATE_HOME: "/s" }), "/s/eyrie/chat_history");
  assert.equal(at("darwin", home), "/h/Library/Application Support/eyrie/chat_history");
  assert.equal(at("windows", { LOCALAPPDATA: "C:\\a" }), "C:\\a/eyrie/chat_history");
  assert.equal(at("linux", { HOME: "" }), undefined);
});
