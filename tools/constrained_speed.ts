/**
 * `deno run -A tools/constrained_speed.ts [--model DIR] [--draft DIR|none] [--steps N] [--tokens N]`:
 * the ratio of tokens/s with a JSON schema to tokens/s without one, measured in turns in one process.
 */
import { parseArgs } from "node:util";
import { defined } from "../src/defined.ts";
import { statically } from "../src/engine/drafting.ts";
import { openEngine } from "../src/engine/open.ts";
import { resultOf } from "../src/engine/schedule/events.ts";
import type { Grammar } from "../src/grammar/rules/grammar.ts";
import { GREEDY } from "../src/speculate/sampling.ts";

const { values: { model, draft, steps, tokens } } = parseArgs({
  options: {
    model: { type: "string" },
    draft: { type: "string" },
    steps: { type: "string", default: "3" },
    tokens: { type: "string", default: "128" },
  },
});
const BLOCKS = 5;
const PERSON = {
  type: "object",
  properties: {
    name: { type: "string" },
    kind: { enum: ["fox", "swan", "rabbit", "turtle"] },
    years: { type: "integer", minimum: 0, maximum: 120 },
    friends: { type: "array", items: { type: "string" }, maxItems: 3 },
  },
  required: ["name", "kind", "years", "friends"],
};
const grammar: Grammar = {
  kind: "json schema",
  schema: { type: "array", items: PERSON, minItems: 50 },
};

using engine = await openEngine({
  model: defined({ model, draft }),
  limits: { constrained: true },
  hooks: { plan: statically(Number(steps), [0, Number(steps)]) },
});
const content = "List fifty animals of a story as JSON with name, kind, years, and friends.";
const promptIds = engine.text.encodePrompt(
  engine.info.hasChatTemplate ? { messages: [{ role: "user", content }] } : { raw: content },
);

async function speed(of: { readonly grammar?: Grammar; readonly numSteps?: number }) {
  const rest = { sampling: GREEDY, maxTokens: Number(tokens), stop: [], ignoreEos: true };
  const { timing, speculative } = await resultOf(engine.submit({ promptIds, ...rest, ...of }));
  return { speed: timing.tokensPerSecond, length: speculative.mean_accept_length };
}

const CASES = {
  "free, no drafts": { numSteps: 0 },
  "schema, no drafts": { numSteps: 0, grammar },
  "free": {},
  "schema": { grammar },
};
const found = new Map<string, { speed: number; length: number }[]>();
for (let block = -1; block < BLOCKS; block++) {
  for (const [name, of] of Object.entries(CASES)) {
    const result = await speed(of);
    if (block >= 0) found.getOrInsertComputed(name, () => []).push(result); // the first block compiles
  }
}

const median = (values: readonly number[]) =>
  values.toSorted((a, b) => a - b)[values.length >> 1] ?? NaN;
const say = (line: string) => Deno.stdout.writeSync(new TextEncoder().encode(`${line}\n`));
for (const [name, results] of found) {
  const speeds = results.map(({ speed }) => speed);
  const range = [Math.min(...speeds), Math.max(...speeds)].map((each) => each.toFixed(1));
  say(
    `${name.padEnd(18)} ${median(speeds).toFixed(1).padStart(7)} tokens/s [${range}], ` +
      `${median(results.map(({ length }) => length)).toFixed(2)} tokens a round`,
  );
}
for (const [over, under] of [["schema, no drafts", "free, no drafts"], ["schema", "free"]]) {
  const pairs = found.get(over as string)?.map(({ speed }, i) =>
    speed / (found.get(under as string)?.[i]?.speed ?? NaN)
  );
  say(`${over} over ${under}: ${median(pairs ?? []).toFixed(3)}`);
}
