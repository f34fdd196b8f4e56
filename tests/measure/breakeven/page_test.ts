import { deepEqual, equal, match, ok } from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import { Event, parseHTML } from "npm:linkedom@0.18.12";
import { type BreakEvenReport, givenReport } from "../../../src/measure/breakeven/measured.ts";
import { breakEvenPage } from "../../../src/measure/breakeven/page.ts";
import { wording } from "../../../src/measure/breakeven/wording.ts";
import { breakEven } from "../../../src/speculate/break_even.ts";
import { sampleReport } from "./sample.ts";

const FACTS = { command: "eyrie breakeven", date: new Date(0), version: "0" };
const STEPS = Array.from({ length: 16 }, (_, at) => at + 1);
const GIVEN = givenReport(0.6, { draft: 0.05, verify: 1 }, STEPS);
const { report: MEASURED } = await sampleReport({ model: "fake-1B <b>" });

interface Node {
  readonly textContent: string;
  readonly innerHTML: string;
  value: string;
  getAttribute(name: string): string | null;
  querySelectorAll(selector: string): Iterable<Node>;
  dispatchEvent(event: unknown): void;
}

/** A page in a DOM, whose script runs as in a browser. */
function opened(report: BreakEvenReport) {
  const text = breakEvenPage(report, FACTS);
  const { document } = parseHTML(text) as unknown as {
    document: Node & { getElementById(id: string): Node };
  };
  const all = (selector: string, of: Node = document) => [...of.querySelectorAll(selector)];
  const waiting: (() => void)[] = [];
  const initial = document.getElementById("rows").innerHTML;
  // The script gets only a browser's names, so that a missing name is not found in this module.
  new Function("document", "setTimeout", all("script")[0]?.textContent ?? "")(
    document,
    (later: () => void) => waiting.push(later),
  );
  const by = (id: string) => document.getElementById(id);
  const tell = (kind: string) => by("sliders").dispatchEvent(new Event(kind, { bubbles: true }));
  return {
    text,
    all,
    by,
    initial,
    /** Moves sliders as a person does. */
    slide(values: Readonly<Record<string, number>>) {
      for (const [id, value] of Object.entries(values)) by(id).value = String(value);
      tell("input");
    },
    reset() {
      tell("reset");
      for (const later of waiting) later();
    },
    rows: () => all("#rows tr").map((row) => all("th, td", row).map((cell) => cell.textContent)),
  };
}

const sliders = fc.record({
  alpha: fc.integer({ min: 0, max: 1000 }).map((part) => part / 1000),
  steps: fc.integer({ min: 1, max: 16 }),
  draft: fc.integer({ min: 0, max: 1000 }).map((part) => part / 1000),
  verify: fc.integer({ min: 500, max: 4000 }).map((part) => part / 1000),
});

Deno.test("the sliders' script says what the command says, at any values", () => {
  const page = opened(GIVEN);
  const { rowTexts, verdict } = wording(breakEven());
  fc.assert(fc.property(sliders, (values) => {
    page.slide(values);
    const { alpha, steps, draft, verify } = values;
    const { rows, costs } = givenReport(alpha, { draft, verify }, STEPS);
    deepEqual(page.rows(), rows.map(rowTexts));
    const said = page.all("#verdict dt, #verdict dd").map((one) => one.textContent);
    deepEqual(said, verdict({ alpha, rows, costs }).flat());
    ok(page.by("result").textContent.includes(`= ${rows[steps - 1]?.speedup.toFixed(2)}x`));
    equal(page.by("draft-value").textContent, draft.toFixed(3));
  }));
  page.slide({ alpha: 0.6, steps: 4, draft: 0, verify: 1 });
  match(page.by("result").textContent, / 2\.3056 \/ 1\.000 = 2\.31x /);
  match(page.by("verdict").textContent, /pays from 1 on, without end.*2\.5000 tokens a round/);
});

Deno.test("what the page shows before its script runs is what the script draws", () => {
  for (const report of [GIVEN, MEASURED]) {
    const page = opened(report);
    equal(page.by("rows").innerHTML, page.initial);
  }
  const page = opened(GIVEN);
  deepEqual(page.rows(), GIVEN.rows.map(wording(breakEven()).rowTexts));
  match(page.by("result").textContent, /= 1\.92x plain/);
});

