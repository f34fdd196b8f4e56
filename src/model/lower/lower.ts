/** From a graph to dispatches: plain kernels first, then the rewrites that make them fast. */
import type { Dispatch } from "../../gpu/kernel.ts";
import type { DecoderContext } from "../graph/context.ts";
import { Graph, type Value } from "../graph/graph.ts";
import { emit } from "./emit.ts";
import { placed } from "./lifetimes.ts";
import { type LoweredOp, placeOf, substituted, writesOf } from "./ops.ts";
import { type Rewrite, REWRITES } from "./rewrites.ts";
import { select } from "./select.ts";

/** The dispatches of a graph. */
export interface Lowered {
  /** Of a part, in order; none where it has no operations. */
  part(name: string): Dispatch[];
  /** Partial results of a row of a value that `Graph.partials` made. */
  partialsOf(value: Value): number;
}

/** Lowers a graph. @param rewrites that are applied, in this order; default: all but those that EYRIE_WITHOUT names. */
export function lower(
  graph: Graph,
  context: DecoderContext,
  rewrites: readonly Rewrite[] = REWRITES,
): Lowered {
  const without = context.without ?? NONE;
  let ops = select(graph.ops, context);
  for (const { name, apply, required } of rewrites) {
    const off = without.has("all") || without.has(name);
    if (!off) ops = apply(ops, context);
    else if (required) ops = required(ops, context);
  }
  ops = inTheirPlaces(ops);
  const at = placed(ops, context.scratch);
  const partials = new Map<Value, number>();
  const parts = new Map<string, Dispatch[]>();
  for (const op of ops) {
    parts.getOrInsertComputed(op.part, () => []).push(...emit({ context, at, partials }, op));
  }
  return {
    part: (name) => parts.get(name) ?? [],
    partialsOf(value) {
      const count = partials.get(value);
      if (count === undefined) throw new Error(`${value.label} has no partial results`);
      return count;
    },
  };
}

const NONE: ReadonlySet<string> = new Set();

/** Dispatches of a graph that is one part. */
export function planOf(context: DecoderContext, record: (graph: Graph) => void): Dispatch[] {
  const graph = new Graph();
  record(graph);
  return lower(graph, context).part("all");
}

/** Values that are stored elsewhere than the value whose place they take are copied there. */
function inTheirPlaces(ops: readonly LoweredOp[]): LoweredOp[] {
  const homes = new Map<Value, Value["at"]>();
  return ops.flatMap((op): LoweredOp[] => {
    const moved: Value[] = [];
    for (const value of writesOf(op)) {
      const before = placeOf(op, value);
      const home = before ? homes.get(before) ?? before.at : value.at;
      homes.set(value, home);
      if (before && value.at && home !== value.at) moved.push(value);
    }
    if (moved.length === 0) return [op];
    const inPlace = new Map(moved.map((value) => [value, { ...value, at: undefined }] as const));
    const { part } = op;
    return [
      substituted(op, inPlace),
      ...moved.map((out): LoweredOp => {
        homes.set(out, out.at);
        return {
          kind: "place",
          x: inPlace.get(out) as Value,
          first: 0,
          out,
          label: out.label,
          part,
        };
      }),
    ];
  });
}
