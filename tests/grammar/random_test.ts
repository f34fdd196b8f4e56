// Random grammars; tools/grammars.ts runs the same over 1,000 schemas and 300 others.
import assert from "node:assert/strict";
import { GRAMMARS, TOKENS } from "./accepts.ts";
import { type CaseKind, type CaseResult, checkCase } from "./cases.ts";

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
