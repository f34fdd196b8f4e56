import { deepEqual, equal, match, ok } from "node:assert/strict";
import { emitConfig } from "../../src/measure/emit_config.ts";
import { html } from "../../src/measure/page/page.ts";
import type { BenchRow } from "../../src/measure/row.ts";
import { verdictOf } from "../../src/measure/verdict.ts";
import { summary } from "../../src/measure/summary.ts";
import { caseVerdicts, verdictLines } from "../../src/measure/verdict_text.ts";
import { adaptive, invented, noise } from "./invented.ts";

const PLAIN = invented(0, [1, 1, 1]);
const QUIET = noise([1.01, 0.99, 1]);

const CASES: readonly { name: string; rows: readonly BenchRow[]; says: RegExp; steps: number }[] = [
  {
    name: "an interval above 1 and above the noise",
    rows: [PLAIN, QUIET, invented(1, [1.2, 1.21, 1.2]), invented(3, [1.5, 1.52, 1.48])],
    says: /^batch 1: fastest is 3 steps, 150 tokens\/s, 1\.50x plain \[1\.45, 1\.55\]$/,
    steps: 3,
  },
  {
    name: "an interval that holds 1",
    rows: [PLAIN, QUIET, invented(3, [1.4, 0.9, 1.3])],
    says:
      /^batch 1: nothing is shown to be faster than plain: the best, 3 steps, is 1\.18x plain \[0\.\d\d, .*\], and its interval overlaps the noise \[0\.98, 1\.03\] \(plain against itself\); --repeat 6 narrows both$/,
    steps: 0,
  },
  {
    name: "an interval above 1, but not above the noise",
    rows: [PLAIN, noise([1.3, 0.8, 1.2]), invented(3, [1.5, 1.52, 1.48])],
    says:
      /^batch 1: nothing is shown .* 3 steps, is 1\.50x plain \[1\.45, 1\.55\], and its interval overlaps the noise \[0\.\d\d, 2/,
    steps: 0,
  },
  {
    name: "noise is never narrower than 1: an A/A row that was always faster",
    rows: [PLAIN, noise([1.1, 1.1, 1.1]), invented(3, [1.05, 1.05, 1.05])],
    says:
      /^batch 1: nothing is shown .* overlaps the noise \[1\.00, 1\.10\] \(plain against itself\);/,
    steps: 0,
  },
  {
    name: "everything slower",
    rows: [PLAIN, QUIET, invented(1, [0.9, 0.9, 0.91]), invented(3, [0.5, 0.5, 0.5])],
    says:
      /^batch 1: fastest is plain: whatever drafts is slower; the next is 1 steps, 0\.90x plain \[/,
    steps: 0,
  },
  {
    name: "slower, but for one that may not be",
    rows: [PLAIN, QUIET, invented(1, [0.95, 0.95, 0.951]), invented(3, [0.5, 1.3, 0.9])],
    says: /^batch 1: nothing is shown to be faster than plain: the best, 3 steps, /,
    steps: 0,
  },
  {
    name: "a larger mean that is not shown to differ from plain does not win",
    rows: [PLAIN, QUIET, invented(3, [1.5, 1.52, 1.48]), invented(7, [3, 0.9, 1.8])],
    says:
      /^batch 1: fastest is 3 steps, .*\]; 7 steps, 1\.69x plain \[0\..*\], has a larger mean, but its interval overlaps the noise \[0\.98, 1\.03\] \(plain against itself\)$/,
    steps: 3,
  },
  {
    // log-ratio of 7 over 3 steps: about +0.02, -0.02, +0.03: mean 0.01, standard error 0.015
    name: "within one standard error fewer steps win",
    rows: [PLAIN, QUIET, invented(3, [1.5, 1.5, 1.5]), invented(7, [1.53, 1.47, 1.545])],
    says:
      /^batch 1: named is 3 steps, .*1\.50x plain; 7 steps has the largest mean, 1\.51x, but the two are not shown to differ \(their difference, block by block, is within a standard error\), and 3 steps does less work a round$/,
    steps: 3,
  },
  {
    name: "more steps that are clearly faster win",
    rows: [PLAIN, QUIET, invented(3, [1.5, 1.5, 1.5]), invented(7, [1.53, 1.53, 1.545])],
    says: /^batch 1: fastest is 7 steps, /,
    steps: 7,
  },
  {
    name: "a policy that beats all fixed steps is named; the config has the best fixed ones",
    rows: [PLAIN, QUIET, invented(3, [1.5, 1.5, 1.5]), adaptive([1.7, 1.7, 1.71])],
    says: /^batch 1: fastest is policy ema, 170 tokens\/s, 1\.70x plain/,
    steps: 3,
  },
  {
    name: "a policy within one standard error of fixed steps is not",
    rows: [PLAIN, QUIET, invented(3, [1.5, 1.5, 1.5]), adaptive([1.53, 1.47, 1.545])],
    says:
      /^batch 1: named is 3 steps, .*; policy ema has the largest mean, 1\.51x, but .*, and 3 steps needs no adaptation$/,
    steps: 3,
  },
  {
    name: "a policy that some fixed steps are above of is not named in their place",
    rows: [
      ...[PLAIN, QUIET, invented(3, [1.5, 1.5, 1.5]), invented(7, [1.5, 1.5, 1.8])],
      adaptive([1.55, 1.55, 1.56]),
    ],
    says:
      /^batch 1: named is 3 steps, .*; 7 steps has the largest mean, 1\.59x, but .*, and 3 steps does less work a round$/,
    steps: 3,
  },
  {
    name: "two blocks",
    rows: [invented(0, [1, 1]), noise([1, 1.01]), invented(3, [1.5, 2.9])],
    says: /^batch 1: no verdict: 2 blocks are too few for an interval; --repeat 5$/,
    steps: 0,
  },
  {
    name: "one block",
    rows: [invented(0, [1]), noise([1]), invented(3, [1.5])],
    says: /^batch 1: no verdict: 1 block is too few for an interval; --repeat 5$/,
    steps: 0,
  },
  {
    name: "nothing but plain decoding",
    rows: [PLAIN, QUIET],
    says: /^batch 1: only plain decoding was measured$/,
    steps: 0,
  },
];

const FACTS = { command: "eyrie bench", date: new Date(0), version: "0" };

for (const { name, rows, says, steps } of CASES) {
  Deno.test(`verdict: ${name}; terminal, page and emitted config agree`, () => {
    const [line = "", ...more] = verdictLines(rows);
    match(line, says);
    deepEqual(more, []);
    ok(summary(rows, { columns: 500 }).includes(`\n${line}\n`));
    const page = html(rows, FACTS);
    ok(page.includes(`<dd>${line.replace("batch 1: ", "")}</dd>`), "the page's words");
    const best = [.../<tr class="best">.*?<th scope="row">(.*?)<\/th>/s.exec(page) ?? []][1];
    equal(best, /(?:fastest|named) is ([^,;:]*)/.exec(line)?.[1], "the row that stands out");
    deepEqual(emitConfig(rows)["1"]?.candidate_steps, [steps]);
  });
}

Deno.test("a verdict for each case, in the order of the rows", () => {
  const rows = [8, 1].flatMap((batch) => [
    ...[invented(0, [1, 1, 1], { batch }), noise([1, 1, 1], { batch })],
    invented(3, batch === 1 ? [1.5, 1.52, 1.48] : [0.8, 0.81, 0.79], { batch }),
  ]);
  const both = [...rows, ...rows.map((row) => ({ ...row, depth: 64 }))];
  deepEqual(caseVerdicts(both).map(({ place, fastest }) => [place, fastest?.setting]), [
    ["batch 8, depth 0", "plain"],
    ["batch 1, depth 0", "3 steps"],
    ["batch 8, depth 64", "plain"],
    ["batch 1, depth 64", "3 steps"],
  ]);
});

Deno.test("over several cases blocks are averaged; a setting must be in all", () => {
  const rows = [
    ...[PLAIN, QUIET, invented(3, [2, 2, 2]), invented(7, [4, 4, 4])],
    ...[PLAIN, QUIET, invented(3, [1.2, 1.3, 1.1])].map((row) => ({ ...row, depth: 64 })),
  ];
  const verdict = verdictOf(rows);
  ok(verdict.kind === "drafting");
  equal(verdict.fastest.setting, "3 steps");
  const logs = [1.2, 1.3, 1.1].map((other) => (Math.log(2) + Math.log(other)) / 2);
  verdict.fastest.logs.forEach((log, at) => ok(Math.abs(log - logs[at]!) < 1e-12));
});
