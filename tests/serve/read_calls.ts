/** Reads a model's output as a server does. */
import { equal } from "node:assert/strict";
import { callStream, type ToolPiece } from "../../src/serve/tools/call_stream.ts";
import type { ToolFamily } from "../../src/serve/tools/family.ts";
import type { Tool } from "../../src/serve/tools/tool.ts";

/** The text and the calls of an output that comes in pieces. @param isCut by a limit. */
export function readCalls(
  { format }: Pick<ToolFamily, "format">,
  pieces: readonly string[],
  tools?: readonly Tool[],
  isCut: boolean = true,
): { text: string; calls: unknown[] } {
  const stream = callStream(format, tools);
  const events: ToolPiece[] = [
    ...pieces.flatMap((piece) => stream.push(piece)),
    ...stream.end(isCut),
  ];
  let text = "";
  const calls: { name: string; json: string }[] = [];
  for (const event of events) {
    if (event.kind === "text") text += event.text;
    else if (event.kind === "call") {
      equal(event.index, calls.length);
      calls.push({ name: event.name, json: "" });
    } else if (event.kind === "arguments") {
      const call = calls[event.index];
      if (call) call.json += event.text;
    }
  }
  return { text, calls: calls.map(({ name, json }) => [name, JSON.parse(json)]) };
}
