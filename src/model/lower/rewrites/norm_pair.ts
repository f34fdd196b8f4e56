import { splitKOf } from "../../../../kernels/matmul/matmul_shape.ts";
import { pairsNorms } from "../../../../kernels/norm/norm_pair.ts";
import type { DecoderContext } from "../../graph/context.ts";
import type { Value } from "../../graph/graph.ts";
import type { Edits } from "../edits.ts";
import type { LoweredOp, OpOf } from "../ops.ts";
import type { Rewrite } from "../rewrite.ts";

/**
 * [norm(embedding), norm(h)], the input of an EAGLE-3 head, is one dispatch. It also adds the partial sums of h that
 * split-K left, gathers the rows of h, and stores h.
 */
export const normPairs: Rewrite = {
  name: "norm_pair",
  apply(edits, context) {
    for (const [i, token] of edits.ops.entries()) {
      const hidden = edits.ops[i + 1];
      if (token.kind !== "place" || hidden?.kind !== "place" || token.out !== hidden.out) continue;
      const [ofToken, ofHidden] = [edits.writer(token.x), edits.writer(hidden.x)];
      if (!isPlainNorm(ofToken) || !isPlainNorm(ofHidden) || ofToken.eps !== ofHidden.eps) continue;
      const embedding = edits.producer(ofToken.from.x, ofToken, "embed");
      if (!embedding || !pairsNorms(embedding.table)) continue;
      if (edits.soleReader(ofToken.out) !== token) continue;
      const h = ofHidden.from.x;
      const made = edits.writer(h);
      const keepsNormed = edits.readers(hidden.x).length > 1 || hidden.x.at !== undefined;
      const keepsInput = edits.readers(h).length > 1 || made !== undefined && h.at !== undefined;
      if (keepsNormed === keepsInput) continue;
      const gathered = made?.kind === "gather" ? made : undefined;
      const source = made?.kind === "matmul" && keepsInput ? stored(edits, made, context) : h;
      edits.remove(token, ofToken, ofHidden, embedding, ...gathered ? [gathered] : []);
      edits.replace(hidden, {
        kind: "norm_pair",
        token: { table: embedding.table, rows: embedding.rows, weight: ofToken.weight },
        hidden: {
          x: gathered?.x ?? source,
          index: gathered?.index,
          weight: ofHidden.weight,
        },
        eps: ofHidden.eps,
        keep: keepsNormed ? { what: "output", out: hidden.x } : { what: "input", out: h },
        out: hidden.out,
        storesScales: false,
        put: "store",
        label: "draft.inputNorms",
        part: hidden.part,
      });
    }
  },
};

/**
 * Makes the matmul of h write to scratch memory, as partial sums if it may use split-K, and returns that value. The
 * norm pair reads it and stores h where others read it.
 */
function stored(edits: Edits, made: OpOf<"matmul">, { tuning }: DecoderContext): Value {
  const { epilogue, matrix, out } = made;
  const splits = epilogue.of === "add" ? 1 : splitKOf(matrix, tuning);
  const source = { ...out, at: undefined, parts: splits };
  edits.replace(made, { ...made, out: source });
  return source;
}

type PlainNorm = OpOf<"norm"> & { readonly from: Extract<OpOf<"norm">["from"], { of: "rows" }> };

function isPlainNorm(op: LoweredOp | undefined): op is PlainNorm {
  return op?.kind === "norm" && op.from.of === "rows" && op.from.index === undefined;
}
