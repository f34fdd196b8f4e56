// Random grammars; tools/grammars.ts runs the same over 1,000 schemas and 300 others.
import assert from "node:assert/strict";
import { accepts, GRAMMARS, TOKENS } from "./accepts.ts";
import { type CaseKind, type CaseResult, checkCase, isValidJson } from "./cases.ts";
import { drawFrom, randomDecimal, randomNumber } from "./random.ts";

const COUNTS: Readonly<Record<CaseKind, number>> = { schema: 15, regex: 15, ebnf: 15 };

for (const [kind, count] of Object.entries(COUNTS)) {
  Deno.test(`random ${kind}: valid, and the same with forced, chance and tree drafts`, async () => {
    const results: CaseResult[] = [];
    for (let seed = 0; seed < count; seed++) {
      results.push(
        await checkCase({ grammars: GRAMMARS, tokens: TOKENS }, kind as CaseKind, 5000 + seed),
      );
    }
    const ended = results.filter(({ plain }) => plain.finished === "stop");
    assert.ok(ended.length > count * 0.8, `${ended.length} ended`);
    assert.ok(results.some(({ forced }) => forced.accepted > 0));
  });
}

Deno.test("random numbers are accepted where they are within the bounds, and only there", async () => {
  for (let seed = 0; seed < 40; seed++) {
    const draw = drawFrom(seed);
    const schema = randomNumber(draw, "number");
    const bounds = Object.values(schema).filter((value) => typeof value === "number");
    for (let i = 0; i < 20; i++) {
      const text = randomDecimal(draw, [0, ...bounds][draw(bounds.length + 1)] ?? 0);
      // Texts of -0 are optional: the grammar has them only between other negative numbers.
      if (Number(text) === 0 && text.startsWith("-")) continue;
      const accepted = await accepts({ kind: "json schema", schema }, text);
      assert.equal(accepted, isValidJson(schema, text), `${text} of ${JSON.stringify(schema)}`);
    }
  }
});
