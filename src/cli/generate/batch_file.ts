import { UsageError } from "../../errors.ts";
import { type BatchId, idText } from "./batch_id.ts";
import { type BatchLine, idOfLine, parseBatchLine } from "./batch_line.ts";

/** A line of a batch file that is not blank. */
export interface BatchEntry {
  /** From 1, blank lines counted. */
  readonly line: number;
  /** The given id, or else one from the line's number that no other line has. */
  readonly id: BatchId;
  /** What it asks for, or why it cannot be used. */
  readonly request: BatchLine | UsageError;
}

/** The lines of a batch file, in order. A line that cannot be used is an error of that line alone. */
export function parseBatch(text: string): BatchEntry[] {
  const lines = text.split("\n").map((text, i) => ({ text, line: i + 1 }));
  const read = lines.filter(({ text }) => text.trim() !== "")
    .map(({ text, line }) => ({ line, request: parsed(text, line), own: idOfLine(text) }));
  const given = new Set(read.flatMap(({ own }) => own === undefined ? [] : [idText(own)]));
  return read.map(({ line, request, own }) => {
    let id = line;
    while (given.has(String(id))) id += lines.length;
    return { line, request, id: own ?? id };
  });
}

function parsed(text: string, line: number): BatchEntry["request"] {
  try {
    return parseBatchLine(text, line);
  } catch (error) {
    if (error instanceof UsageError) return error;
    throw error;
  }
}
