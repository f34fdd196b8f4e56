import { reason, UsageError } from "../../errors.ts";
import type { AcceptanceModel } from "../../simulate/acceptance/model.ts";
import { replayed } from "../../simulate/acceptance/replay.ts";
import {
  knowsRequests,
  readRecording,
  type Recording,
  RecordingError,
  streamsOf,
} from "../../simulate/compare/recording.ts";
import { readNamed } from "../bench/files.ts";

/** A recording and its file. */
export interface Recorded {
  readonly path: string;
  readonly recording: Recording;
}

/** Reads the file. @throws UsageError */
export function readRecorded(path: string, flag = "--recording"): Recorded {
  const text = readNamed(path);
  try {
    return { path, recording: readRecording(text) };
  } catch (error) {
    if (!(error instanceof RecordingError)) throw error;
    throw new UsageError(`Cannot use "${flag} ${path}": ${reason(error)}`, { cause: error });
  }
}

/** Acceptance for other requests than the recorded ones: each begins anywhere in the recording. */
function recordedAcceptance({ path, recording }: Recorded): AcceptanceModel {
  return replayed(streamsOf(recording), { name: `replay:${path}` });
}

/** Acceptance for the recorded requests: each replays its own rounds, as far as they are known. */
export function ownAcceptance({ path, recording }: Recorded): AcceptanceModel {
  return replayed(streamsOf(recording), { name: `replay:${path}`, own: knowsRequests(recording) });
}

/** The model of `--simulate-acceptance replay:FILE`. @throws UsageError */
export function replayOf(path: string): AcceptanceModel {
  return recordedAcceptance(readRecorded(path, "--simulate-acceptance replay"));
}