Deno.test("a reset draws the first values anew", () => {
  const page = opened(GIVEN);
  page.slide({ alpha: 0.1 });
  ok(page.by("rows").innerHTML !== page.initial);
  // linkedom does not reset controls.
  page.by("alpha").value = "0.6";
  page.reset();
  equal(page.by("rows").innerHTML, page.initial);
});

Deno.test("one file: it asks for nothing", () => {
  for (const report of [GIVEN, MEASURED]) {
    const { text } = opened(report);
    equal(/https?:|\bsrc=|\bhref=|@import|url\(|import\(|fetch\(/.exec(text), null);
  }
});

Deno.test("sliders have labels and outputs, charts names, the tables heads and regions", () => {
  const page = opened(MEASURED);
  const ids = page.all('input[type="range"]').map((input) => input.getAttribute("id"));
  deepEqual(ids, ["alpha", "steps", "draft", "verify"]);
  deepEqual(page.all("label").map((label) => label.getAttribute("for")), ids);
  deepEqual(page.all("output").map((output) => output.getAttribute("for")), ids);
  equal(page.by("result").getAttribute("role"), "status");
  for (const svg of page.all("svg")) {
    equal(svg.getAttribute("role"), "img");
    match(svg.getAttribute("aria-label") ?? "", /^Speed-up .* \d+\.\d\d$/);
  }
  const regions = page.all(".table");
  deepEqual(regions.map((region) => region.getAttribute("aria-labelledby")), ["equation", "costs"]);
  for (const region of regions) equal(region.getAttribute("tabindex"), "0");
  for (const cell of page.all("thead th")) equal(cell.getAttribute("scope"), "col");
  for (const cell of page.all("tbody th")) equal(cell.getAttribute("scope"), "row");
});

Deno.test("a measured page has its points, cost table and facts, as text", () => {
  const page = opened(MEASURED);
  equal(page.all("#by-steps .on-screen .measured").length, 3);
  equal(opened(GIVEN).all("svg .measured").length, 0);
  ok(page.text.includes("fake-1B &lt;b&gt;"));
  match(page.by("costs").textContent, /Cost table/);
  const best = breakEven().best(MEASURED.rows);
  match(
    page.text,
    new RegExp(
      `of each K \\(cost table\\): best ${best?.steps} steps?, ${best?.speedup.toFixed(2)} `,
    ),
  );
  const { draft, verify } = MEASURED.costs;
  equal(page.by("draft").value, String(Number(draft.toFixed(3))));
  equal(page.by("verify").value, String(Number(verify.toFixed(3))));
});

Deno.test("the charts hold all they draw, at any values, and intervals that reach far out", () => {
  const { measured } = MEASURED;
  const page = opened({
    ...MEASURED,
    measured: measured && {
      ...measured,
      steps: measured.steps.map((one) => ({
        ...one,
        speedup: { ...one.speedup, low: -3, high: 40 },
      })),
    },
  });
  const number = (node: Node, name: string) => Number(node.getAttribute(name));
  fc.assert(
    fc.property(sliders, (values) => {
      page.slide(values);
      for (const svg of page.all("svg")) {
        const [, , width = NaN, height = NaN] = (svg.getAttribute("viewBox") ?? "").split(" ").map(
          Number,
        );
        const points = [
          ...page.all("circle", svg).map((dot) => [number(dot, "cx"), number(dot, "cy")]),
          ...page.all("line", svg).flatMap((line) => [
            [number(line, "x1"), number(line, "y1")],
            [number(line, "x2"), number(line, "y2")],
          ]),
          ...(page.all(".curve", svg)[0]?.getAttribute("d") ?? "").split(/[ML]/).slice(1)
            .map((pair) => pair.split(" ").map(Number)),
        ];
        ok(points.length > 10);
        for (const [x = NaN, y = NaN] of points) {
          ok(
            x >= 0 && x <= width && y >= 0 && y <= height,
            `${x} ${y} at ${JSON.stringify(values)}`,
          );
        }
      }
    }),
    { numRuns: 30 },
  );
});
