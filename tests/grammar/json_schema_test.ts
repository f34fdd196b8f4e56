import assert from "node:assert/strict";
import { UsageError } from "../../src/errors.ts";
import { checkGrammar } from "../../src/grammar/grammars.ts";
import { accepts } from "./accepts.ts";
import { isValidJson } from "./cases.ts";

const NODE = {
  $defs: {
    node: {
      type: "object",
      properties: { "a/b": { type: "integer" }, next: { $ref: "#/$defs/node" } },
      required: ["a/b"],
    },
  },
  $ref: "#/$defs/node",
};

/** References are relative to the nearest `$id` around them; what only looks like one is none. */
const IDENTIFIED = {
  $id: "https://example.org/root",
  type: "object",
  properties: {
    a: { $ref: "item" },
    b: { $ref: "https://example.org/item#/$defs/a%20part" },
    c: { $ref: "#/$defs/part" },
    $id: { const: { $id: "item", $ref: "nowhere" } },
  },
  required: ["a", "b", "c"],
  $defs: {
    "x/item": {
      $id: "item",
      type: "array",
      items: { $ref: "#/$defs/a%20part" },
      $defs: { "a part": { type: "integer" } },
    },
    part: { type: "string" },
  },
};

const CASES:
  readonly (readonly [schema: unknown, good: readonly string[], bad: readonly string[]])[] = [
    [true, ["1", '"x"', '{"a": [null]}', "-0.5e+10"], ["", "{a}", "[1,2]", "01", "1e999"]],
    [
      {
        type: "object",
        properties: { a: { type: "integer" }, b: { type: "null" } },
        required: ["b"],
      },
      ['{"b": null}', '{"a": 0, "b": null}'],
      ["{}", '{"a": 1}', '{"b": null, "a": 1}', '{"b": null, "c": 1}', '{"a": 1.5, "b": null}'],
    ],
    [
      {
        type: "object",
        properties: { ab: { type: "boolean" } },
        additionalProperties: { const: 1 },
      },
      ["{}", '{"ab": true}', '{"a": 1, "abc": 1, "": 1}', '{"ab": false, "b": 1}'],
      ['{"a": 1, "ab": 1}', '{"\\u0061b": 1}', '{"ab": 1}'],
    ],
    [{ type: "object" }, ["{}", '{"x": {"y": []}}'], ["[]", "null"]],
    [{ required: ["x"] }, ['{"x": 1}', '{"x": {}}'], ["{}", "1"]],
    [
      { properties: { 'say "hi"': { type: "null" }, "größe": { type: "null" } } },
      ['{"say \\"hi\\"": null, "größe": null}', '{"größe": null}'],
      ['{"say "hi"": null}'],
    ],
    [
      { type: "array", items: { type: "boolean" }, minItems: 1, maxItems: 3 },
      ["[true]", "[true, false, true]"],
      ["[]", "[true, true, true, true]", "[1]"],
    ],
    [
      { prefixItems: [{ const: "a" }, { type: "integer" }], items: { type: "null" }, minItems: 3 },
      ['["a", 1, null]', '["a", 1, null, null]'],
      ['["a", 1]', '["a"]', '["a", 1, 2]'],
    ],
    [{ prefixItems: [{ type: "integer" }, false] }, ["[1]"], ["[1, 2]", "[null]"]],
    [{ type: "array", prefixItems: [false] }, ["[]"], ["[1]"]],
    [{ const: -0 }, ["0"], ["1"]],
    [{ enum: [1, 0], const: -0 }, ["0"], ["1"]],
    [{ allOf: [{ const: { a: [-0], b: 1 } }, { const: { b: 1, a: [0] } }] }, [
      '{"b":1,"a":[0]}',
    ], ['{"b":1,"a":[1]}']],
    [{ type: "string", minLength: 2, maxLength: 3 }, ['"ab"', '"äöü"', '"\\n😀"'], [
      '"a"',
      '"abcd"',
      '"a\nb"',
    ]],
    [{ type: "string", pattern: '^a.["\\\\]$' }, ['"ab\\""', '"aä\\\\"', '"a\\"\\""'], [
      '"ab"',
      '"ab""',
      '"ab\\n"',
    ]],
    [{ type: "string", format: "date" }, ['"2024-02-28"', '"1999-12-31"'], [
      '"2023-02-30"',
      '"2023-13-01"',
    ]],
    [
      { type: "string", format: "duration" },
      ['"P1Y2M3DT4H5M6S"', '"PT36H"', '"P2W"', '"P10D"', '"P1MT1M"'],
      ['"P"', '"PT"', '"P1Y3D"', '"PT1H6S"', '"P1W2D"', '"1D"'],
    ],
    [
      { type: "string", format: "ipv6" },
      [
        '"::"',
        '"::1"',
        '"fe80::"',
        '"2001:db8::8a2e:370:7334"',
        '"1:2:3:4:5:6:7:8"',
        '"1:2:3:4:5:6::8"',
      ],
      [
        '":"',
        '"1::2::3"',
        '"1:2:3:4:5:6:7"',
        '"1:2:3:4:5:6:7:8:9"',
        '"1:2:3:4:5:6:7::8"',
        '"12345::"',
      ],
    ],
    [{ type: "integer", minimum: -12, exclusiveMaximum: 105 }, ["-12", "0", "99", "104"], [
      "-13",
      "105",
      "-0",
      "1.0",
      "007",
    ]],
    [{ type: "number", minimum: 0.25, maximum: 2 }, ["0.25", "0.9", "1", "1.123456", "2", "2.0"], [
      "0.2",
      "0.249",
      "2.01",
      "0",
      "1e0",
    ]],
    [{ type: "number", exclusiveMinimum: 0 }, ["0.05", "0.001", "1", "1.05"], ["0", "0.0", "-1"]],
    [
      { type: "number", minimum: 0, exclusiveMaximum: 1 },
      ["0", "0.95", "0.99", "0.99999999999999"],
      ["1", "1.0", "1.01", "-0.5"],
    ],
    [{ type: "number", minimum: -1, maximum: 1 }, ["-0.5", "-0.05", "-0.999", "-1", "-1.0"], [
      "-1.001",
    ]],
    [{ type: "number", exclusiveMinimum: 0, exclusiveMaximum: 1000 }, ["999.9999", "0.0001"], [
      "999.999999999999999",
      "1000",
    ]],
    [{ type: "number", exclusiveMinimum: -1, exclusiveMaximum: 0 }, ["-0.5", "-0.95", "-0.01"], [
      "0",
      "-1",
      "-1.0",
      "0.1",
    ]],
    [{ type: ["integer", "null"] }, ["5", "null"], ["true", '"5"']],
    [{ enum: ['a"b', 1, { x: [1, "/"] }], type: ["string", "object"] }, [
      '"a\\"b"',
      '{"x":[1,"/"]}',
    ], ["1", '"a"']],
    [
      { anyOf: [{ type: "null" }, false, { type: "integer", minimum: 3 }], maximum: 5 },
      ["3", "5"],
      ["2", "6"],
    ],
    [{ oneOf: [{ type: "string" }, { const: 4 }] }, ['"x"', "4"], ["5"]],
    [
      {
        allOf: [
          { properties: { a: { type: "integer", minimum: 1 } }, required: ["a"] },
          { properties: { a: { type: "number", maximum: 2 }, b: { type: "null" } } },
        ],
      },
      ['{"a": 1}', '{"a": 2, "b": null}'],
      ['{"b": null}', '{"a": 0}', '{"a": 3}', '{"a": 1.5}'],
    ],
    [IDENTIFIED, ['{"a": [1], "b": 2, "c": "x"}'], [
      '{"a": ["x"], "b": 2, "c": "x"}',
      '{"a": [1], "b": "x", "c": "x"}',
      '{"a": [1], "b": 2, "c": 3}',
    ]],
    [NODE, ['{"a/b": 1}', '{"a/b": 1, "next": {"a/b": 2}}'], ['{"next": {"a/b": 2}}', "{}"]],
    [{ type: "object", properties: { x: false, y: true } }, ["{}", '{"y": [1]}'], ['{"x": 1}']],
  ];

