import type { Reading } from "../../../speculate/costs/fit.ts";
import { packedRows } from "../../../speculate/costs/cost_buckets.ts";
import { chain } from "../../../speculate/round_shape.ts";
import { GREEDY } from "../../../speculate/sampling.ts";
import { PAGE } from "../../../model/device_layout.ts";
import { rowBucket } from "../../device/buckets.ts";
import { tablePages } from "../../device/buffers.ts";
import type { Runner } from "../../device/runner.ts";
import { openSequence } from "../../device/single_sequence.ts";
import { maxCells } from "../../device/sequence.ts";
import { type Lanes, promptIds, WINDOW } from "./lanes.ts";
import type { ProgramTimer } from "../program_timer.ts";

/** Something that is run to see what it takes. */
export interface Probe {
  /** For the list of what was left out. */
  readonly name: string;
  /** Priority, the most important first; a probe below 0 is always measured. */
  readonly rank: number;
  /** Tokens its sequences have stored; probes of one context run one after the other. */
  readonly context: number;
  /** Undefined where slots or pages are short. */
  run(): Promise<readonly Reading[] | undefined>;
}

export interface ProbeParts {
  readonly runner: Runner;
  readonly lanes: Lanes;
  readonly timer: ProgramTimer;
}

/** A round as it can be measured. */
export interface ProbedRound {
  readonly batch: number;
  /** Draft levels. */
  readonly steps: number;
  readonly context: number;
}

/**
 * Times one round by `runner.rounds`, and its parts on the device: from the same round if the runner takes device
 * times, else by running its programs once more by themselves. The host's part is the rest of the wall time.
 */
export function roundProbe(
  { runner, lanes, timer }: ProbeParts,
  { batch, steps, context }: ProbedRound,
  rank: number,
): Probe {
  const shape = chain(steps);
  return {
    name: `rounds of ${batch} with ${steps} steps after ${context} tokens`,
    rank,
    context,
    async run() {
      const sequences = await lanes.at(batch, context, 3 * (steps + 1));
      if (sequences === undefined) return undefined;
      const { programs } = runner;
      const parts = await programs.round({ ...shape, batch, cells: maxCells(sequences) });
      // On hardware the host's part is most of a small round, and rounds that follow each other find their
      // commands recorded: the second of two is measured.
      if (!runner.gpu.info.software) await runner.rounds(sequences, { shape, count: 1 });
      const started = performance.now();
      const [result] = await runner.rounds(sequences, { shape, count: 1 });
      const wall = performance.now() - started;
      const stamped = result !== undefined && result.verifyMs > 0;
      const [draft = 0, verify = 0, extend = 0] = stamped
        ? [result.draftMs, result.verifyMs, result.extendMs]
        : await timer.time([parts.draft, parts.verify, parts.extend]);
      const at = { batch, cells: batch * (context + WINDOW / 2) };
      const rows = batch * (steps + 1);
      return [
        { part: "verify", at: rows, ...at, ms: verify },
        { part: "host", at: 0, ...at, ms: wall - draft - verify - extend },
        ...steps > 0 && parts.extend.steps.length > 0
          ? [{ part: "extend", at: rows, ...at, ms: extend } as const]
          : [],
        ...steps > 1 && parts.draft.steps.length > 0
          ? [{ part: "level", at: batch, ...at, ms: draft / (steps - 1) } as const]
          : [],
      ];
    },
  };
}

/**
 * What packing adds to a round that verifies half of its drafts, and to its host: such a round less one that verifies
 * all, both without the device times of their verify rows. Undefined if no round is packed.
 */
export function packingProbe(
  { runner, lanes, timer }: ProbeParts,
  { batch, steps, context }: ProbedRound,
  rank: number,
): Probe {
  const shape = chain(steps);
  const drafts = Math.floor(batch * steps / 2);
  const packed = packedRows(batch + drafts, { batch, depth: steps });
  const intercepts = Array<number>(steps).fill(0);
  const half = runner.ranks
    ? { verify: { drafts, slope: 1, intercepts, minConfidence: 0 } }
    : { depths: Array.from({ length: batch }, (_, i) => (steps + i % 2) >> 1) };
  /** Milliseconds of a round besides its forwards over the verify rows. */
  const beside = async (packed: number | undefined) => {
    const sequences = await lanes.at(batch, context, 3 * (steps + 1));
    if (sequences === undefined) return undefined;
    const kind = { ...shape, batch, cells: maxCells(sequences) };
    const parts = await runner.programs.round(
      packed === undefined ? kind : { ...kind, packed, allocates: runner.ranks },
    );
    const asked = { shape, count: 1, ...packed === undefined ? {} : half };
    if (!runner.gpu.info.software) await runner.rounds(sequences, asked);
    const started = performance.now();
    const [result] = await runner.rounds(sequences, asked);
    const wall = performance.now() - started;
    const stamped = result !== undefined && result.verifyMs > 0;
    const [verify = 0, extend = 0] = stamped
      ? [result.verifyMs, result.extendMs]
      : await timer.time([parts.verify, parts.extend]);
    return wall - verify - extend;
  };
  return {
    name: `packing rounds of ${batch} with ${steps} steps`,
    rank,
    context,
    async run() {
      if (!runner.programs.packs || packed === undefined) return undefined;
      const [whole, half] = [await beside(undefined), await beside(packed)];
      if (whole === undefined || half === undefined) return undefined;
      const cells = batch * (context + WINDOW / 2);
      return [{ part: "packing", at: 0, batch, cells, ms: half - whole }];
    },
  };
}

/** The draft's prefill of the last `lag` tokens of each of `batch` sequences: wall time. */
export function catchUpProbe(
  { runner, lanes }: ProbeParts,
  { batch, lag, context }: {
    readonly batch: number;
    readonly lag: number;
    readonly context: number;
  },
  rank: number,
): Probe {
  return {
    name: `catching up on ${lag} tokens of ${batch}`,
    rank,
    context,
    async run() {
      const sequences = await lanes.at(batch, context, 0);
      if (sequences === undefined) return undefined;
      for (const sequence of sequences) sequence.draftStored = sequence.stored - lag;
      const started = performance.now();
      await runner.catchUp(sequences);
      const ms = performance.now() - started;
      return [{ part: "catchUp", at: batch * lag, batch, cells: batch * context, ms }];
    },
  };
}

/** A prompt's prefill, in chunks of `chunkRows`: wall time, reported for the rows that its program has. */
export function prefillProbe(
  { runner, lanes }: ProbeParts,
  { tokens, chunkRows }: { readonly tokens: number; readonly chunkRows: number },
  rank: number,
): Probe {
  return {
    name: `a prompt of ${tokens} tokens`,
    rank,
    context: 0,
    async run() {
      lanes.close();
      if (tokens + 1 > tablePages(runner.capacity) * PAGE) return undefined;
      using sequence = openSequence(runner, promptIds(runner, tokens));
      if (!runner.reserve(sequence, tokens + 1)) return undefined;
      runner.setSampling(sequence, GREEDY);
      const started = performance.now();
      while (sequence.stored < tokens) {
        const to = Math.min(tokens, sequence.stored + chunkRows);
        await runner.prefill([{ sequence, to }]);
      }
      const ms = performance.now() - started;
      const rows = tokens <= chunkRows ? rowBucket(tokens) : tokens;
      return [{ part: "prefill", at: rows, batch: 1, cells: tokens, ms }];
    },
  };
}
