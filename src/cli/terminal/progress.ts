import type { CompileProgress } from "../../engine/device/first_runs.ts";
import type { LoadProgress } from "../../engine/load/load.ts";
import type { DownloadProgress } from "../../hub/download.ts";
import { bytesText } from "../../text/numbers.ts";
import type { TextSink } from "./io.ts";
import { visible } from "./visible.ts";

const BAR_WIDTH = 24;
/** Milliseconds between two drawings: often enough to look smooth, rarely enough to cost nothing. */
const REDRAW_MS = 80;
const CLEAR_LINE = "\r\x1b[K";
/** A rate of less time than this says nothing. */
const MIN_MS = 20;

/** One line, never wider than the terminal: `target [####----] 12.3/45.6 MB, 1.2 GB/s`. */
export function progressLine(
  progress: LoadProgress,
  { elapsedMs, columns }: { elapsedMs: number; columns: number },
): string {
  const { done, total, unit } = progress;
  if (unit === "kernels") return compileLine(progress, columns);
  const rate = elapsedMs >= MIN_MS ? `, ${bytesText(done / elapsedMs * 1000)}/s` : "";
  return barLine(progress, {
    numbers: `${bytesText(done)} of ${bytesText(total)}${rate}`,
    columns,
  });
}

/** `org/name [####----] 1.2 of 8.0 GB, 45.6 MB/s, 3 min left`: by what was downloaded since it began. */
export function downloadLine(
  progress: DownloadProgress,
  { elapsedMs, columns }: { elapsedMs: number; columns: number },
): string {
  const { bytes, total, before } = progress;
  const perMs = elapsedMs > 0 ? Math.max(0, bytes - before) / elapsedMs : 0;
  const left = perMs > 0 && bytes < total ? `, ${duration((total - bytes) / perMs)} left` : "";
  const rate = elapsedMs > 0 ? `, ${bytesText(perMs * 1000)}/s` : "";
  return barLine({ ...progress, done: bytes }, {
    numbers: `${bytesText(bytes)} of ${bytesText(total)}${rate}${left}`,
    columns,
  });
}

/** Label, bar and numbers; without the bar where the terminal is narrow. */
function barLine(
  { label, done, total }: Pick<LoadProgress, "label" | "done" | "total">,
  { numbers, columns }: { numbers: string; columns: number },
): string {
  const share = total > 0 ? Math.max(0, Math.min(1, done / total)) : 0;
  const filled = Math.floor(share * BAR_WIDTH);
  const bar = `[${"#".repeat(filled)}${"-".repeat(BAR_WIDTH - filled)}]`;
  const line = `${label} ${bar} ${numbers}`;
  if (line.length < columns) return line;
  return `${label} ${numbers}`.slice(0, Math.max(0, columns - 1));
}

/** `compiling kernels for this GPU, once [####----] 12 of 31` */
function compileLine({ done, total }: CompileProgress, columns: number): string {
  const counted = { label: "compiling kernels for this GPU, once", done, total };
  return barLine(counted, { numbers: `${done} of ${total}`, columns });
}

/**
 * `prompt [####----] 8192 of 32768 tokens, 9650 tokens/s, 3 s left`: the rate is of what was stored since
 * `before`; prompts get slower as they get longer.
 */
export function promptLine(
  { done, total, before }: { done: number; total: number; before: number },
  { elapsedMs, columns }: { elapsedMs: number; columns: number },
): string {
  const perMs = elapsedMs > 0 ? (done - before) / elapsedMs : 0;
  const rate = perMs > 0
    ? `, ${(perMs * 1000).toFixed(0)} tokens/s, ${duration((total - done) / perMs)} left`
    : "";
  return barLine({ label: "prompt", done, total }, {
    numbers: `${done} of ${total} tokens${rate}`,
    columns,
  });
}

/** How far a sweep is. */
export interface BenchProgress {
  readonly done: number;
  readonly total: number;
  /** What is being measured. */
  readonly text: string;
}

