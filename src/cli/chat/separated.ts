import type { TextSink } from "../terminal/io.ts";

/** An output with a blank line between answers, so that a program can tell where one ends. */
export interface SeparatedOutput extends TextSink {
  /** What is written from now on belongs to another answer. */
  nextAnswer(): void;
}

/** @param separates where it is false, everything is written as it is. */
export function separatedOutput(output: TextSink, separates: boolean): SeparatedOutput {
  let written = false;
  let between = false;
  return {
    isTerminal: output.isTerminal,
    columns: output.columns,
    rows: output.rows,
    write(text) {
      if (text === "") return;
      output.write(between && separates ? `\n${text}` : text);
      between = false;
      written = true;
    },
    nextAnswer() {
      between = written;
    },
  };
}
