import assert from "node:assert/strict";
import { UsageError } from "../../src/errors.ts";
import { type Grammar, GrammarInterrupted } from "../../src/grammar/rules/grammar.ts";
import { checkGrammar, openGrammars } from "../../src/grammar/grammars.ts";
import { accepts, GRAMMARS } from "./accepts.ts";
import { fledglingVocabulary } from "./vocabulary.ts";

const ebnf = (text: string): Grammar => ({ kind: "ebnf", text });
const regex = (pattern: string): Grammar => ({ kind: "regex", pattern });

const CASES: readonly (readonly [Grammar, good: readonly string[], bad: readonly string[]])[] = [
  [ebnf('root ::= "a" | "b" root # "[é]"'), ["a", "bba"], ["", "b", "ab"]],
  [ebnf('root ::= [äöü]+ [^a-zß"]'), ["ä1", "öü€", "ü\n"], ["a1", "äß", "äa", "\xe4"]],
  [ebnf('root ::= [\\u4e00-\\u9fff\\-\\]x-z] "\\U0001F600"{2,3}'), [
    "中😀😀",
    "-😀😀😀",
    "]😀😀",
    "y😀😀",
  ], ["中😀", "a😀😀"]],
  [ebnf('root ::= "x"{3,300}'), ["xxx", "x".repeat(300)], ["xx", "x".repeat(301)]],
  [ebnf("root ::= ([^\\n] [é]?)*"), ["", "aéb", "é"], ["\n"]],
  [regex("^\\d{2,3}|[^\\d\\s]$"), ["12", "123", "x", "é"], ["1", "1234", "", " "]],
  [regex("(?:ab?)+\\.\\u{1F600}?"), ["a.", "aba.😀"], ["b.", "a"]],
  [regex(".*"), ["", "any thing"], ["a\nb", "a\u2028b"]],
  [{ kind: "json object" }, ["{}", '{"a": [1, "x"]}'], ["[]", '{"a":1}']],
];

for (const [grammar, good, bad] of CASES) {
  Deno.test(`a grammar's texts: ${JSON.stringify(grammar).slice(0, 90)}`, async () => {
    for (const text of good) assert.ok(await accepts(grammar, text), text);
    for (const text of bad) assert.ok(!(await accepts(grammar, text)), text);
  });
}

const MISTAKES: readonly (readonly [Grammar, why: string])[] = [
  [ebnf('root ::= "abc'), 'EBNF lexer error at line 1, column 14: Expect " in string literal'],
  [
    ebnf("start ::= [a]"),
    'EBNF parser error at line 1, column 1: The root rule with name "root" is not found',
  ],
  [ebnf("root ::= [^\\U00000000-\\U0010FFFF]"), "[^\\U00000000-\\U0010FFFF] has no character"],
  [ebnf("root ::= [\\ud800-\\udfff]"), "[\\ud800-\\udfff] has no character"],
  [regex("a[\\ud800-\\udfff]b"), "regular expression: no text satisfies it"],
  [regex("a(b"), 'regular expression "a(b": Unterminated group'],
  [regex("(a)\\1"), 'regular expression "(a)\\1": "\\1" is not supported'],
  [regex("a(?=b)"), 'regular expression "a(?=b)": "(?=b)" is not supported'],
  [regex("\\bword"), 'regular expression "\\bword": "\\b" is not supported'],
  [regex("\\p{L}"), 'regular expression "\\p{L}": "\\p{L}" is not supported'],
  [regex("[]"), "regular expression: no text satisfies it"],
];

Deno.test("grammars that cannot be used, and those that run go on", async () => {
  const running = await GRAMMARS.open(regex("a{3}"), { ignoreEos: false });
  for (const [grammar, why] of MISTAKES) {
    const expected = { name: "UsageError", message: `Cannot constrain the output: ${why}` };
    await assert.rejects(checkGrammar(grammar), expected);
    await assert.rejects(GRAMMARS.open(grammar, { ignoreEos: false }), expected);
  }
  assert.deepEqual(running.forced(5).tokens.length > 0, true);
  running.close();
  assert.ok(await accepts(regex("a{3}"), "aaa"));
});

Deno.test("no token may begin the output", async () => {
  await assert.rejects(GRAMMARS.open(ebnf("root ::= root"), { ignoreEos: false }), UsageError);
});

Deno.test("a decoder that drops the first space: the text is the grammar's without it", async () => {
  const texts = ["", "</s>", " a", "a", " ", "b", " b"].map((text) =>
    new TextEncoder().encode(text)
  );
  const bytes = texts.map((each, i) => i === 1 ? new Uint8Array() : each);
  const spaced = openGrammars({
    tokens: () => ({ bytes, stripsSpace: true }),
    vocabSize: bytes.length,
    eosTokenIds: [1],
  });
  const constraint = await spaced.open(regex("ab?"), { ignoreEos: false });
  const allowed = () => [...bytes.keys()].filter((id) => (constraint.mask[0] ?? 0) >>> id & 1);
  assert.deepEqual(allowed(), [2, 4]);
  constraint.take(2);
  assert.deepEqual(allowed(), [1, 5]);
});

Deno.test("a grammar that fits alone is compiled, whatever is kept of others", async () => {
  const bytes = [...Array.from({ length: 256 }, (_, i) => Uint8Array.of(i)), new Uint8Array()];
  const tokens = () => ({ bytes, stripsSpace: false });
  const grammars = openGrammars({ tokens, vocabSize: 257, eosTokenIds: [256] });
  // Each takes about 25 MB of an instance's 256.
  const schemaOf = (n: number) => {
    const names = Array.from({ length: 1500 }, (_, i) => `p_${n}_${i}_${"x".repeat(27)}`);
    const properties = Object.fromEntries(names.map((name) => [name, { type: "string" }]));
    return { type: "object", properties, required: names.slice(0, 1) };
  };
  for (let n = 0; n < 12; n++) {
    const schema = schemaOf(n);
    (await grammars.open({ kind: "json schema", schema }, { ignoreEos: false })).close();
  }
});

Deno.test("whatever is interrupted while a grammar is opened, the next one is opened", async () => {
  // From the first check, while the module starts, to one of the compilation.
  for (const last of [1, 2, 5, 10, 20]) {
    let checks = 0;
    const check = () => {
      if (++checks === last) throw new GrammarInterrupted("it was interrupted");
    };
    const grammars = openGrammars(fledglingVocabulary(), { check });
    const open = () => grammars.open(regex("[ab]{9}"), { ignoreEos: false });
    await assert.rejects(open, /it was interrupted/);
    (await open()).close();
  }
});