/** `bench [####----] 12 of 40, 3 min left, batch 2, 7 steps`, never wider than the terminal. */
export function benchLine(
  { done, total, text }: BenchProgress,
  { elapsedMs, columns }: { elapsedMs: number; columns: number },
): string {
  const filled = total > 0 ? Math.floor(done / total * BAR_WIDTH) : 0;
  const bar = `[${"#".repeat(filled)}${"-".repeat(BAR_WIDTH - filled)}] `;
  const count = total > 0 ? `${done} of ${total}, ` : "";
  const left = done > 0 ? `${duration(elapsedMs / done * (total - done))} left, ` : "";
  const line = `bench ${bar}${count}${left}${text}`;
  if (line.length < columns) return line;
  return `bench ${count}${left}${text}`.slice(0, Math.max(0, columns - 1));
}

/** Time for people: `40 s`, `3 min`, `1 h 20 min`. */
export function duration(ms: number): string {
  const seconds = Math.ceil(ms / 1000);
  if (seconds < 100) return `${seconds} s`;
  const minutes = Math.ceil(seconds / 60);
  return minutes < 100 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** A status line on a terminal that is redrawn in place; draws nothing anywhere else. */
export interface StatusLine {
  load(progress: LoadProgress): void;
  download(progress: DownloadProgress): void;
  /** @param compiling kernels that the prompt waits for. */
  prefill(done: number, total: number, compiling?: CompileProgress): void;
  bench(progress: BenchProgress): void;
  /** Requests of a batch. */
  count(done: number, total: number, note: string): void;
  /** Policies that have run in a simulated world. */
  simulate(world: string, done: number, total: number): void;
  /** Wipes the line before other text is written. */
  clear(): void;
}

/** Writes a line in the place of what a status line may have drawn on the same terminal. */
export function writeLine(output: TextSink, line: string): void {
  output.write(`${output.isTerminal ? CLEAR_LINE : ""}${line}\n`);
}

/** Draws on `output` when it is a terminal and `shown`. */
export function statusLine(
  output: TextSink,
  { shown, now = () => performance.now() }: { shown: boolean; now?: () => number },
): StatusLine {
  const { draw, clear } = drawing(output, { shown, now });
  let label = "";
  let startedAt = 0;
  /** The prompt that is being stored. */
  let prompt: { readonly before: number; readonly at: number; done: number } | undefined;
  const place = (of: string) => {
    if (of !== label) {
      label = of;
      startedAt = now();
    }
    return { elapsedMs: now() - startedAt, columns: output.columns() };
  };
  return {
    load(progress) {
      const at = place(progress.label);
      draw(() => progressLine(progress, at), progress.done === progress.total);
    },
    download(progress) {
      const at = place(progress.label);
      draw(() => downloadLine(progress, at), false);
    },
    prefill(done, total, compiling) {
      if (compiling && compiling.done < compiling.total) {
        prompt = undefined; // its rate counts from where the kernels are there
        draw(() => compileLine(compiling, output.columns()), true);
        return;
      }
      if (prompt === undefined || done < prompt.done) prompt = { before: done, at: now(), done };
      prompt.done = done;
      const { before, at } = prompt;
      const time = { elapsedMs: now() - at, columns: output.columns() };
      if (done < total) draw(() => promptLine({ done, total, before }, time), false);
      else prompt = undefined;
    },
    count(done, total, note) {
      draw(() => `${done} of ${total} requests, ${note}`, done === total);
    },
    simulate(world, done, total) {
      draw(() => `${world}: ${done} of ${total} policies`, false);
    },
    bench(progress) {
      const at = place("bench");
      draw(() => benchLine(progress, at), true);
    },
    clear,
  };
}

/** `draw` redraws the line, not too often unless it must; `clear` wipes what was drawn. */
function drawing(output: TextSink, { shown, now }: { shown: boolean; now: () => number }) {
  let drawn = false;
  let drawnAt = -Infinity;
  return {
    draw(line: () => string, must: boolean): void {
      if (!shown || !output.isTerminal || (!must && now() - drawnAt < REDRAW_MS)) return;
      drawnAt = now();
      drawn = true;
      output.write(`${CLEAR_LINE}${visible(line())}`);
    },
    clear(): void {
      if (drawn) output.write(CLEAR_LINE);
      drawn = false;
      drawnAt = -Infinity;
    },
  };
}
