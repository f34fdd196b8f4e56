/** The scratch memory of an engine's models. */
import {
  type Draft,
  draftBody,
  draftHead,
  draftLast,
  draftLevel,
} from "../../model/graph/draft.ts";
import type { Operand } from "../../gpu/kernel.ts";
import type { Matrix } from "../../gpu/matrix.ts";
import type { Graph } from "../../model/graph/graph.ts";
import { type Target, targetHead, targetLayers, targetNorm } from "../../model/graph/target.ts";
import { layout } from "../../model/lower/lower.ts";
import type { RowBlock } from "../../../kernels/lib/row_blocks.ts";
import { batchBuckets, rowBucket, rowBuckets } from "./buckets.ts";
import { type EngineSizes, type RoundBuffers, treeWidth } from "./buffers.ts";
import { promptRun } from "./prompt_rows.ts";

/** Layers of a kind that are laid out: more of them would have no other values. */
const ALIKE = 4;

/** Functions that lay out the values of each forward that an engine's rounds and prompts are made of. */
export function forwardLayouts(
  { target, promptTarget, draft, standalone }: {
    readonly target: Target;
    readonly promptTarget: Target;
    readonly draft: Draft & { readonly features: Operand } | undefined;
    /** Instead of `draft`. */
    readonly standalone: { readonly model: Target } | undefined;
  },
  { rows, last: lastRows, batchSlots }: RoundBuffers,
  capacity: EngineSizes,
): (() => void)[] {
  const layouts: (() => void)[] = [];
  const always = [target, ...standalone ? [standalone.model] : []].map(shortened);
  const ofPrompts = promptTarget === target ? [] : [shortened(promptTarget)];
  const { prompts, forwards, batches } = countsOf(capacity);
  for (const { count, perSlot } of forwards) {
    const of = { rows, count, perSlot };
    const isPrompt = prompts.has(rowsKey(of));
    for (const model of isPrompt ? [...ofPrompts, ...always] : always) {
      for (const greedy of [false, true]) {
        layouts.push(layout(model, (graph) => {
          const x = targetNorm(graph, model, targetLayers(graph, model, of, []));
          const logits = targetHead(graph, model, x, model.logits);
          const { vocabSize: vocab } = model.config;
          if (greedy) graph.partials(logits, { choice: "argmax", vocab }, "choose");
        }));
      }
    }
    if (draft) {
      const { features } = draft;
      layouts.push(layout(draft, (graph) => draftBody(graph, draft, of, { features })));
    }
  }
  if (!draft) return layouts;
  const { hidden } = draft;
  const level = (graph: Graph, count: number) => {
    const of = { rows, count, perSlot: 1 };
    return draftLevel(graph, draft, of, { hidden, index: batchSlots });
  };
  const step = { step: 0, keepHidden: true };
  for (const batch of batches) {
    const last = (graph: Graph) => draftLast(graph, draft, { rows, last: lastRows }, batch);
    for (const hiddenRows of [last, (graph: Graph) => level(graph, batch)]) {
      layouts.push(layout(draft, (graph) => {
        draftHead(graph, draft, batchSlots, { x: hiddenRows(graph), ...step });
      }));
    }
    if (draft.tree) {
      const nodes = batch * treeWidth(capacity);
      layouts.push(layout(draft, (graph) => void level(graph, nodes)));
    }
  }
  return layouts;
}

/** Rows of forwards, and sequences of rounds. */
function countsOf(capacity: EngineSizes): {
  readonly forwards: readonly RowBlock[];
  /** Those of prompts, as `rowsKey`s. */
  readonly prompts: ReadonlySet<string>;
  readonly batches: ReadonlySet<number>;
} {
  const { batch, shapes, treeShapes = [], prefillRows } = capacity;
  const widest = rowBucket(prefillRows);
  // The widest first: what others need mostly fits into what is laid out for it.
  const prompts = [widest, ...rowBuckets(widest).filter((rows) => rows < widest)];
  const rounds = batchBuckets(batch).flatMap((of) =>
    [...shapes, ...treeShapes].map(({ rows }) => ({ count: of * rows, perSlot: rows }))
  );
  // Attention is launched by the rows of a slot, and may store f16 for a matmul where they are many.
  const run = promptRun(capacity);
  const chunks = prompts.filter((count) => batch > 1 && count >= 2 * run);
  const ofPrompts = [
    ...prompts.map((count) => ({ count, perSlot: count })),
    ...chunks.map((count) => ({ count, perSlot: run })),
  ];
  const forwards = [...ofPrompts, ...rounds];
  return {
    forwards: [...new Map(forwards.map((of) => [rowsKey(of), of])).values()],
    prompts: new Set(ofPrompts.map(rowsKey)),
    batches: new Set(batchBuckets(batch)),
  };
}

function rowsKey({ count, perSlot }: RowBlock): string {
  return `${count} ${perSlot}`;
}

/** The model with a few layers of each kind: layers that are alike have the same values. */
function shortened(model: Target): Target {
  const counts = new Map<string, number>();
  const kept = model.weights.layers.map(({ attention, mlp, norms, inputNorm }) => {
    const there = [inputNorm, ...Object.values(norms)].map((norm) => norm !== undefined);
    const kind = JSON.stringify([shapesOf(attention), shapesOf(mlp), there]);
    const count = counts.get(kind) ?? 0;
    counts.set(kind, count + 1);
    return count < ALIKE;
  });
  return {
    ...model,
    weights: { ...model.weights, layers: model.weights.layers.filter((_, i) => kept[i]) },
    kv: model.kv.filter((_, i) => kept[i]),
  };
}

/**
 * What the layout of values depends on: the layer's config, which weights it has, and shapes and formats of matrices.
 */
function shapesOf(weights: object): unknown {
  return Object.entries(weights).map(([name, of]: [string, unknown]) => {
    if (typeof of !== "object" || of === null) return [name, of];
    if (isMatrix(of)) return [name, of.format, of.rows, of.cols, of.shards.length];
    if (name === "spec") return of;
    return [name, "kind" in of ? shapesOf(of) : true];
  });
}

function isMatrix(of: object): of is Matrix {
  return "shards" in of;
}
