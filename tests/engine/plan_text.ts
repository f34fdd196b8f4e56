// Plans as text for golden files: one line a dispatch, what repeats told once.
import type { Dispatch, Operand, Plan } from "../../src/gpu/kernel.ts";
import { describe } from "../reference/describe.ts";

/** One of several plans of a name, that differ in `shape`: in rows, say. */
export interface ShapedPlan {
  readonly name: string;
  readonly shape: string;
  readonly plan: Plan;
}

/** A part for each name; plans of one name that differ in numbers alone share their lines. */
export function plansText(plans: readonly ShapedPlan[]): string {
  const alike = new Map<string, { shapes: string[]; texts: string[][] }>();
  for (const { name, shape, plan } of plans) {
    if (plan.length === 0) continue;
    const lines = describe(plan.map(placed)).split("\n");
    const key = [name, ...lines.map(formOf)].join("\n");
    const { shapes, texts } = alike.getOrInsertComputed(key, () => ({ shapes: [], texts: [] }));
    shapes.push(shape);
    texts.push(lines);
  }
  return [...alike].map(([key, { shapes, texts }]) => {
    const lines = (texts[0] as string[]).map((_, i) => merged(texts.map((text) => text[i] ?? "")));
    return [`## ${key.split("\n", 1)}: ${shapes.join(" | ")}`, ...folded(lines)].join("\n");
  }).join("\n\n");
}

/** Where in its arena an operand lies is no part of a plan; a label says which one it is. */
function placed(launch: Dispatch): Dispatch {
  const bare = ({ offset = 0, label, ...rest }: Operand) =>
    label === undefined ? { ...rest, offset } : { ...rest, label };
  const buffers = Object.entries(launch.buffers).map(([name, at]) => [name, bare(at)]);
  return { ...launch, buffers: Object.fromEntries(buffers) };
}

/** A line's label and the names of what it binds and sets. */
function formOf(line: string): string {
  const [label, , , ...words] = line.split(" ");
  return [label, ...words.map((word) => word.split("=")[0])].join(" ");
}

/** Merges lines of one form into one: where they differ it has each line's number, as in "[1|4,16,1]". */
export function merged(lines: readonly string[]): string {
  const words = lines.map((line) => line.split(" "));
  return (words[0] ?? []).map((_, i) => mergedWords(words.map((of) => of[i] ?? ""))).join(" ");
}

function mergedWords(words: readonly string[]): string {
  const pieces = words.map((word) => word.split(/(?<=[_,=[\]])|(?=[_,=[\]])/));
  const sameLength = pieces.every(({ length }) => length === pieces[0]?.length);
  if (!sameLength) return distinct(words);
  return (pieces[0] ?? []).map((_, i) => distinct(pieces.map((of) => of[i] ?? ""))).join("");
}

function distinct(values: readonly string[]): string {
  return new Set(values).size === 1 ? values[0] ?? "" : values.join("|");
}

/**
 * Shortens a line that repeats an earlier one: the last line of the same label, for the draft's levels,
 * or that of the layer before but for the layer's number.
 */
export function folded(lines: readonly string[]): string[] {
  const before = new Map<string, string>();
  return lines.map((line) => {
    const label = line.split(" ", 1)[0] as string;
    const role = label.replace(LAYER, "$1");
    const last = before.get(role) ?? "";
    before.set(role, line);
    return shifted(last, layerOf(line) - layerOf(last)) === line ? `${label} as before` : line;
  });
}

const LAYER = /\b(layers|kv)\.(\d+)/;

function layerOf(line: string): number {
  return Number(/^layers\.(\d+)/.exec(line)?.[1] ?? 0);
}

/** A layer's line as it would be for the layer `by` after it. */
function shifted(line: string, by: number): string {
  return line.replaceAll(
    new RegExp(LAYER, "g"),
    (_, of: string, number: string) => `${of}.${Number(number) + by}`,
  );
}
