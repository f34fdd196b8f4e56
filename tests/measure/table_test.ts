import { deepEqual, equal } from "node:assert/strict";
import { csvText } from "../../src/measure/csv.ts";
import { documentText, pageMaker } from "../../src/measure/page/dom.ts";
import { pageTable, tableBody } from "../../src/measure/page/parts.ts";
import { type Column, fittedTable, markdownText, numbers } from "../../src/measure/table.ts";
import { splitTable, words } from "../../src/measure/table.ts";

interface Row {
  readonly name: string;
  readonly ms: number | null;
}

const ROWS: readonly Row[] = [{ name: "a<b", ms: 0 }, { name: "c", ms: null }];
const NAME: Column<Row> = { ...words("name", ({ name }: Row) => name), rowHeader: true };
const MS: Column<Row> = numbers("p50 ms", ({ ms }) => ms, (ms) => ms.toFixed(1));
const NEVER: Column<Row> = numbers("never", () => undefined);

Deno.test("a column has the same cells in Markdown, on a page and on a terminal", () => {
  equal(
    markdownText([NAME, MS], ROWS),
    "| name | p50 ms |\n| :--- | -----: |\n| a<b  |    0.0 |\n| c    |        |",
  );
  const page = pageMaker();
  const body = tableBody(page, [NAME, MS], ROWS, ({ ms }) => ms === 0);
  const main = pageTable(page, { id: "rows", columns: [NAME, MS], body });
  const html = documentText({ title: "t", css: "", main }, page);
  const lines = html.match(/<tr.*?<\/tr>/g);
  deepEqual(lines, [
    '<tr><th scope="col">name</th><th scope="col" class="right">p50 ms</th></tr>',
    '<tr class="best"><th scope="row">a&lt;b</th><td class="right">0.0</td></tr>',
    '<tr><th scope="row">c</th><td class="right"></td></tr>',
  ]);
  deepEqual(fittedTable([NAME, MS, NEVER], ROWS, { width: 80, dropped: [] }), [
    "      p50",
    "name   ms",
    "a<b   0.0",
    "c",
  ]);
});

Deno.test("a narrow terminal drops columns in their order, or gets several tables", () => {
  deepEqual(fittedTable([NAME, MS], ROWS, { width: 8, dropped: [MS] }), ["name", "a<b", "c"]);
  const tables = splitTable([NAME, MS, { ...MS, title: "p99 ms" }], ROWS, { width: 10 });
  deepEqual(tables.map(([, head]) => head), ["name   ms", "name   ms"]);
});

Deno.test("CSV is flat: nested names are joined, lists are words, null is empty", () => {
  equal(csvText([{ a: { b: 1, c: null }, d: [1, 2] }]), "a_b,a_c,d\n1,,1 2\n");
});
