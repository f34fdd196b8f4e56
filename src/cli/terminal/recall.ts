import { type Edited, editing, textOf } from "./edited.ts";

/** Moves through the history with Up and Down, visiting only entries that begin with what was typed. */
export class Recall {
  readonly #history: readonly string[];
  /** Place in the history, newest first; -1 at the text that was typed. */
  #at = -1;
  /** What entries have to begin with; undefined until the next step takes it from the line. */
  #prefix: string | undefined;
  #shown: Edited | undefined;

  constructor(history: readonly string[]) {
    this.#history = history;
  }

  /** The line was submitted or thrown away. */
  reset(): void {
    this.#at = -1;
    this.#prefix = undefined;
  }

  /** The line was edited: entries that begin with its text are looked for from now on. */
  edited(): void {
    this.#prefix = undefined;
  }

  /** Whether the line is still as it was recalled, with the cursor in its place. */
  shows(line: Edited): boolean {
    return line === this.#shown;
  }

  /** An older entry (1) or a newer one (-1); the line itself where there is none. */
  step(line: Edited, by: 1 | -1): Edited {
    const shown = textOf(line.cells);
    const prefix = this.#prefix ??= shown;
    for (let at = this.#at + by; at >= 0 && at < this.#history.length; at += by) {
      const entry = this.#history[at];
      if (entry === undefined || entry === shown || !entry.startsWith(prefix)) continue;
      this.#at = at;
      return this.#shown = editing(entry);
    }
    if (by > 0) return line;
    this.#at = -1;
    return editing(prefix);
  }
}
