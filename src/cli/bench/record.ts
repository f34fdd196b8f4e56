import { join } from "node:path";
import type { LoadCellSpec, LoadPlan } from "../../bench/load/plan.ts";
import { recordingName, recordingOf } from "../../bench/load/recorded.ts";
import type { LoadCellResult } from "../../bench/load/session.ts";
import { reason, UsageError } from "../../errors.ts";
import { recordingText } from "../../simulate/compare/recording.ts";
import { checkWritable, writeNamed } from "./files.ts";

/** Where `--record` puts measurements. */
export interface Recorder {
  /** False where no rounds were seen, so that there is nothing to record. */
  add(spec: LoadCellSpec, result: LoadCellResult): boolean;
}

/**
 * A file of a single measurement, or a folder with a file for each, which is made.
 *
 * @throws UsageError where neither can be written, or there are more measurements than the file has.
 */
export function openRecorder(path: string | undefined, plan: LoadPlan): Recorder {
  if (path === undefined) return { add: () => true };
  const [first, ...others] = plan.arms.filter(({ again }) => !again);
  const alone = path.endsWith(".jsonl");
  if (alone) {
    const { cases, blocks } = plan;
    if (cases.length > 1 || blocks > 1 || others.length > 0) {
      throw new UsageError(
        `Cannot use "--record ${path}": a file has one load, policy and block, not ` +
          `${cases.length}, ${1 + others.length} and ${blocks}; give a folder`,
      );
    }
    checkWritable(path);
  } else makeFolder(path);
  return {
    add(spec, result) {
      if (alone && spec.arm.again) return true;
      // The one that is measured again is the first.
      const policy = spec.arm.again ? first?.label : spec.arm.label;
      const recording = recordingOf(result, policy ?? spec.arm.label);
      if (recording === undefined) return false;
      writeNamed(alone ? path : join(path, recordingName(spec)), recordingText(recording));
      return true;
    },
  };
}

function makeFolder(path: string): void {
  try {
    Deno.mkdirSync(path, { recursive: true });
  } catch (error) {
    throw new UsageError(`Cannot use "--record ${path}": ${reason(error)}`, { cause: error });
  }
}