for (const [schema, good, bad] of CASES) {
  Deno.test(`JSON schema ${JSON.stringify(schema).slice(0, 90)}`, async () => {
    const grammar = { kind: "json schema", schema } as const;
    for (const text of good) {
      assert.ok(await accepts(grammar, text), text);
      assert.ok(isValidJson(schema, text), text);
    }
    for (const text of bad) assert.ok(!(await accepts(grammar, text)), text);
  });
}

Deno.test("a circle of $ref with keywords beside it", async () => {
  const node = {
    type: "object",
    properties: { n: { type: "integer" }, next: { $ref: "#/$defs/node", required: ["n"] } },
  };
  const schema = { $defs: { node }, $ref: "#/$defs/node" };
  const grammar = { kind: "json schema", schema } as const;
  assert.ok(await accepts(grammar, '{"next": {"n": 1, "next": {"n": 2}}}'));
  assert.ok(!(await accepts(grammar, '{"next": {}}')));
});

const CIRCLES: readonly unknown[] = [
  // As Pydantic writes a reference with a description.
  { anyOf: [{ allOf: [{ $ref: "#/$defs/node" }], description: "x" }, { type: "null" }] },
  { anyOf: [{ $ref: "#/$defs/node" }, { type: "null" }], type: ["object", "null"] },
  { anyOf: [{ type: "null" }, { allOf: [{ $ref: "#/$defs/node" }, { required: ["next"] }] }] },
];

