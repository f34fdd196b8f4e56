/** Lowers a graph to dispatches: plain kernels first, then the rewrites that make them fast. */
import type { Dispatch } from "../../gpu/kernel.ts";
import type { DecoderContext } from "../graph/context.ts";
import { Graph, type Value } from "../graph/graph.ts";
import { Edits } from "./edits.ts";
import { emit } from "./emit.ts";
import { placed } from "./lifetimes.ts";
import { aliasOf, type LoweredOp, substituted, writesOf } from "./ops.ts";
import { REWRITES } from "./rewrites.ts";
import { select } from "./select.ts";

/** The dispatches of a graph. */
export interface Lowered {
  /** The dispatches of a part, in order; none if the part has no operations. */
  part(name: string): Dispatch[];
}

/** Lowers a graph with all rewrites except those that `context.without` names. */
export function lower(graph: Graph, context: DecoderContext): Lowered {
  const ops = lowered(graph, context);
  const at = placed(ops, context.scratch);
  const partials = new Map<Value, number>();
  const parts = new Map<string, Dispatch[]>();
  for (const op of ops) {
    parts.getOrInsertComputed(op.part, () => []).push(...emit({ context, at, partials }, op));
  }
  return { part: (name) => parts.get(name) ?? [] };
}

/** The operations of a graph after selection and rewrites, each as its kernel runs it. */
export function lowered(graph: Graph, context: DecoderContext): LoweredOp[] {
  const { without = NONE } = context;
  let edits = new Edits(select(graph.ops, context));
  for (const { name, within = name, apply, required } of REWRITES) {
    const off = ["all", name, within].some((of) => without.has(of));
    (off ? required : apply)?.(edits, context);
    edits = edits.done();
  }
  return inTheirPlaces(edits.ops);
}

/** Lowers a graph and records nothing. The result places its values in scratch memory: see `ScratchPool.allocate`. */
export function layout(context: DecoderContext, record: (graph: Graph) => void): () => void {
  const graph = new Graph();
  record(graph);
  const ops = lowered(graph, context);
  return () => void placed(ops, context.scratch);
}

const NONE: ReadonlySet<string> = new Set();

/** Dispatches of a graph that is one part. */
export function planOf(context: DecoderContext, record: (graph: Graph) => void): Dispatch[] {
  const graph = new Graph();
  record(graph);
  return lower(graph, context).part("all");
}

/** Adds a copy for each value that is written in place of another but must be stored in a different buffer. */
function inTheirPlaces(ops: readonly LoweredOp[]): LoweredOp[] {
  const homes = new Map<Value, Value["at"]>();
  return ops.flatMap((op): LoweredOp[] => {
    const moved: Value[] = [];
    for (const value of writesOf(op)) {
      const before = aliasOf(op, value);
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
