import { adjust, maskWords } from "../../kernels/sample/adjust.ts";
import { logprobs, logprobWords } from "../../kernels/sample/logprobs.ts";
import { tuning } from "../../src/gpu/tuning.ts";
import { packRows } from "../../tests/kernels/rows.ts";
import type { MicroCase } from "../case.ts";

const VOCAB = 128_256;
const COUNTS = [1, 8];

function adjustCase(kind: "masks" | "penalties", count: number): MicroCase {
  return {
    name: `adjust/${kind}/${VOCAB}/${count}`,
    make(from) {
      const { rowLanes: lanes } = tuning(from.gpu.info.software, from.gpu.limits);
      const rows = Array.from({ length: count }, (_, i) => ({ position: i, cell: i, base: i + 1 }));
      const shape = { count, perSlot: count, vocab: VOCAB, stride: VOCAB, lanes };
      const masks = from.random(count * maskWords(VOCAB));
      const penalties = {
        penalties: from.words(new Uint32Array(Float32Array.of(1.1, 0.5, 0.5, 1).buffer)),
        counts: from.random(VOCAB),
        bias: from.random(VOCAB),
      };
      return [[adjust({
        logits: from.random(count * VOCAB),
        adjusted: from.random(count * VOCAB),
        rows: from.words(new Uint32Array(packRows(rows))),
        ...kind === "masks" ? { masks } : { penalties },
      }, shape)]];
    },
  };
}

function logprobsCase(most: number, count: number): MicroCase {
  return {
    name: `logprobs/${most}/${VOCAB}/${count}`,
    make(from) {
      const { rowLanes: lanes } = tuning(from.gpu.info.software, from.gpu.limits);
      const tokens = Array.from({ length: count }, (_, i) => i * 1000);
      const buffers = {
        logits: from.random(count * VOCAB),
        results: from.words(Uint32Array.of(count, ...tokens)),
        logprobs: from.random(count * logprobWords(most)),
      };
      return [[logprobs(buffers, {
        batch: 1,
        tokens: count,
        resultWords: 1 + count,
        most,
        vocab: VOCAB,
        stride: VOCAB,
        kept: { kind: "chain", rows: count } as const,
        lanes,
      })]];
    },
  };
}

/** The extra kernels of a round in which masks, penalties or log-probabilities are asked for. */
export function adjustCases(): MicroCase[] {
  return COUNTS.flatMap((count) => [
    ...(["masks", "penalties"] as const).map((kind) => adjustCase(kind, count)),
    ...[0, 5, 20].map((most) => logprobsCase(most, count)),
  ]);
}
