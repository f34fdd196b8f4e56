import type { LoadProgress } from "../engine/load.ts";
import type { Output } from "./io.ts";

const BAR_WIDTH = 24;
/** Milliseconds between two drawings: quick enough to look alive, slow enough to cost nothing. */
const REDRAW_MS = 80;
const CLEAR_LINE = "\r\x1b[K";

/** One line, never wider than the terminal: `target [####----] 12.3/45.6 MB, 1.2 GB/s`. */
export function progressLine(
  progress: LoadProgress,
  { elapsedMs, columns }: { elapsedMs: number; columns: number },
): string {
  const { label, bytes, total } = progress;
  const share = total > 0 ? Math.min(1, bytes / total) : 0;
  const filled = Math.floor(share * BAR_WIDTH);
  const bar = `[${"#".repeat(filled)}${"-".repeat(BAR_WIDTH - filled)}]`;
  const rate = elapsedMs > 0 ? `, ${size(bytes / elapsedMs * 1000)}/s` : "";
  const numbers = `${size(bytes)} of ${size(total)}${rate}`;
  const line = `${label} ${bar} ${numbers}`;
  if (line.length < columns) return line;
  return `${label} ${numbers}`.slice(0, Math.max(0, columns - 1));
}

/** Bytes for people, in powers of 1000: `1.2 GB`. */
export function size(bytes: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let value = bytes;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  const digits = unit === 0 || value >= 99.95 ? 0 : 1;
  return `${value.toFixed(digits)} ${units[unit]}`;
}

/** A status line on a terminal that is redrawn in place; draws nothing anywhere else. */
export interface StatusLine {
  load(progress: LoadProgress): void;
  prefill(done: number, total: number): void;
  /** Wipes the line before other text is written. */
  clear(): void;
}

/** Draws on `output` when it is a terminal and `shown`. */
export function statusLine(
  output: Output,
  { shown, now = () => performance.now() }: { shown: boolean; now?: () => number },
): StatusLine {
  let drawn = false;
  let drawnAt = -Infinity;
  let label = "";
  let startedAt = 0;
  const draw = (line: () => string, last: boolean) => {
    if (!shown || !output.isTerminal || (!last && now() - drawnAt < REDRAW_MS)) return;
    drawnAt = now();
    drawn = true;
    output.write(`${CLEAR_LINE}${line()}`);
  };
  return {
    load(progress) {
      if (progress.label !== label) {
        label = progress.label;
        startedAt = now();
      }
      const place = { elapsedMs: now() - startedAt, columns: output.columns() };
      draw(() => progressLine(progress, place), progress.bytes === progress.total);
    },
    prefill(done, total) {
      if (done < total) draw(() => `prompt ${done} of ${total} tokens`, false);
    },
    clear() {
      if (drawn) output.write(CLEAR_LINE);
      drawn = false;
      drawnAt = -Infinity;
    },
  };
}