Deno.test("a circle through schemas that are merged", async () => {
  for (const next of CIRCLES) {
    const node = { type: "object", properties: { next } };
    const schema = { $defs: { node }, $ref: "#/$defs/node" };
    const text = '{"next": {"next": {"next": null}}}';
    assert.ok(await accepts({ kind: "json schema", schema }, text), JSON.stringify(next));
    assert.ok(!(await accepts({ kind: "json schema", schema }, '{"next": {"next": 1}}')));
  }
});

Deno.test("exclusive bounds with all the digits of a double: only numbers that a double tells apart", async () => {
  for (const bound of [0.30000000000000004, -123456789012345.67, 99999999999999.98, 1 / 3]) {
    for (const end of ["1", "01", "9", "99"]) {
      const text = `${bound}${end}`;
      for (const [keyword, sign] of [["exclusiveMinimum", 1], ["exclusiveMaximum", -1]] as const) {
        const schema = { type: "number", [keyword]: bound };
        if (sign * (Number(text) - bound) > 0) continue;
        assert.ok(!await accepts({ kind: "json schema", schema }, text), `${keyword} ${text}`);
      }
    }
  }
});

Deno.test("items as a list, as it was before 2020", async () => {
  const schema = { items: [{ const: 1 }], additionalItems: { const: 2 } };
  const grammar = { kind: "json schema", schema } as const;
  assert.ok(await accepts(grammar, "[1, 2, 2]"));
  assert.ok(!(await accepts(grammar, "[2]")));
});

const MISTAKES: readonly (readonly [schema: unknown, why: string])[] = [
  [3, 'at "#": it is neither an object nor true or false'],
  [
    { type: "strin" },
    'at "#": the type "strin" is none of object, array, string, number, integer, boolean, null',
  ],
  [{ properties: { a: { not: {} } } }, 'at "#/properties/a": "not" is not supported'],
  [{ type: "array", uniqueItems: true }, 'at "#": "uniqueItems" is not supported'],
  [{ type: "number", multipleOf: 2 }, 'at "#": "multipleOf" is not supported'],
  [
    { type: "string", format: "idn-email" },
    'at "#": the format "idn-email" is not supported, only date, time, date-time, duration, uuid, ipv4, ipv6, hostname, email, uri',
  ],
  [
    { type: "string", pattern: "a", minLength: 3 },
    'at "#": pattern and minLength or maxLength at once is not supported',
  ],
  [{ $ref: "#/$defs/x" }, 'at "#": "$ref" "#/$defs/x" leads nowhere in this schema'],
  [
    { oneOf: [{ type: "number" }, { type: "integer" }] },
    'at "#": "oneOf" is supported where its schemas exclude each other by type, const, enum or a required property; 0 and 1 do not ("anyOf" has no such limit)',
  ],
  [
    { oneOf: [{ const: 0 }, { const: -0 }] },
    'at "#": "oneOf" is supported where its schemas exclude each other by type, const, enum or a required property; 0 and 1 do not ("anyOf" has no such limit)',
  ],
  [
    { allOf: [{ pattern: "a" }, { pattern: "b" }] },
    'at "#": two different "pattern" that are both to hold',
  ],
  [
    { allOf: [{ prefixItems: [{ type: "string" }] }, { items: { type: "integer" } }] },
    'at "#": "items" beside a schema with "prefixItems"',
  ],
  [{ prefixItems: [{}], items: [{}] }, 'at "#": "prefixItems" and a list as "items" at once'],
  [{ type: "string", minLength: -1 }, 'at "#": "minLength" is -1, not an integer of 0 or more'],
  [{ type: "object", minProperties: 1 }, 'at "#": "minProperties" is not supported'],
];

const NO_TEXT: readonly unknown[] = [
  false,
  { type: "integer", minimum: 5, maximum: 3 },
  { properties: { a: { $ref: "#" } }, required: ["a"] },
  { type: "array", minItems: 3, maxItems: 1 },
  { type: "array", prefixItems: [{}, false], minItems: 2 },
  { allOf: [{ type: "string" }, { type: "null" }] },
  { required: ["a"], additionalProperties: false },
];

Deno.test("schemas that cannot be used: one line that says where and why", async () => {
  const all = [
    ...MISTAKES.map(([schema, why]) => [schema, `JSON schema, ${why}`] as const),
    ...NO_TEXT.map((schema) => [schema, "JSON schema: no text satisfies it"] as const),
  ];
  for (const [schema, why] of all) {
    await assert.rejects(
      checkGrammar({ kind: "json schema", schema }),
      (error) => {
        assert.ok(error instanceof UsageError);
        assert.equal(error.message, `Cannot constrain the output: ${why}`);
        return true;
      },
    );
  }
});
