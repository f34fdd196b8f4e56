import { deepEqual, equal, match, ok } from "node:assert/strict";
import { parseHTML } from "npm:linkedom@0.18.12";
import { html } from "../../src/measure/page/page.ts";
import { settingStyles } from "../../src/measure/page/series.ts";
import type { BenchRow } from "../../src/measure/row.ts";
import { sampleRows } from "./fake.ts";
import { adaptive, invented, noise } from "./invented.ts";

const ROWS = await sampleRows({
  batch: [1, 8],
  numSteps: [1, 3, 7],
  policies: ["ema", "dsd"],
  blocks: 3,
});
const ONE_SIZE = ROWS.filter(({ batch }) => batch === 1);

interface Node {
  readonly textContent: string;
  getAttribute(name: string): string | null;
  querySelectorAll(selector: string): Iterable<Node>;
}

function pageOf(rows: readonly BenchRow[]): Node {
  const text = html(rows, { command: "eyrie bench", date: new Date(0), version: "0" });
  return (parseHTML(text) as unknown as { document: Node }).document;
}

const all = (node: Node, selector: string) => [...node.querySelectorAll(selector)];
const chart = (page: Node, name: RegExp) => {
  const found = all(page, "svg").filter((svg) => name.test(svg.getAttribute("aria-label") ?? ""));
  return found[0] as Node;
};

Deno.test("each chart has a role and a name of its own, swatches are decoration", () => {
  const page = pageOf([...ROWS, ...ROWS.map((row) => ({ ...row, depth: 64 }))]);
  const swatches = all(page, ".legend svg");
  ok(swatches.length > 0);
  for (const svg of swatches) equal(svg.getAttribute("aria-hidden"), "true");
  const charts = all(page, "figure svg");
  for (const svg of charts) equal(svg.getAttribute("role"), "img");
  const names = charts.map((svg) => svg.getAttribute("aria-label"));
  ok(names.includes("Tokens/s, 95 % intervals, depth 64"), String(names));
  ok(names.includes("Accept length over time, policy ema, batch 8"));
  equal(all(page, "svg").length, swatches.length + charts.length);
});

Deno.test("table headers have a scope; the region that scrolls has a name and the keyboard's focus", () => {
  const page = pageOf(ROWS);
  for (const cell of all(page, "thead th")) equal(cell.getAttribute("scope"), "col");
  const rowHeads = all(page, "tbody th");
  deepEqual(rowHeads.map((cell) => cell.textContent), ROWS.map(({ setting }) => setting));
  for (const cell of rowHeads) equal(cell.getAttribute("scope"), "row");
  const [region] = all(page, ".table");
  deepEqual(["role", "tabindex", "aria-labelledby"].map((name) => region?.getAttribute(name)), [
    "region",
    "0",
    "rows",
  ]);
  equal(all(page, "#rows").length, 1);
});

Deno.test("no two settings look alike without colour", () => {
  const rows = Array.from({ length: 7 }, (_, at) => invented(at + 1, [1, 1, 1]));
  const policies = Array.from({ length: 6 }, (_, at) => adaptive([1, 1, 1], { setting: `p${at}` }));
  const styles = [...settingStyles([invented(0, [1, 1, 1]), ...rows, ...policies]).values()];
  equal(styles.length, 14);
  equal(new Set(styles.map(({ symbol, dash }) => `${symbol} ${dash}`)).size, styles.length);
});

Deno.test("lines and symbols of a chart are those of the legend", () => {
  const svg = chart(pageOf(ROWS), /^Tokens/);
  const dashes = all(svg, 'g[aria-label="line"]').map((g) => g.getAttribute("stroke-dasharray"));
  equal(new Set(dashes).size, 6, String(dashes));
  const shapes = all(svg, 'g[aria-label="dot"] path').map((path) => path.getAttribute("d"));
  equal(new Set(shapes).size, 6);
});

Deno.test("one batch size is drawn as bars with the settings' names", () => {
  const page = pageOf(ONE_SIZE);
  const svg = chart(page, /^Tokens/);
  const names = ONE_SIZE.map(({ setting }) => setting).filter((name) => name !== "plain (A/A)");
  equal(all(svg, 'g[aria-label="bar"] rect').length, names.length);
  deepEqual(
    all(svg, 'g[aria-label="y-axis tick label"] text').map((one) => one.textContent),
    names,
  );
  equal(all(svg, 'g[aria-label="line"]').length, 0);
  const speedup = chart(page, /^Speed over plain/);
  deepEqual(
    all(speedup, 'g[aria-label="y-axis tick label"] text').map((one) => one.textContent),
    names.slice(1),
  );
  equal(all(chart(pageOf(ROWS), /^Tokens/), 'g[aria-label="bar"]').length, 0);
});

/** All ends of lines and bars of a chart, with what is around it. */
function extents(svg: Node) {
  const [, , width = NaN, height = NaN] = (svg.getAttribute("viewBox") ?? "").split(" ").map(
    Number,
  );
  const number = (node: Node, name: string) => Number(node.getAttribute(name));
  const xs = all(svg, "line").flatMap((line) => [number(line, "x1"), number(line, "x2")]);
  const ys = all(svg, "line").flatMap((line) => [number(line, "y1"), number(line, "y2")]);
  for (const rect of all(svg, "rect")) {
    const [x, y] = [number(rect, "x"), number(rect, "y")];
    xs.push(x, x + number(rect, "width"));
    ys.push(y, y + number(rect, "height"));
  }
  return { xs, ys, width, height };
}

Deno.test("charts hold all they draw; an interval that reaches below 0 ends in an arrow there", () => {
  const wild = [0.2, 4, 0.3];
  const sizes = [1, 8].map((batch) => [
    ...[invented(0, [1, 1, 1], { batch }), noise([1, 1.6, 0.6], { batch })],
    ...[invented(3, wild, { batch }), invented(7, [0.1, 0.1, 0.11], { batch })],
  ]);
  for (const rows of [sizes[0] ?? [], sizes.flat()]) {
    const page = pageOf(rows);
    for (const svg of all(page, "figure svg")) {
      const name = svg.getAttribute("aria-label") ?? "";
      const { xs, ys, width, height } = extents(svg);
      ok(xs.length > 0, name);
      ok(xs.every((x) => x >= 0 && x <= width), `${name} ${xs}`);
      ok(ys.every((y) => y >= 0 && y <= height), `${name} ${ys}`);
    }
    const arrows = all(chart(page, /^Tokens/), 'g[aria-label="dot"] path')
      .filter((path) => /rotate/.test(path.getAttribute("transform") ?? ""));
    equal(arrows.length, rows === sizes[0] ? 1 : 2);
    match(chart(page, /^Tokens/).textContent, /its interval reaches below 0/);
  }
});
