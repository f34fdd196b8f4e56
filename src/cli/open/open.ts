import { defined } from "../../defined.ts";
import type { LoadProgress } from "../../engine/load/load.ts";
import type { RoundsPerSync } from "../../engine/schedule/sync_interval.ts";
import { relaxing } from "../../speculate/accept_thresholds.ts";
import type { Engine, OpenEngine } from "../../engine/engine.ts";
import { type Io, unlessAborted } from "../terminal/io.ts";
import type { OpeningOptions } from "../options/options.ts";
import { statusLine } from "../terminal/progress.ts";
import { ngramOf, speculateOf } from "./speculation.ts";
import { templateWarnings } from "./template.ts";
import { warn } from "../terminal/warn.ts";

/** What a command that generates is given besides its options. */
export interface CommandContext {
  readonly open: OpenEngine;
  readonly io: Io;
  /** Draws a seed where none was given. */
  readonly randomSeed?: () => number;
}

/** Opens the engine with a progress bar on stderr; undefined when Ctrl+C came first. */
export async function openWithProgress(
  options: OpeningOptions & {
    readonly maxBatch?: number;
    readonly maxKvTokens?: number | undefined;
  },
  { open, io }: CommandContext,
  { constrained = false, predictions = false, onProgress, ...speculating }: {
    readonly allSteps?: boolean;
    /** Requests may have a grammar. */
    readonly constrained?: boolean;
    /** Requests may have a prediction. */
    readonly predictions?: boolean;
    /** Hears of the loading too. */
    readonly onProgress?: (progress: LoadProgress) => void;
  } = {},
): Promise<Engine | undefined> {
  const {
    model,
    draft,
    draftRopeTheta,
    tokenMap,
    algorithm,
    adapter,
    webgpu,
    precision,
    contextLength,
  } = options;
  const { maxBatch = 1, maxKvTokens, quantize, quantizeDraft, kvDtype, roundsPerSync } = options;
  const { autotune = "on", acceptSingle, acceptAcc } = options;
  const acceptThresholds = relaxing({ single: acceptSingle, acc: acceptAcc });
  const status = statusLine(io.stderr, { shown: !options.quiet });
  const onWarning = (line: string) => warn(line, { io, status, quiet: options.quiet });
  const { ngramMin, ngramMax } = options;
  const matches = algorithm === "NGRAM" || algorithm === "HYBRID";
  if (!matches && (ngramMin ?? ngramMax) !== undefined) {
    onWarning(
      "--ngram-min and --ngram-max are not used: they need --speculative-algorithm NGRAM or HYBRID",
    );
  }
  const opening = open({
    maxBatch,
    speculate: speculateOf(options, speculating),
    ...defined({ model, draft, draftRopeTheta, tokenMap, algorithm, quantize }),
    ...defined({ kvDtype, adapter, webgpu, precision }),
    ...defined({ costs: options.costs, contextLength, maxKvTokens }),
    ...matches ? { ngram: ngramOf(options) } : {},
    ...quantizeDraft ? { quantizeDraft } : {},
    ...options.blockVerification
      ? { rejection: "block" }
      : options.rejection
      ? { rejection: "token" }
      : {},
    autotune,
    ...roundsPerSync === undefined ? {} : { roundsPerSync: roundsOf(roundsPerSync) },
    ...constrained ? { constrained } : {},
    ...predictions ? { predictions } : {},
    ...acceptThresholds ? { acceptThresholds } : {},
    ...options.allowSpecial ? { allowSpecial: true } : {},
    ...options.noPrefixCache ? { prefixCache: false } : {},
    ...options.elasticDraft ? { elasticDraft: true } : {},
    signal: io.signal,
    onProgress: (progress) => {
      status.load(progress);
      onProgress?.(progress);
    },
    onWarning,
  });
  try {
    const engine = await unlessAborted(opening, io.signal);
    if (engine === undefined) return undefined;
    if (engine.info.costsLine !== undefined && !options.quiet) {
      status.clear();
      io.stderr.write(`${engine.info.costsLine}\n`);
    }
    for (const line of templateWarnings(options, engine.info)) onWarning(line);
    return engine;
  } finally {
    status.clear();
  }
}

/** A choice of `--rounds-per-sync`. */
export function roundsOf(choice: string): RoundsPerSync {
  return choice === "auto" ? choice : Number(choice);
}
