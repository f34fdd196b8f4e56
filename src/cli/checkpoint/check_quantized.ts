import { defined } from "../../defined.ts";
import { drawFrom } from "../../measure/workload/draw.ts";
import { taskPrompt, TASKS } from "../../measure/workload/tasks.ts";
import type { checkQuantized, QuantizedReport } from "../../engine/check/check_quantized.ts";
import { UsageError } from "../../errors.ts";
import { bytesText, percentText } from "../../text/numbers.ts";
import type { Io } from "../terminal/io.ts";
import type { CheckOptions } from "../options/options.ts";
import { statusLine } from "../terminal/progress.ts";
import { warn } from "../terminal/warn.ts";

/** `checkQuantized`, or a fake in tests: the numeric work. */
export type CheckQuantized = typeof checkQuantized;

const SEED = 1;

/** `eyrie check --quantize` without expected values: what quantization costs, on a prompt a task. */
export async function runQuantized(
  options: CheckOptions,
  { check, io }: { check: CheckQuantized; io: Io },
): Promise<number> {
  const { model, draft, draftRopeTheta, quantize, quantizeDraft } = options;
  const { kvDtype, adapter, webgpu, precision } = options;
  if (quantize === undefined) {
    throw new UsageError(
      `Cannot run "check": --expected FILE, --quantize q8|q4 or --draft DIR is needed`,
    );
  }
  const status = statusLine(io.stderr, { shown: !options.quiet });
  const report = await check({
    model: { quantize, quantizeDraft, ...defined({ model, draft, draftRopeTheta }) },
    device: defined({ adapter, webgpu, precision }),
    limits: defined({ kvDtype }),
    prompts: TASKS.map((task, at) => taskPrompt(task, drawFrom(SEED, at))),
    hooks: {
      onProgress: status.load,
      onWarning: (line) => warn(line, { io, status, quiet: options.quiet }),
    },
  }).finally(status.clear);
  io.stdout.write(options.json ? `${quantizedJson(report)}\n` : quantizedTable(report));
  return 0;
}

/** The report for people: one fact a line. */
function quantizedTable(report: QuantizedReport): string {
  const { quantize, quantizeDraft, weightBytes, logits, acceptLength, prompts } = report;
  const { argmaxAgreement: argmax, textAgreement: texts } = report;
  const rows: [string, string][] = [
    [
      "weights",
      `${quantize}${quantizeDraft ? ", draft too" : ""}, ` +
      `${bytesText(weightBytes.quantized)} instead of ${bytesText(weightBytes.plain)}`,
    ],
    ["compared", `${report.positions} positions of ${prompts} prompts and their answers`],
    [
      "logits",
      `off by ${percentText(logits.rms, 2)} of their standard deviation (rms), ` +
      `${percentText(logits.max, 2)} at most`,
    ],
    ["divergence", `${report.klDivergence.toExponential(2)} nats a token`],
    ["argmax", `agrees at ${argmax.same} of ${argmax.total} positions`],
    ["texts", `${texts.same} of ${texts.total} greedy answers are the same`],
  ];
  if (acceptLength) {
    const { plain, quantized, numSteps } = acceptLength;
    const lengths = `${quantized.toFixed(2)} tokens a round instead of ${plain.toFixed(2)}`;
    rows.push(["accepted", `${lengths}, ${numSteps} steps`]);
  }
  return rows.map(([name, text]) => `${name.padEnd(12)}${text}\n`).join("");
}

function quantizedJson(report: QuantizedReport): string {
  const { weightBytes, acceptLength } = report;
  return JSON.stringify({
    quantize: report.quantize,
    quantize_draft: report.quantizeDraft,
    weight_bytes: weightBytes,
    prompts: report.prompts,
    positions: report.positions,
    logit_error: report.logits,
    kl_divergence: report.klDivergence,
    argmax_agreement: report.argmaxAgreement,
    text_agreement: report.textAgreement,
    accept_length: acceptLength
      ? {
        plain: acceptLength.plain,
        quantized: acceptLength.quantized,
        num_steps: acceptLength.numSteps,
      }
      : null,
  });
}
