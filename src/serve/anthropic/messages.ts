import type { AnswerOutcome, Piece } from "../answers/answer.ts";
import { promptTokens } from "../answers/ask.ts";
import { type Block, type BlockEvent, blockWriter } from "../answers/blocks.ts";
import type { Choices } from "../answers/choices.ts";
import { usageOf } from "../answers/usage.ts";
import { eventStream, type StreamEvent } from "../http/sse.ts";
import { type ApiCall, apiPost, type Take } from "../fields/route.ts";
import type { Body } from "../fields/taking.ts";
import { chatChoices } from "../openai/chat_choices.ts";
import { withoutServerTools } from "../openai/server_tools.ts";
import type { Route } from "../service/route.ts";
import { modelNamed, type Ready } from "../service/service.ts";
import { parseToWrite } from "../../text/number_literals.ts";
import { randomId } from "../tools/family.ts";
import { wholeCalls } from "../tools/whole_calls.ts";
import { anthropicAsk } from "./ask.ts";
import { anthropicError } from "./errors.ts";
import {
  ANTHROPIC_FIELDS,
  COUNT,
  type CountRequest,
  MESSAGES,
  type MessagesRequest,
} from "./schema.ts";

const ABOUT = {
  tag: "Anthropic",
  errors: anthropicError,
  fields: ANTHROPIC_FIELDS,
  calls: ["messages", "*", "content", "*", "input"],
  prepare: (body: Body, { ignore }: Take) => withoutServerTools(body, ignore, isCustom),
  names: {
    max_completion_tokens: "max_tokens",
    stop: "stop_sequences",
    response_format: "output_config.format",
    reasoning_effort: "output_config.effort",
  },
} as const;

/** Tools of other types (`web_search_20250305`, `bash_20250124`, ...) are Anthropic's own. */
function isCustom({ type }: Body): boolean {
  return type === undefined || type === "custom";
}

export const ANTHROPIC_ROUTES: readonly Route[] = [
  apiPost(
    {
      path: "/v1/messages",
      summary: "The next message of a conversation",
      ...ABOUT,
    },
    MESSAGES,
    messages,
  ),
  apiPost(
    { path: "/v1/messages/count_tokens", summary: "Tokens of a conversation", ...ABOUT },
    COUNT,
    async (body: CountRequest, { service, trace, signal }) => {
      const ready = modelNamed(service, body.model);
      const { prompt } = anthropicAsk(body, ready, service.options);
      const ids = await service.table.encoding(trace.id, () => promptTokens(ready, prompt, signal));
      return Response.json({ input_tokens: ids.length });
    },
  ),
];

async function messages(body: MessagesRequest, call: ApiCall): Promise<Response> {
  const { service } = call;
  const ready = modelNamed(service, body.model);
  const choices = await chatChoices(call, ready, anthropicAsk(body, ready, service.options));
  if (body.stream) return eventStream(events(choices, ready), choices.leave);
  const writer = blockWriter();
  let ended: AnswerOutcome | undefined;
  for await (const piece of wholePieces(choices)) {
    writer.write(piece);
    if (piece.kind === "end") ended = piece.ended;
  }
  return Response.json({
    ...messageOf(ready, writer.blocks.map((block) => whole(block, ready))),
    ...stopOf(ended as AnswerOutcome),
    usage: usage(ended as AnswerOutcome),
  });
}

function messageOf({ model }: Ready, content: readonly unknown[]): Record<string, unknown> {
  return {
    id: `msg_${randomId(24)}`,
    type: "message",
    role: "assistant",
    model,
    content,
    stop_reason: null,
    stop_sequence: null,
  };
}

/** The number of prompt tokens that were computed, and of those that were cached. */
function usage(ended: AnswerOutcome): Record<string, number> {
  const { prompt_tokens, completion_tokens, prompt_tokens_details } = usageOf([ended]);
  return {
    ...inputUsage(prompt_tokens, prompt_tokens_details.cached_tokens),
    output_tokens: completion_tokens,
  };
}

function inputUsage(prompt: number, cached: number): Record<string, number> {
  return {
    input_tokens: prompt - cached,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: cached,
  };
}

/** Why the answer ended. */
function stopOf(
  { finish, result: { stop } }: AnswerOutcome,
): { readonly stop_reason: string; readonly stop_sequence: string | null } {
  if (finish === "tool_calls") return { stop_reason: "tool_use", stop_sequence: null };
  if (finish === "length") return { stop_reason: "max_tokens", stop_sequence: null };
  return stop === undefined
    ? { stop_reason: "end_turn", stop_sequence: null }
    : { stop_reason: "stop_sequence", stop_sequence: stop };
}

/** The pieces without incomplete calls. Where no complete call is left, the finish reason becomes `stop`. */
async function* wholePieces({ pieces }: Choices): AsyncGenerator<Piece, void, void> {
  const whole = wholeCalls<Piece>();
  let called = false;
  for await (const [, piece] of pieces) {
    for (const each of whole(piece)) {
      called ||= each.kind === "call";
      if (each.kind === "end" && each.ended.finish === "tool_calls" && !called) {
        yield { kind: "end", ended: { ...each.ended, finish: "stop" } };
      } else yield each;
    }
  }
}

function whole({ kind, name, text }: Block, ready: Ready): unknown {
  if (kind === "call") {
    return { type: "tool_use", id: ready.tools.callId(), name, input: parseToWrite(text) };
  }
  return kind === "text"
    ? { type: "text", text }
    : { type: "thinking", thinking: text, signature: "" };
}

async function* events(
  choices: Choices,
  ready: Ready,
): AsyncGenerator<StreamEvent, void, void> {
  const named = (type: string, fields: Record<string, unknown> = {}): StreamEvent => (
    { event: type, data: { type, ...fields } }
  );
  const writer = blockWriter();
  try {
    for await (const piece of wholePieces(choices)) {
      if (piece.kind === "begin") {
        const input = inputUsage(piece.promptTokens, piece.cachedTokens);
        const message = { ...messageOf(ready, []), usage: { ...input, output_tokens: 0 } };
        yield named("message_start", { message });
      }
      for (const event of writer.write(piece)) {
        if (event.kind === "close" && event.block.kind === "reasoning") {
          // The AI SDK does not send thoughts back whose stream had no signature.
          const delta = { type: "signature_delta", signature: "" };
          yield named("content_block_delta", { index: event.index, delta });
        }
        yield named(...blockEvent(event, ready));
      }
      if (piece.kind !== "end") continue;
      const delta = stopOf(piece.ended);
      yield named("message_delta", { delta, usage: usage(piece.ended) });
      yield named("message_stop");
    }
  } catch (error) {
    yield { event: "error", data: anthropicError(choices.failed(error)) };
  }
}

function blockEvent(
  { kind, index, block, text }: BlockEvent,
  { tools }: Ready,
): [type: string, fields: Record<string, unknown>] {
  if (kind === "close") return ["content_block_stop", { index }];
  if (kind === "open") {
    const content_block = block.kind === "call"
      ? { type: "tool_use", id: tools.callId(), name: block.name, input: {} }
      : block.kind === "text"
      ? { type: "text", text: "" }
      : { type: "thinking", thinking: "", signature: "" };
    return ["content_block_start", { index, content_block }];
  }
  const delta = block.kind === "call"
    ? { type: "input_json_delta", partial_json: text }
    : block.kind === "text"
    ? { type: "text_delta", text }
    : { type: "thinking_delta", thinking: text };
  return ["content_block_delta", { index, delta }];
}
