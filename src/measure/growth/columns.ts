import { bytesText } from "../../text/numbers.ts";
import { digits } from "../columns.ts";
import { GROWTH_AXES, type GrowthAxis } from "./points.ts";
import { type GrowthRow, seriesNames, valueOf } from "./row.ts";

/** One column of a table for people. */
export interface GrowthColumn {
  readonly title: string;
  readonly text: (row: GrowthRow) => string;
}

const optional = (value: number | null) => value === null ? "" : digits(value);
const column = (title: string, text: GrowthColumn["text"]): GrowthColumn => ({ title, text });

const FLOOR = column("floor ms", ({ floor_ms }) => optional(floor_ms));
const OVER_FLOOR = column("over floor", ({ over_floor }) => over(over_floor));
const MEMORY = column("memory", ({ memory }) => bytesText(memory.total));
const DRAFT: readonly GrowthColumn[] = [
  column("draft ms", ({ draft_ms }) => optional(draft_ms)),
  column("verify ms", ({ verify_ms }) => optional(verify_ms)),
  column("extend ms", ({ extend_ms }) => optional(extend_ms)),
];

/** A table: the rounds of a model on an axis, or its prefills. */
export interface GrowthTable {
  readonly title: string;
  readonly axis: GrowthAxis;
  readonly kind: GrowthRow["kind"];
  readonly rows: readonly GrowthRow[];
  readonly columns: readonly GrowthColumn[];
}

/** Tables in the order in which their first rows were measured. */
export function growthTables(rows: readonly GrowthRow[]): GrowthTable[] {
  const nameOf = seriesNames(rows);
  const groups = Map.groupBy(
    rows,
    (row) => JSON.stringify([nameOf(row), row.axis, row.kind]),
  );
  return [...groups.values()].map((group) => {
    const [first] = group as [GrowthRow];
    const { axis, kind } = first;
    const name = nameOf(first);
    const title = kind === "prefill"
      ? `${name}: prefill of the last tokens of a context`
      : `${name}: a round by ${axis} (${constants(group)})`;
    return { title, axis, kind, rows: group, columns: columnsOf(group) };
  });
}

/** `batch 1, rows 1`: where the other axes stay. */
export function constants(group: readonly GrowthRow[]): string {
  const [first] = group;
  if (first === undefined) return "";
  return GROWTH_AXES.filter((axis) => axis !== first.axis)
    .map((axis) => `${axis} ${first[axis]}`).join(", ");
}

function columnsOf(group: readonly GrowthRow[]): GrowthColumn[] {
  const [first] = group as [GrowthRow];
  const { axis, kind } = first;
  const value = column(axis, (row) => String(valueOf(row)));
  const time = ({ device_ms, ms }: GrowthRow) => device_ms ?? ms;
  const floors = group.some(({ floor_ms }) => floor_ms !== null) ? [FLOOR, OVER_FLOOR] : [];
  if (kind === "prefill") {
    return [
      value,
      column("tokens", ({ rows }) => String(rows)),
      column("ms", ({ ms }) => digits(ms)),
      column("tokens/s", ({ rows_per_second }) => digits(rows_per_second)),
      column("TFLOP/s", ({ tflops }) => digits(tflops)),
      ...floors,
    ];
  }
  const timed = group.some(({ device_ms }) => device_ms !== null);
  const drafts = group.some(({ draft, rows }) => draft !== null && rows > 1);
  return [
    value,
    column("step ms", ({ ms }) => digits(ms)),
    ...timed
      ? [
        column("device ms", ({ device_ms }) => optional(device_ms)),
        ...drafts ? DRAFT : [],
        column("host ms", ({ host_ms }) => optional(host_ms)),
      ]
      : [],
    ...floors,
    column("over first", (row) => over(time(row) / time(first))),
    column("rows/s", ({ rows_per_second }) => digits(rows_per_second)),
    MEMORY,
  ];
}

function over(value: number | null): string {
  return value === null ? "" : `${digits(value)}x`;
}
