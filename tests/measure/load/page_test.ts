import { deepEqual, equal, ok } from "node:assert/strict";
import { parseHTML } from "npm:linkedom@0.18.12";
import { parseSchedule } from "../../../src/arrivals/schedule.ts";
import { policyStyles } from "../../../src/measure/load/series_style.ts";
import { loadHtml } from "../../../src/measure/load/page.ts";
import { closedCase, rateCase, scheduleCase } from "../../../src/measure/load/plan.ts";
import type { LoadRow } from "../../../src/measure/load/row.ts";
import { summaries } from "../../../src/measure/load/summary.ts";
import { loadVerdicts } from "../../../src/measure/load/verdict.ts";
import { planOf, sampleLoadRows } from "./fake.ts";

const POLICIES = [
  ...["static:num_steps=0", "static:num_steps=1", "static:num_steps=3"],
  ...["ema:candidate_steps=1/3", "ema:candidate_steps=1/3/7"],
];
const RATES = [20, 200].map((rate) => rateCase(rate, 1, { requests: 30 }));
const SCHEDULE = scheduleCase(parseSchedule("0:20,1:300,1.2:20"), {
  text: "0:20,1:300,1.2:20",
  burstiness: 1,
  extent: { durationMs: 2000 },
});
const ROWS = await sampleLoadRows(planOf({ cases: RATES }, POLICIES));
const CHANGING = await sampleLoadRows(planOf({ cases: [SCHEDULE] }, POLICIES));

interface Node {
  readonly textContent: string;
  getAttribute(name: string): string | null;
  querySelectorAll(selector: string): Iterable<Node>;
}

const textOf = (rows: readonly LoadRow[]) =>
  loadHtml(rows, { command: "eyrie bench load", date: new Date(0), version: "0" });
const pageOf = (rows: readonly LoadRow[]) =>
  (parseHTML(textOf(rows)) as unknown as { document: Node }).document;
const all = (node: Node, selector: string) => [...node.querySelectorAll(selector)];
const charts = (page: Node, name: string) =>
  all(page, "figure svg").filter((svg) => svg.getAttribute("aria-label") === name);

Deno.test("arrivals, throughput, queue, batch and steps are drawn over time for each load", () => {
  const page = pageOf(ROWS);
  for (const load of ["20 req/s", "200 req/s"]) {
    for (const caption of ["Arrivals", "Throughput", "Queue", "Batch", "Draft steps"]) {
      const found = charts(page, `${caption}, ${load}`);
      equal(found.length, 2, `${caption}: one for a screen, one for a phone`);
      const lines = all(found[0] as Node, 'g[aria-label="line"]');
      equal(lines.length, caption === "Arrivals" ? 1 : POLICIES.length, caption);
    }
    const chosen = POLICIES.filter((label) => label.startsWith("ema"));
    for (const label of chosen) {
      const [svg] = charts(page, `Draft steps by batch size, ${label}, ${load}`);
      ok(svg && all(svg, 'g[aria-label="cell"] rect').length > 1);
    }
  }
  for (const caption of ["Throughput", "End to end, p50", "Goodput"]) {
    const [svg] = charts(page, `${caption} by load`);
    equal(all(svg as Node, 'g[aria-label="dot"] path').length, 2 * POLICIES.length, caption);
  }
  ok(charts(pageOf(CHANGING), "Goodput by load").length === 0, "one load");
});

Deno.test("a closed loop has arrivals of each policy's own, and the page says whose it draws", async () => {
  const closed = await sampleLoadRows(planOf({ cases: [closedCase(2, 8)] }, POLICIES));
  const said = (rows: readonly LoadRow[]) =>
    all(pageOf(rows), "p").map(({ textContent }) => textContent).join(" ");
  ok(said(closed).includes(`the arrivals are those of ${POLICIES[0]}`));
  ok(!said(closed).includes("the same times"));
  ok(said(ROWS).includes("Requests arrive at the same times for all policies"));
});

Deno.test("each load's verdict is on the page, as below the table on standard output", () => {
  const page = pageOf(ROWS);
  const texts = (selector: string) => all(page, selector).map(({ textContent }) => textContent);
  const [loads, words] = [texts("dl.won dt"), texts("dl.won dd")];
  const verdicts = loadVerdicts(summaries(ROWS));
  equal(verdicts.length, RATES.length);
  deepEqual(loads.map((load, at) => `${load}: ${words[at]}`), verdicts);
  const alone = ROWS.filter(({ label }) => label === ROWS[0]?.label);
  equal(all(pageOf(alone), "dl.won").length, 0, "nothing to compare with");
});

Deno.test("the queue that a burst makes can be seen", () => {
  const [row] = CHANGING;
  const { queue = [], width_ms = 1, arrival_rate = [] } = row?.timeline ?? {};
  const at = (list: readonly number[]) => list.indexOf(Math.max(...list)) * width_ms;
  ok(at(arrival_rate) >= 1000 - width_ms && at(arrival_rate) <= 1200, `${at(arrival_rate)}`);
  const waiting = queue.map((each) => each ?? NaN);
  ok(at(waiting) >= 1000 && Math.max(...waiting) > 5);
});

Deno.test("one file: no script, nothing to fetch, both themes, every chart has a name", () => {
  const text = textOf(ROWS);
  ok(!/<script|<link|<img|src=|url\(|@import/i.test(text));
  const addresses = text.match(/https?:\/\/[^"'\s<)]+/g) ?? [];
  deepEqual(addresses.filter((each) => !each.startsWith("http://www.w3.org/")), []);
  ok(text.includes("prefers-color-scheme: dark") && text.includes("width=device-width"));
  ok(!/NaN|undefined/.test(text));
  for (const svg of all(pageOf(ROWS), "figure svg")) {
    equal(svg.getAttribute("role"), "img");
    ok(svg.getAttribute("aria-label"));
  }
});

/** The text of an element without the style of the mark before it. */
const nameOf = ({ textContent }: Node) => textContent.split("}").at(-1);

Deno.test("the table has a row a policy and load, A/A too; charts leave that out", () => {
  const page = pageOf(ROWS);
  equal(all(page, "tbody tr").length, 2 * (POLICIES.length + 1));
  deepEqual(
    all(page, ".legend").map((legend) => all(legend, "span").map(nameOf)),
    [POLICIES, POLICIES, POLICIES],
  );
});

Deno.test("no two policies look alike without colour", () => {
  const [one] = summaries(ROWS);
  ok(one);
  const many = Array.from(
    { length: 14 },
    (_, n) => ({ ...one, label: `${n}`, fixed: n < 3, meanSteps: n }),
  );
  const styles = [...policyStyles(many).values()];
  equal(new Set(styles.map(({ symbol, dash }) => `${symbol} ${dash}`)).size, 14);
});
