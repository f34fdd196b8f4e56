import { verifiesRows } from "../../../../kernels/norm/rms_norm.ts";
import type { Rewrite } from "../rewrite.ts";

/** Storage buffers of a norm that writes rows of chains and keeps its input, and more of them if it stores scales. */
const BUFFERS = 8;
const SCALE_BUFFERS = 2;

/** The norm of the embeddings writes the `Row`s of a verify forward before it reads them. */
export const verifyInNorm: Rewrite = {
  name: "verify_in_norm",
  apply(edits, { tuning: { storageBuffers }, scales }) {
    const verify = edits.ops.find((op) => op.kind === "verify_rows");
    const norm = edits.ops.find((op) => op.kind === "norm" && op.from.of === "tokens");
    if (verify?.kind !== "verify_rows" || norm?.kind !== "norm") return;
    if (norm.from.of !== "tokens" || norm.from.rows !== verify.rows) return;
    const buffers = BUFFERS + (scales ? SCALE_BUFFERS : 0);
    if (!verifiesRows(norm.from.table) || buffers > storageBuffers) return;
    edits.remove(verify);
    edits.replace(norm, { ...norm, from: { ...norm.from, verified: verify } });
  },
};
