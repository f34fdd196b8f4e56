import { defined } from "../../defined.ts";
import type { DraftCheck, DraftReport } from "../../engine/check/check_draft.ts";
import { percentText } from "../../text/numbers.ts";
import type { Io } from "../terminal/io.ts";
import type { CheckOptions } from "../options/options.ts";
import { statusLine } from "../terminal/progress.ts";
import { warn } from "../terminal/warn.ts";

/** `checkDraft`, or a fake in tests. */
export type CheckDraft = (options: DraftCheck) => Promise<DraftReport>;

/** `eyrie check --draft`: tokens a round with each rope base, and which one to run with. */
export async function runDraftCheck(
  options: CheckOptions & { readonly draft: string },
  { check, io }: { readonly check: CheckDraft; readonly io: Io },
): Promise<void> {
  const { model, draft, kvDtype, adapter, webgpu, precision, json, quiet } = options;
  const status = statusLine(io.stderr, { shown: !quiet });
  const report = await check({
    model: { draft, ...defined({ model }) },
    device: defined({ adapter, webgpu, precision }),
    limits: defined({ kvDtype }),
    hooks: {
      onProgress: status.load,
      onWarning: (line) => warn(line, { io, status, quiet }),
    },
  }).finally(status.clear);
  io.stdout.write(json ? `${draftJson(report)}\n` : draftTable(report));
}

/** The report for people. */
function draftTable({ draft, theta, measured, best }: DraftReport): string {
  const lines = measured.map((each) => {
    const from = each.theta === theta ? "config.json" : "training code";
    const share = `${percentText(each.acceptanceRate)} of drafts accepted`;
    const rounds = `${each.acceptLength.toFixed(2)} tokens a round in ${each.rounds} rounds`;
    return `rope theta ${each.theta} (${from}): ${rounds}, ${share}`;
  });
  const same = measured.length > 1
    ? "the config's rope theta is no worse"
    : "the config's rope theta is what training code uses";
  const advice = best === theta
    ? `none; ${same}`
    : `run with --draft-rope-theta ${best}, which the draft was trained with`;
  return [`draft ${draft}`, ...lines, `advice: ${advice}`, ""].join("\n");
}

function draftJson({ draft, theta, measured, best }: DraftReport): string {
  return JSON.stringify({
    draft,
    rope_theta: theta,
    best_rope_theta: best,
    measured: measured.map((each) => ({
      rope_theta: each.theta,
      rounds: each.rounds,
      tokens: each.tokens,
      accept_length: each.acceptLength,
      acceptance_rate: each.acceptanceRate,
    })),
  });
}
