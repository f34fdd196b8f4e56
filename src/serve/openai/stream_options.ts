import { invalid } from "../http/errors.ts";
import type { ChatRequest } from "./chat_schema.ts";

/** @throws ApiError where they are given for what is no stream. */
export function checkStreamOptions(
  { stream, stream_options: options }: Pick<ChatRequest, "stream" | "stream_options">,
): void {
  if (stream || !options) return;
  throw invalid('Cannot use "stream_options": it needs "stream": true', "stream_options");
}
