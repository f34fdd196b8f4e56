import type { Edits } from "../edits.ts";
import type { Rewrite } from "../rewrite.ts";

/** If heads are not normed, the matmul's epilogue adds the bias, rotates q and k, and stores k and v. */
export const headsInMatmul: Rewrite = {
  name: "heads_in_matmul",
  apply: (edits) => placed(edits, () => true),
  // With several shards the two outputs of a rope pair are not half a row apart, and a bias has another row order.
  required: (edits) => placed(edits, ({ shards, bias }) => shards > 1 || bias),
};

function placed(
  edits: Edits,
  where: (heads: { readonly shards: number; readonly bias: boolean }) => boolean,
): void {
  for (const store of edits.ops) {
    if (store.kind !== "store_heads" || store.norm || store.qkv.parts > 1) continue;
    const made = edits.producer(store.qkv, store, "matmul");
    if (!made) continue;
    const { epilogue } = made;
    const bias = epilogue.of === "bias" ? epilogue.values : undefined;
    if (epilogue.of !== "store" && !bias) continue;
    const shards = made.matrix.shards.length;
    if (!where({ shards, bias: bias !== undefined })) continue;
    edits.replace(made, { ...made, out: store.out, epilogue: { of: "heads", bias, store } });
    edits.remove(store);
  }
}
