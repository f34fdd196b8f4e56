import { defined } from "../../defined.ts";
import type { LoadProgress } from "../../engine/load/load.ts";
import type { RoundsPerSync } from "../../engine/schedule/sync_interval.ts";
import { relaxing } from "../../speculate/accept_thresholds.ts";
import type { Engine, OpenEngine } from "../../engine/engine.ts";
import { type Io, unlessAborted } from "../terminal/io.ts";
import type { EngineOptions } from "../../engine/options.ts";
import { acceptanceOf } from "../options/acceptance_option.ts";
import { drafterOf } from "../options/drafter_option.ts";
import type { OpeningOptions } from "../options/options.ts";
import { statusLine } from "../terminal/progress.ts";
import { speculateOf } from "./speculation.ts";
import { templateWarnings } from "./template.ts";
import { warn } from "../terminal/warn.ts";

/** What a command that generates is given besides its options. */
export interface CommandContext {
  readonly open: OpenEngine;
  readonly io: Io;
  /** Draws a seed where none was given. */
  readonly randomSeed?: () => number;
}

/** The options of a command that say how its engine is opened. */
export type EngineFlags = OpeningOptions & {
  readonly maxBatch?: number;
  readonly maxKvTokens?: number | undefined;
  readonly gpuMemoryUtilization?: number | undefined;
  readonly maxBatchedRows?: number | undefined;
  readonly sloItlMs?: number | undefined;
};

/**
 * Converts the flags to the options of an engine.
 *
 * @param requests.allSteps the depth may change between requests.
 * @param requests.constrained requests may have a grammar.
 * @param requests.predictions requests may have a prediction.
 * @throws UsageError for flags that cannot be used.
 */
function engineOptions(
  options: EngineFlags,
  { allSteps = false, constrained = false, predictions = false, preparePrompts = false }: {
    readonly allSteps?: boolean;
    readonly constrained?: boolean;
    readonly predictions?: boolean;
    readonly preparePrompts?: boolean;
  } = {},
): Required<Omit<EngineOptions, "hooks">> {
  const { model, draft, donor, draftRopeTheta, tokenMap, quantize } = options;
  const drafter = drafterOf(options.drafter);
  const { rejection, relaxed } = acceptanceOf(options.acceptance) ?? {};
  const { adapter, webgpu, precision, costs, contextLength, maxKvTokens, kvDtype } = options;
  const { roundsPerSync, maxBatch = 1, autotune = "on", gpuMemoryUtilization, maxBatchedRows } =
    options;
  return {
    model: defined({
      model,
      draft,
      donor,
      draftRopeTheta,
      tokenMap,
      algorithm: drafter?.name,
      quantize,
      quantizeDraft: options.quantizeDraft || undefined,
      allowSpecial: options.allowSpecial || undefined,
    }),
    device: defined({ adapter, webgpu, precision, costs, autotune }),
    limits: defined({
      maxBatch,
      contextLength,
      maxKvTokens,
      gpuMemoryUtilization,
      maxBatchedRows,
      sloItlMs: options.sloItlMs,
      kvDtype,
      roundsPerSync: roundsPerSync === undefined ? undefined : roundsOf(roundsPerSync),
      constrained: constrained || undefined,
      predictions: predictions || undefined,
      preparePrompts: preparePrompts || undefined,
      prefixCache: options.noPrefixCache ? false : undefined,
      elasticDraft: options.elasticDraft || undefined,
    }),
    speculation: defined({
      speculate: speculateOf(options, { allSteps }),
      ngram: drafter?.ngram,
      rejection,
      acceptThresholds: relaxing(relaxed),
    }),
  };
}

/** Opens the engine with a progress bar on stderr; undefined if Ctrl+C was pressed before it was open. */
export async function openWithProgress(
  options: EngineFlags,
  { open, io }: CommandContext,
  { onProgress, ...requests }: Parameters<typeof engineOptions>[1] & {
    /** Called for each step of the loading too. */
    readonly onProgress?: (progress: LoadProgress) => void;
  } = {},
): Promise<Engine | undefined> {
  const status = statusLine(io.stderr, { shown: !options.quiet });
  const onWarning = (line: string) => warn(line, { io, status, quiet: options.quiet });
  const opening = open({
    ...engineOptions(options, requests),
    hooks: {
      signal: io.signal,
      onProgress: (progress) => {
        status.load(progress);
        onProgress?.(progress);
      },
      onWarning,
    },
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
