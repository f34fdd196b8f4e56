import { join } from "node:path";
import type { LoadCellSpec, LoadPlan } from "../../measure/load/plan.ts";
import { recordingName, recordingOf } from "../../measure/load/recorded.ts";
import type { LoadCellResult } from "../../measure/load/session.ts";
import { reason, UsageError } from "../../errors.ts";
import { recordingText } from "../../simulate/compare/recording.ts";
import { outputFile } from "../terminal/output_file.ts";

/** Where `--recording` puts measurements. */
export interface Recorder {
  /** False where no rounds were seen, so that there is nothing to record. */
  add(spec: LoadCellSpec, result: LoadCellResult): boolean;
}

/**
 * Opens a `.jsonl` file for a single measurement, or makes a folder with one file for each measurement.
 *
 * @param of.force recordings that are there are replaced.
 * @throws UsageError where neither can be written, there are more measurements than the file has, or
 * recordings of another run are there.
 */
export function openRecorder(
  path: string | undefined,
  { plan, force }: { readonly plan: LoadPlan; readonly force: boolean },
): Recorder {
  if (path === undefined) return { add: () => true };
  const [first, ...others] = plan.arms.filter(({ again }) => !again);
  const alone = path.endsWith(".jsonl");
  if (alone) {
    const { cases, blocks } = plan;
    if (cases.length > 1 || blocks > 1 || others.length > 0) {
      throw new UsageError(
        `Cannot use "--recording ${path}": a .jsonl file has one load, one policy and one block, not ` +
          `${cases.length}, ${1 + others.length} and ${blocks}; give a folder`,
      );
    }
  } else makeFolder(path, force);
  const file = alone ? outputFile(path, { force }) : undefined;
  return {
    add(spec, result) {
      if (alone && spec.arm.again) return true;
      // The arm that is measured a second time is the first one.
      const policy = spec.arm.again ? first?.label : spec.arm.label;
      const recording = recordingOf(result, policy ?? spec.arm.label);
      if (recording === undefined) return false;
      const own = file ?? outputFile(join(path, recordingName(spec)), { force: true });
      own.write(recordingText(recording));
      return true;
    },
  };
}

function makeFolder(path: string, force: boolean): void {
  let names: string[];
  try {
    Deno.mkdirSync(path, { recursive: true });
    names = [...Deno.readDirSync(path)].map(({ name }) => name);
  } catch (error) {
    throw new UsageError(`Cannot use "--recording ${path}": ${reason(error)}`, { cause: error });
  }
  const recording = names.find((name) => name.endsWith(".jsonl"));
  if (recording === undefined || force) return;
  throw new UsageError(
    `Cannot use "--recording ${path}": it already holds the recording "${recording}"; ` +
      `name another folder or give --force to replace recordings`,
  );
}
