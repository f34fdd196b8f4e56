import assert from "node:assert/strict";
import { isTuple, type PickleRules, unpickle } from "../../src/model/files/pickle.ts";
import { op } from "./torch_files.ts";

const RULES: PickleRules = {
  global(module, name) {
    if (module === "math" && name === "pair") return { call: (args) => [...args] };
    return module === "math" && name === "pi" ? { value: Math.PI } : undefined;
  },
  persistent: (id) => `#${id}`,
};

function load(...ops: readonly (readonly number[])[]): unknown {
  return unpickle(Uint8Array.from([...op.proto, ...ops.flat(), ...op.stop]), RULES);
}

for (
  const [what, ops, expected] of [
    ["None", [op.none], null],
    ["a small integer", [op.int(7)], 7],
    ["a negative one", [op.int(-70000)], -70000],
    ["a long", [op.int(2 ** 40)], 2 ** 40],
    ["a negative long", [op.int(-(2 ** 40))], -(2 ** 40)],
    ["a text", [op.text("é\n")], "é\n"],
    ["a float", [[0x47, 0x40, 9, 0, 0, 0, 0, 0, 0]], 3.125],
    ["a list", [op.emptyList, op.int(1), op.append], [1]],
    ["what a global stands for", [op.global("math", "pi")], Math.PI],
    ["a persistent id", [op.int(3), op.persistent], "#3"],
    [
      "a call",
      [op.global("math", "pair"), op.mark, op.int(1), op.text("b"), op.tuple, op.reduce],
      [1, "b"],
    ],
    ["a memo", [op.int(5), op.put(9), [0x30], op.get(9)], 5],
    [
      "protocol 4",
      [[0x95, 0, 0, 0, 0, 0, 0, 0, 0], [0x8c, 4], [..."math"].map((c) => c.charCodeAt(0)), [0x94], [
        0x8c,
        2,
        0x70,
        0x69,
        0x93,
      ]],
      Math.PI,
    ],
  ] as const
) {
  Deno.test(`a pickle of ${what}`, () => assert.deepEqual(load(...ops), expected));
}

Deno.test("a dict is a Map, a tuple a frozen array, and state beside a dict's items is dropped", () => {
  const dict = load(
    op.emptyDict,
    op.mark,
    op.text("a"),
    op.mark,
    op.int(1),
    op.int(2),
    op.tuple,
    op.setItems,
    op.emptyDict,
    op.build,
  );
  assert.ok(dict instanceof Map);
  assert.deepEqual(dict.get("a"), [1, 2]);
  assert.ok(isTuple(dict.get("a")));
});

Deno.test("a list may hold itself", () => {
  const list = load(op.emptyList, op.put(0), op.get(0), op.append) as unknown[];
  assert.equal(list[0], list);
});

Deno.test("nesting is as deep as the pickle is long", () => {
  const deep = new Array(200_000).fill(0x5d);
  const closing = new Array(199_999).fill(0x61);
  assert.ok(Array.isArray(load(deep, closing)));
});

for (
  const [what, ops, message] of [
    [
      "a forbidden global",
      [op.global("os", "system")],
      /global "os\.system" is not allowed \(byte 2/,
    ],
    ["a forbidden opcode", [op.mark, [0x69]], /opcode INST \(0x69\) is not allowed \(byte 3 of/],
    ["an object", [op.global("math", "pi"), op.emptyTuple, [0x81]], /opcode NEWOBJ \(0x81\)/],
    ["an opcode that is none", [[0xff]], /opcode 0xff is not allowed/],
    ["a newer protocol", [[0x80, 6]], /protocol 6 is not known/],
    ["a call of a constant", [op.global("math", "pi"), op.emptyTuple, op.reduce], /not a function/],
    ["a call of a text", [op.text("x"), op.emptyTuple, op.reduce], /calls what is not a function/],
    ["a call with a list", [op.global("math", "pair"), op.emptyList, op.reduce], /without a tuple/],
    ["an empty stack", [op.append], /takes from an empty stack/],
    ["a pop below the mark", [op.int(1), op.mark, [0x30]], /takes from an empty stack/],
    ["a missing mark", [op.tuple], /there is no mark/],
    ["a memo never set", [op.get(3)], /memo 3 was never set/],
    ["items of a list", [op.emptyList, op.mark, op.setItems], /items of what is not a dict/],
    ["a key alone", [op.emptyDict, op.mark, op.int(1), op.setItems], /a key without a value/],
    ["a longer tuple", [op.emptyTuple, op.int(1), op.append], /appends to what is not a list/],
    ["state for a list", [op.emptyList, op.emptyDict, op.build], /state to what is not a dict/],
    ["a huge text", [[0x58, 255, 255, 255, 255]], /it ends early/],
    ["a huge 64-bit text", [[0x8d, ...new Array(8).fill(255)]], /it ends early/],
    ["a text that is not UTF-8", [[0x58, 1, 0, 0, 0, 0xff]], /not valid/],
    ["a wide integer", [[0x8a, 9, ...new Array(9).fill(127)]], /an integer is too large/],
    ["a global without an end", [[0x63, 0x6f, 0x73]], /it ends early/],
  ] as const
) {
  Deno.test(`a pickle with ${what} is refused`, () => assert.throws(() => load(...ops), message));
}

Deno.test("a pickle without its end is refused", () => {
  assert.throws(() => unpickle(Uint8Array.from(op.none), RULES), /it ends early \(byte 1 of/);
  assert.throws(() => unpickle(new Uint8Array(), RULES), /it ends early \(byte 0 of/);
});
