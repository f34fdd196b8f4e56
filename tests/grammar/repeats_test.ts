// Counted repeats of characters must give the masks of a grammar that has a place for each character.
import assert from "node:assert/strict";
import { checkGrammar, openGrammars } from "../../src/grammar/grammars.ts";
import { tokensOf } from "../../src/grammar/matcher.ts";
import type { Grammar } from "../../src/grammar/rules/grammar.ts";
import { regexExpression } from "../../src/grammar/rules/regex.ts";
import type { Rules } from "../../src/grammar/rules/rules.ts";
import { hash32 } from "../../src/speculate/noise.ts";
import { drawFrom } from "./random.ts";
import { recognizes } from "./recognize.ts";

const PIECES = [
  "a",
  "b",
  "c",
  "aa",
  "bc",
  "é",
  "ü",
  "中",
  "😀",
  ".",
  "-",
  "1",
  '"',
  "\\",
  "\\n",
  "x",
];

/** All bytes, and tokens of several characters, some of them cut within a character. */
const BYTES: readonly Uint8Array[] = (() => {
  const texts = new Set<string>();
  for (let i = 0; texts.size < 700; i++) {
    const pieces = Array.from(
      { length: 2 + i % 4 },
      (_, k) => PIECES[hash32(i, k, 3) % PIECES.length],
    );
    texts.add(pieces.join(""));
  }
  const whole = [...texts].map((text) => new TextEncoder().encode(text));
  const cut = whole.slice(0, 150).map((text, i) => i % 2 ? text.subarray(1) : text.slice(0, -1));
  return [
    ...Array.from({ length: 256 }, (_, byte) => Uint8Array.of(byte)),
    ...[...whole, ...cut].filter(({ length }) => length > 1),
    new Uint8Array(),
  ];
})();
const EOS = BYTES.length - 1;
const VOCABULARY = {
  tokens: () => ({ bytes: BYTES, stripsSpace: false }),
  vocabSize: BYTES.length,
  eosTokenIds: [EOS],
};
const COUNTED = openGrammars(VOCABULARY, { from: { max: 1, wide: 0, tokens: 0 } });
const WRITTEN_OUT = openGrammars(VOCABULARY, { from: { max: Infinity, wide: 0, tokens: 0 } });

/** Whether a written-out grammar accepts the token byte by byte, because xgrammar's masks sometimes lack a token. */
async function takes(grammar: Grammar, walked: readonly number[], token: number): Promise<boolean> {
  const constraint = await WRITTEN_OUT.open(grammar, { ignoreEos: false });
  try {
    for (const byte of [...walked, token].flatMap((each) => [...BYTES[each] as Uint8Array])) {
      if (!tokensOf(constraint.mask, Infinity)?.includes(byte)) return false;
      constraint.take(byte);
    }
    return token !== EOS || (tokensOf(constraint.mask, Infinity)?.includes(EOS) ?? false);
  } finally {
    constraint.close();
  }
}

/** Walks both grammars along the same tokens. Returns how many masks were compared. */
async function compare(grammar: Grammar, seed: number): Promise<number> {
  const ours = await COUNTED.open(grammar, { ignoreEos: false });
  const theirs = await WRITTEN_OUT.open(grammar, { ignoreEos: false });
  const walked: number[] = [];
  let at = 0;
  for (; at < 20; at++) {
    const mine = new Set(tokensOf(ours.mask, Infinity));
    const other = new Set(tokensOf(theirs.mask, Infinity));
    for (const token of mine.symmetricDifference(other)) {
      const shown = walked.map((each) => new TextDecoder().decode(BYTES[each]));
      const text = JSON.stringify([JSON.stringify(grammar), shown, token]);
      assert.equal(mine.has(token), await takes(grammar, walked, token), text);
    }
    const choices = [...mine.intersection(other)].filter((token) => token !== EOS);
    const token = choices[hash32(seed, at, 9) % choices.length];
    if (token === undefined) break;
    walked.push(token);
    ours.take(token);
    theirs.take(token);
  }
  ours.close();
  theirs.close();
  return at;
}

const regex = (pattern: string): Grammar => ({ kind: "regex", pattern });
const pattern = (pattern: string): Grammar => ({
  kind: "json schema",
  schema: { type: "string", pattern },
});

