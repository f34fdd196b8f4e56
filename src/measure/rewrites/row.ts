import type { RewriteSamples, RewriteShape } from "../../engine/check/rewrites.ts";
import type { Subject } from "../runner.ts";
import { median, medianRatio } from "../statistics.ts";

/** The format of rows in files. Its number changes when a field changes its meaning. */
const REWRITES_FORMAT = "eyrie-rewrites-1";

/**
 * A forward with all rewrites against the same without one. Field names are those of the files; times are in
 * milliseconds.
 */
export interface RewriteRow {
  readonly format: typeof REWRITES_FORMAT;
  readonly model: string;
  readonly draft: string | null;
  readonly device: string;
  readonly webgpu: "builtin" | "dawn";
  /** A round's verification until the target's choice, or a chunk of a prompt without the head. */
  readonly kind: RewriteShape["kind"];
  /** Tokens stored before. */
  readonly context: number;
  /** Sequences. */
  readonly batch: number;
  /** Verify rows of each sequence, or tokens of the chunk. */
  readonly rows: number;
  /** The rewrite that is turned off; "all": all of them. */
  readonly rewrite: string;
  /** Whether sums are in another order without it. */
  readonly changes_bits: boolean;
  /** Device time by timestamps, or the host's clock where the adapter has none. */
  readonly clock: "device" | "host";
  /** Pairs of measurements. */
  readonly runs: number;
  /** Medians. */
  readonly with_ms: number;
  readonly without_ms: number;
  /** Median of without over with of each pair; its 95 % interval is null for fewer than 6 pairs. */
  readonly ratio: number;
  readonly ratio_low: number | null;
  readonly ratio_high: number | null;
}

/** The row of these samples. */
export function rewriteRow(
  { rewrite, changesBits, clock, withMs, withoutMs }: RewriteSamples,
  { subject, shape }: { readonly subject: Subject; readonly shape: RewriteShape },
): RewriteRow {
  const { model, draft = null, device, webgpu = "builtin" } = subject;
  const { context, batch, rows } = shape.kind === "round"
    ? shape.point
    : { context: 0, batch: 1, rows: shape.rows };
  const { ratio, low, high } = medianRatio(
    withMs.map((ms, i) => Math.log((withoutMs[i] ?? NaN) / ms)),
  );
  return {
    format: REWRITES_FORMAT,
    model,
    draft,
    device,
    webgpu,
    kind: shape.kind,
    context,
    batch,
    rows,
    rewrite,
    changes_bits: changesBits,
    clock,
    runs: withMs.length,
    with_ms: median(withMs),
    without_ms: median(withoutMs),
    ratio,
    ratio_low: low,
    ratio_high: high,
  };
}
