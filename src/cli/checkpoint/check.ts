import { defined } from "../../defined.ts";
import type { checkModel, CheckReport } from "../../engine/check/check.ts";
import { aligned } from "../terminal/aligned.ts";
import type { Io } from "../terminal/io.ts";
import { statusLine } from "../terminal/progress.ts";
import { type CheckDraft, runDraftCheck } from "./check_draft.ts";
import { type CheckQuantized, runQuantized } from "./check_quantized.ts";
import type { CheckOptions } from "../options/options.ts";
import { warn } from "../terminal/warn.ts";

/** `checkModel`, or a fake in tests: the numeric work. */
export type CheckModel = typeof checkModel;

/**
 * `eyrie check`: returns exit code 1 when a tensor exceeds the tolerance. If the values differ, they are compared once
 * more with the model as transformers has it after a cast, see `withRoundedBuffers`.
 */
export async function runCheck(
  options: CheckOptions,
  { check, checkQuantized, checkDraft, io }: {
    check: CheckModel;
    checkQuantized: CheckQuantized;
    checkDraft: CheckDraft;
    io: Io;
  },
): Promise<number> {
  const { expected, draft, quantize, quantizeDraft } = options;
  if (expected !== undefined) return await runExpected({ ...options, expected }, { check, io });
  if (quantize === undefined && draft !== undefined && !quantizeDraft) {
    await runDraftCheck({ ...options, draft }, { check: checkDraft, io });
    return 0;
  }
  return await runQuantized(options, { check: checkQuantized, io });
}

async function runExpected(
  options: CheckOptions & { readonly expected: string },
  { check, io }: { check: CheckModel; io: Io },
): Promise<number> {
  const { model, quantize, kvDtype, adapter, webgpu, precision, expected, tolerance } = options;
  const status = statusLine(io.stderr, { shown: !options.quiet });
  const compared = (roundedBuffers: boolean) =>
    check({
      expected,
      tolerance,
      roundedBuffers,
      ...defined({ model, quantize, kvDtype, adapter, webgpu, precision }),
      onProgress: status.load,
      // The first comparison has shown the warnings already.
      onWarning: (line) => roundedBuffers || warn(line, { io, status, quiet: options.quiet }),
    }).finally(status.clear);
  const exact = await compared(false);
  // A cast is the most frequent cause that is no fault of Eyrie or the expected values. It is not tried where the run
  // itself rounds on purpose.
  const mayBeCast = !exact.ok && quantize === undefined && precision !== "f16" &&
    (kvDtype ?? "f32") === "f32";
  // If there is no memory to load the model once more, the first report is kept.
  const rounded = mayBeCast ? await compared(true).catch(() => undefined) : undefined;
  const found = rounded?.ok
    ? { report: rounded, roundedBuffers: true }
    : { report: exact, roundedBuffers: false };
  io.stdout.write(options.json ? `${checkJson(found, tolerance)}\n` : checkTable(found, tolerance));
  return found.report.ok ? 0 : 1;
}

/** What was found, and whether the target's buffers were rounded to bf16 for it. */
interface Found {
  readonly report: CheckReport;
  readonly roundedBuffers?: boolean;
}

/** What a verdict says besides where only the rounded model has the expected values. */
const CAST = " with rope's frequencies and\n" +
  "Gemma's embedding scale rounded to bf16, as a cast of the model rounds them (model.to)";

/** The report for people: a table, agreement, a verdict. */
export function checkTable({ report, roundedBuffers }: Found, tolerance: number): string {
  const rows = [
    ["tensor", "max abs", "max rel", "of std", ""],
    ...report.tensors.map(({ name, maxAbs, maxRel, relToStd, ok }) => [
      name,
      maxAbs.toExponential(2),
      maxRel.toExponential(2),
      relToStd.toExponential(2),
      ok ? "ok" : "PAST TOLERANCE",
    ]),
  ];
  const { argmaxAgreement, greedyAgreement } = report;
  const agreement = [`argmax agrees at ${share(argmaxAgreement)} positions`];
  if (greedyAgreement !== undefined) {
    agreement.push(`greedy agrees at ${share(greedyAgreement)} tokens`);
  }
  const verdict = report.ok
    ? `passed: every error is within ${tolerance} standard deviations` +
      (roundedBuffers ? CAST : "")
    : `FAILED: tolerance is ${tolerance} standard deviations`;
  return [aligned(rows, "right"), "", ...agreement, verdict, ""].join("\n");
}

function share({ same, total }: CheckReport["argmaxAgreement"]): string {
  return `${same} of ${total}`;
}

function checkJson({ report, roundedBuffers }: Found, tolerance: number): string {
  return JSON.stringify({
    ok: report.ok,
    tolerance,
    tensors: report.tensors.map(({ name, maxAbs, maxRel, relToStd, ok }) => ({
      name,
      max_abs: maxAbs,
      max_rel: maxRel,
      rel_to_std: relToStd,
      ok,
    })),
    argmax_agreement: report.argmaxAgreement,
    greedy_agreement: report.greedyAgreement ?? null,
    rounded_buffers: roundedBuffers ?? false,
  });
}