const GRAMMARS: readonly Grammar[] = [
  ...[
    "[ab]{0,5}",
    "[ab]{3,7}",
    "[a-c]{5}",
    "[a-c]{2,}\\.",
    "x[a-é]{0,3}é",
    "[é-ü]{0,3}中",
    "é{0,3}ê?[\\u{400}-\\u{500}]?",
    "[^x]{2,9}",
    "[^x]{0,4}x.{0,3}",
    "(\\w{1,4}\\.){1,3}\\w{2,6}",
    "[a-c]{0,4}[b-d]{0,4}",
    "([ab]{1,3}|[a-c]{5,6}|aaaaaaa)",
    "([ab]{0,3}-)*c",
    "([ab]{0,3})*c",
    "(a{0,3}|b){2,4}",
    "[\\u{4e00}-\\u{4e2d}😀]{1,3}",
    "((?:a|é|[b-c]){2,4}-?){0,2}",
  ].map(regex),
  ...["[a-c]{2,5}", '["\\\\a\\n]{0,4}', "[^a]{1,3}", '(a{0,3}"){0,3}', "\\n{0,3}a?"].map(pattern),
  {
    kind: "json schema",
    schema: {
      anyOf: [
        { type: "string", maxLength: 2 },
        { type: "string", pattern: "[ac]{1,5}" },
        { type: "string", pattern: "[\\s\\S]{4,6}" },
      ],
    },
  },
];

for (const grammar of GRAMMARS) {
  Deno.test(`counted repeats: ${JSON.stringify(grammar)}`, async () => {
    let compared = 0;
    for (let seed = 0; seed < 6; seed++) compared += await compare(grammar, seed);
    assert.ok(compared >= 6);
  });
}

Deno.test("counted repeats: random expressions", async () => {
  for (let seed = 0; seed < 40; seed++) {
    const draw = drawFrom(700 + seed);
    const pick = (of: readonly string[]) => of[draw(of.length)] as string;
    const part = (): string => {
      const [min, more] = [draw(4), draw(4)];
      const count = pick([`{${min},${min + more}}`, `{${min},}`, "*", "?", ""]);
      return pick(["a", "[a-c]", "[^a]", ".", "[é-中]", "\\w", "😀"]) + count;
    };
    const some = () => Array.from({ length: 1 + draw(3) }, part).join("");
    await compare(regex(`${some()}(${some()}|${some()})${pick(["", "?", "{1,3}", "*"])}`), seed);
  }
});

Deno.test("counted repeats: a token is allowed where some text of the expression begins so", async () => {
  const letters = ["a", "b", "é"];
  for (const source of ["[ab]{2,3}é{1,2}", "([ab]{1,2}é){1,2}", "[aé]{0,2}b[ab]{0,2}"]) {
    const rules: Rules = new Map([["root", regexExpression(source)]]);
    const texts = [""];
    for (const text of texts) {
      if (text.length < 6) texts.push(...letters.map((each) => text + each));
    }
    const known = texts.filter((text) => recognizes(rules, text)).map((text) =>
      new TextEncoder().encode(text)
    );
    assert.ok(known.length > 4);
    const begins = (text: readonly number[]) =>
      known.some((each) => text.every((byte, i) => each[i] === byte));
    for (let seed = 0; seed < 8; seed++) {
      const constraint = await COUNTED.open(regex(source), { ignoreEos: false });
      const output: number[] = [];
      for (let at = 0;; at++) {
        const mask = tokensOf(constraint.mask, Infinity) ?? [];
        const expected = [...BYTES.keys()].filter((token) =>
          token === EOS
            ? known.some((each) => String(each) === String(output))
            : begins([...output, ...BYTES[token] as Uint8Array])
        );
        assert.deepEqual(mask, expected, `${source} after ${output}`);
        const choices = mask.filter((token) => token !== EOS);
        const token = choices[hash32(seed, at, 1) % choices.length];
        if (token === undefined) break;
        output.push(...BYTES[token] as Uint8Array);
        constraint.take(token);
      }
      constraint.close();
    }
  }
});

Deno.test("counted repeats: bounds beyond the table limits are not refused, hostile nests are", async () => {
  for (const source of ["[^x]{0,5000}", "\\w{10,20000}", "(\\w{1,640}\\.){1,3}"]) {
    await checkGrammar(regex(source));
  }
  for (
    const source of ["(([^x]{1000}){1000}){1000}", "([^x]{0,1000}){0,1000}", "(\\w{1,600}){1,16}"]
  ) {
    await assert.rejects(checkGrammar(regex(source)), {
      name: "UsageError",
      message: /it comes to/,
    });
  }
});
