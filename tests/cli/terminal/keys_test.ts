import assert from "node:assert/strict";
import { cellsOf, textOf } from "../../../src/cli/terminal/edited.ts";
import { type Key, KeyReader } from "../../../src/cli/terminal/keys.ts";

/** Joins runs of typed characters, because it does not matter where a chunk ends. */
function joined(keys: readonly Key[]): Key[] {
  return keys.reduce<Key[]>((all, key) => {
    const last = all.at(-1);
    return last?.kind === "text" && key.kind === "text"
      ? [...all.slice(0, -1), { kind: "text", text: last.text + key.text }]
      : [...all, key];
  }, []);
}

Deno.test("keys and pastes are the same wherever their bytes are cut", () => {
  const pasted = "one\r\ntwo\x03\x1b[31mx\x1b[20";
  const input = `a\x1b[200~${pasted}\x1b[201~b\r\n\x1b[A\x1b[1;5C\x1bOH\x1b[99~\x1bf\x7f\x01`;
  const key = (name: string): Key => ({ kind: "key", name });
  const wanted: Key[] = [
    { kind: "text", text: "a" },
    { kind: "paste", text: pasted },
    { kind: "text", text: "b" },
    ...["enter", "newline", "up", "M-f", "home", "M-f", "backspace", "C-a"].map(key),
  ];
  for (let cut = 0; cut <= input.length; cut++) {
    const reader = new KeyReader();
    const keys = [...reader.push(input.slice(0, cut)), ...reader.push(input.slice(cut))];
    assert.deepEqual(joined(keys), wanted, `cut ${cut}`);
  }
});

Deno.test("an ESC that nothing follows is the Escape key", () => {
  const reader = new KeyReader();
  assert.deepEqual([reader.push("\x1b"), reader.waits], [[], true]);
  assert.deepEqual(reader.flush(), [{ kind: "key", name: "escape" }]);
  assert.equal(reader.waits, false);
});

Deno.test("pasted text keeps line ends and tabs, and no other control characters", () => {
  assert.equal(textOf(cellsOf("a\r\nb\rc\td\x1b[31m\x9b\x03")), "a\nb\nc\td[31m");
});
