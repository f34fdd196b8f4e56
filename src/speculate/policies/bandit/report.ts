import type { PolicyReport } from "../../policy.ts";

/** A batch size of the report. */
export interface BucketArms {
  readonly batchSize: number;
  readonly arms: readonly ArmOf[];
}

interface ArmOf {
  readonly steps: number;
  readonly rounds: number;
  /** Tokens a millisecond. */
  readonly rate: number | undefined;
}

/** For each batch size with rounds, the arms that were played and their estimated rates. */
export function armReport(buckets: readonly BucketArms[]): PolicyReport {
  const played = buckets
    .map(({ batchSize, arms }) => ({ batchSize, arms: arms.filter(({ rounds }) => rounds > 0) }))
    .filter(({ arms }) => arms.length > 0);
  const json = {
    batches: played.map(({ batchSize, arms }) => ({
      batch_size: batchSize,
      arms: arms.map(({ steps, rounds, rate }) => (
        { num_steps: steps, rounds, tokens_per_second: perSecond(rate) }
      )),
    })),
  };
  const texts = played.map(({ batchSize, arms }) => {
    const each = arms.map(({ steps, rounds }) => `${steps} steps ${rounds}`);
    return `to batch ${batchSize}: ${each.join(", ")}`;
  });
  return { json, rows: [["rounds", texts.join("; ") || "none"]] };
}

function perSecond(rate: number | undefined): number | null {
  return rate !== undefined && Number.isFinite(rate) ? rate * 1000 : null;
}
