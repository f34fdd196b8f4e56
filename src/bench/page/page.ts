import { columnsFor, digits, isSimulated, noiseText, ratioText } from "../columns.ts";
import type { BenchRow } from "../row.ts";
import { sum } from "../statistics.ts";
import { type Colours, coloursOf } from "./colours.ts";
import { type PageMaker, pageMaker, type PageNode } from "./dom.ts";
import { PARTS, positionChart, timelineChart, timeSplitChart } from "./drafting.ts";
import { speedupChart, throughputChart } from "./speed.ts";
import css from "./style.css" with { type: "text" };

/** What the page says of the run besides its rows. */
export interface PageFacts {
  /** As typed. */
  readonly command: string;
  readonly date: Date;
  readonly version: string;
}

/** Timelines shown at most in a section: later ones look the same. */
const TIMELINES = 12;
/** Pixels that wide charts are drawn for: half the page, or all of a phone. The style shows one. */
const WIDTHS = { "on-screen": 540, "on-phone": 360 } as const;

/** The whole page: one file, no script, nothing to fetch. */
export function html(rows: readonly BenchRow[], facts: PageFacts): string {
  const page = pageMaker();
  const colours = coloursOf(rows);
  const body = page.element(
    "body",
    {},
    ...header(rows, { page, facts }),
    ...groups(rows).flatMap((group) => section(group, { page, colours })),
    ...tableOf(rows, page),
  );
  const title = page.element(
    "b",
    {},
    `eyrie bench: ${rows[0]?.model ?? ""}, ${rows[0]?.device ?? ""}`,
  );
  // The DOM escapes no title and no style sheet: the one is escaped as other text, the other is ours.
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title.innerHTML}</title>
<style>${css}</style>
</head>
${body.outerHTML}
</html>
`;
}

function header(
  rows: readonly BenchRow[],
  { page, facts }: { page: PageMaker; facts: PageFacts },
): PageNode[] {
  const { element } = page;
  const { shared } = columnsFor(rows);
  const noise = noiseText(rows);
  const term =
    (style: Record<string, string>) => ([name, value]: readonly [string, PageNode | string]) => [
      element("dt", style, name),
      element("dd", {}, value),
    ];
  const date = `${facts.date.toISOString().slice(0, 16).replace("T", " ")} UTC`;
  const terms = [
    ...[["command", element("code", {}, facts.command)] as const].flatMap(term({ class: "line" })),
    ...[...shared, ["date", date] as const, ["eyrie", facts.version] as const].flatMap(term({})),
  ];
  return [
    element("h1", {}, "eyrie bench"),
    ...rows.some(isSimulated)
      ? [element("div", { class: "simulated" }, "SIMULATED acceptance: timing only, no real text")]
      : [],
    element("dl", {}, ...terms),
    element("h2", {}, "Fastest"),
    element("dl", {}, ...fastest(rows).flatMap(term({ class: "line" }))),
    ...noise === undefined ? [] : [element("p", {}, `${noise}.`)],
  ];
}

function fastest(rows: readonly BenchRow[]): (readonly [string, string])[] {
  return groups(rows).flatMap((group) =>
    [...Map.groupBy(group.rows, ({ batch }) => batch)].map(([batch, rows]) => {
      const best = bestOf(rows);
      const name = group.title === "" ? `batch ${batch}` : `${group.title}, batch ${batch}`;
      const { setting, tokens_per_second, speedup } = best;
      return [
        name,
        `${setting}: ${digits(tokens_per_second.mean)} tokens/s, ${ratioText(speedup)} plain`,
      ] as const;
    })
  );
}

/** The A/A row can win by noise only. */
function bestOf(rows: readonly BenchRow[]): BenchRow {
  return rows.filter(({ setting_kind }) => setting_kind !== "plain again")
    .toSorted((a, b) => b.speedup.ratio - a.speedup.ratio)[0] as BenchRow;
}

/** Rows that differ in batch size and setting only: what one set of charts can show. */
interface Group {
  /** What sets it apart from the other groups; empty where it is the only one. */
  readonly title: string;
  readonly rows: readonly BenchRow[];
}

function groups(rows: readonly BenchRow[]): Group[] {
  const parts = (row: BenchRow) => [
    ["model", row.model],
    ["draft", row.draft ?? "none"],
    ["device", row.device],
    ["workload", row.workload],
    ["prompt", row.prompt_tokens === null ? "text" : `${row.prompt_tokens} tokens`],
    ["output", `${row.output_tokens} tokens`],
    ["temperature", String(row.temperature)],
    ["depth", String(row.depth)],
    ["rounds per sync", String(row.rounds_per_sync)],
  ];
  const differs = (at: number) => new Set(rows.map((row) => parts(row)[at]?.[1])).size > 1;
  const title = (row: BenchRow) =>
    parts(row).filter((_, at) => differs(at)).map((part) => part.join(" ")).join(", ");
  return [...Map.groupBy(rows, title)].map(([title, rows]) => ({ title, rows }));
}

function section(
  { title, rows }: Group,
  { page, colours }: { page: PageMaker; colours: Colours },
): PageNode[] {
  const { element } = page;
  const figure = (caption: string, ...charts: readonly PageNode[]) =>
    element("figure", {}, element("figcaption", {}, caption), ...charts);
  const both = (draw: typeof speedupChart) =>
    Object.entries(WIDTHS).map(([name, width]) =>
      element("div", { class: name }, draw(rows, { page, colours, width }))
    );
  return [
    element("h2", {}, title === "" ? "Speed" : `Speed: ${title}`),
    legend([...colours].filter(([name]) => rows.some(({ setting }) => setting === name)), page),
    element(
      "div",
      { class: "wide" },
      figure("Tokens/s by batch size, 95 % intervals", ...both(throughputChart)),
      figure("Speed-up over plain, 95 % intervals; band: A/A noise", ...both(speedupChart)),
    ),
    ...timelines(rows, { page, colours, figure }),
    ...byBatch(rows, { page, colours, figure }),
  ];
}

interface Figures {
  readonly page: PageMaker;
  readonly colours: Colours;
  readonly figure: (caption: string, ...charts: readonly PageNode[]) => PageNode;
}

/** Of the presets; of the widest fixed setting where no preset was measured. */
function timelines(rows: readonly BenchRow[], { page, colours, figure }: Figures): PageNode[] {
  const presets = rows.filter(({ setting_kind }) => setting_kind === "preset");
  const most = Math.max(...rows.map(({ num_steps }) => num_steps ?? 0));
  const shown = (presets.length > 0 ? presets : rows.filter(({ num_steps }) => num_steps === most))
    .filter(({ timeline }) => timeline.accept.length > 0)
    .slice(0, TIMELINES);
  const tops = shown.flatMap(({ timeline }) => [
    ...timeline.accept.map(({ length }) => length),
    ...timeline.steps.map(({ num_steps }) => num_steps + 1),
  ]);
  const top = Math.ceil(Math.max(1, ...tops));
  return [
    page.element("h3", {}, "Accept length over time"),
    page.element(
      "p",
      {},
      "Line: tokens a sequence gains in a round. Grey steps: drafts made in a round, the tier. First block.",
    ),
    page.element(
      "div",
      { class: "small" },
      ...shown.map((row) =>
        figure(`${row.setting}, batch ${row.batch}`, timelineChart(row, { page, colours, top }))
      ),
    ),
  ];
}

function byBatch(rows: readonly BenchRow[], { page, colours, figure }: Figures): PageNode[] {
  const { element } = page;
  const batches = [...Map.groupBy(rows, ({ batch }) => batch)];
  const drafting = ({ acceptance_per_position }: BenchRow) => acceptance_per_position.length > 0;
  const top = Math.max(
    ...rows.map(({ round_ms }) => sum(PARTS.map((part) => round_ms[part]))),
  );
  return [
    element("h3", {}, "Acceptance by position"),
    element(
      "p",
      {},
      "Of the rounds that drafted a position, the share that accepted it. A preset drafts deep where drafts fare well: its line may rise.",
    ),
    element(
      "div",
      { class: "small" },
      ...batches.filter(([, rows]) => rows.some(drafting)).map(([batch, rows]) =>
        figure(`batch ${batch}`, positionChart(rows.filter(drafting), { page, colours }))
      ),
    ),
    element("h3", {}, "Where a round's time goes"),
    legend(PARTS.map((part) => [part, `var(--${part})`]), page),
    element(
      "div",
      { class: "small" },
      ...batches.map(([batch, rows]) =>
        figure(`batch ${batch}`, timeSplitChart(rows, { page, top }))
      ),
    ),
  ];
}

function legend(entries: readonly (readonly [string, string])[], page: PageMaker): PageNode {
  const { element } = page;
  const items = entries.map(([name, colour]) =>
    element("span", {}, element("i", { style: `background: ${colour}` }), name)
  );
  return element("div", { class: "legend" }, ...items);
}

function tableOf(rows: readonly BenchRow[], { element }: PageMaker): PageNode[] {
  const { columns } = columnsFor(rows);
  const best = new Set(
    groups(rows).flatMap((group) =>
      [...Map.groupBy(group.rows, ({ batch }) => batch).values()].map(bestOf)
    ),
  );
  const align = (at: number) => columns[at]?.align === "right" ? { class: "right" } : {};
  const head = columns.map(({ title }, at) => element("th", align(at), title));
  const lines = rows.map((row) =>
    element(
      "tr",
      best.has(row) ? { class: "best" } : {},
      ...columns.map(({ text }, at) => element("td", align(at), text(row))),
    )
  );
  return [
    element("h2", {}, "All rows"),
    element("p", {}, "The fastest setting of each batch size stands out."),
    element(
      "div",
      { class: "table" },
      element(
        "table",
        {},
        element("thead", {}, element("tr", {}, ...head)),
        element("tbody", {}, ...lines),
      ),
    ),
  ];
}
