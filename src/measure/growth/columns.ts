import { bytesText } from "../../text/numbers.ts";
import { digits, timesText } from "../formats.ts";
import { type Column, numbers } from "../table.ts";
import { GROWTH_AXES, type GrowthAxis } from "./points.ts";
import { type GrowthRow, seriesNames, valueOf } from "./row.ts";

const FLOOR = numbers("floor ms", ({ floor_ms }: GrowthRow) => floor_ms, digits);
const OVER_FLOOR = numbers("over floor", ({ over_floor }: GrowthRow) => over_floor, timesText);
const DRAFT: readonly Column<GrowthRow>[] = [
  numbers("draft ms", ({ draft_ms }) => draft_ms, digits),
  numbers("verify ms", ({ verify_ms }) => verify_ms, digits),
  numbers("extend ms", ({ extend_ms }) => extend_ms, digits),
];

/** The rounds, or the prefills, of one model along one axis. */
export interface GrowthTable {
  readonly title: string;
  readonly axis: GrowthAxis;
  readonly kind: GrowthRow["kind"];
  readonly rows: readonly GrowthRow[];
  readonly columns: readonly Column<GrowthRow>[];
}

/** One table for each model, axis and kind, in the order in which their first rows were measured. */
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

/** The values of the axes that are not varied: `batch 1, rows 1`. */
function constants(group: readonly GrowthRow[]): string {
  const [first] = group;
  if (first === undefined) return "";
  return GROWTH_AXES.filter((axis) => axis !== first.axis)
    .map((axis) => `${axis} ${first[axis]}`).join(", ");
}

function columnsOf(group: readonly GrowthRow[]): Column<GrowthRow>[] {
  const [first] = group as [GrowthRow];
  const { axis, kind } = first;
  const value: Column<GrowthRow> = { ...numbers(axis, valueOf), rowHeader: true };
  const time = ({ device_ms, ms }: GrowthRow) => device_ms ?? ms;
  const floors = group.some(({ floor_ms }) => floor_ms !== null) ? [FLOOR, OVER_FLOOR] : [];
  if (kind === "prefill") {
    return [
      value,
      numbers("tokens", ({ rows }) => rows),
      numbers("ms", ({ ms }) => ms, digits),
      numbers("tokens/s", ({ rows_per_second }) => rows_per_second, digits),
      numbers("TFLOP/s", ({ tflops }) => tflops, digits),
      ...floors,
    ];
  }
  const timed = group.some(({ device_ms }) => device_ms !== null);
  const drafts = group.some(({ draft, rows }) => draft !== null && rows > 1);
  const parts: Column<GrowthRow>[] = [
    numbers("device ms", ({ device_ms }) => device_ms, digits),
    ...drafts ? DRAFT : [],
    numbers("host ms", ({ host_ms }) => host_ms, digits),
  ];
  return [
    value,
    numbers("step ms", ({ ms }) => ms, digits),
    ...timed ? parts : [],
    ...floors,
    numbers("over first", (row) => time(row) / time(first), timesText),
    numbers("rows/s", ({ rows_per_second }) => rows_per_second, digits),
    numbers("memory", ({ memory }) => memory.total, bytesText),
  ];
}
