import { isObjectText } from "./object_text.ts";
import type { ToolPiece } from "./call_stream.ts";

type CallPiece = Extract<ToolPiece, { readonly kind: "call" | "arguments" | "called" }>;

/**
 * Holds each call back until it is complete, for APIs whose clients take no partial calls. Its arguments
 * then come in one piece. A call that the output's end cuts is left out; a call whose arguments are no JSON
 * object becomes text.
 */
export function wholeCalls<T extends { readonly kind: string }>(): (
  piece: T | ToolPiece,
) => (T | ToolPiece)[] {
  const held = new Map<number, { readonly name: string; json: string }>();
  return (piece) => {
    if (!isCall(piece)) return [piece];
    const { index } = piece;
    if (piece.kind === "call") {
      held.set(index, { name: piece.name, json: "" });
      return [];
    }
    const call = held.get(index);
    if (call === undefined) return [];
    if (piece.kind === "arguments") {
      call.json += piece.text;
      return [];
    }
    held.delete(index);
    const { name, json } = call;
    if (piece.broken || !isObjectText(json)) return [{ kind: "text", text: `${name}${json}` }];
    return [{ kind: "call", index, name }, { kind: "arguments", index, text: json }, piece];
  };
}

function isCall(piece: { readonly kind: string }): piece is CallPiece {
  return ["call", "arguments", "called"].includes(piece.kind);
}
