import type { TextLogprobs } from "../../engine/schedule/events.ts";
import type { AnswerOutcome, Piece } from "../answers/answer.ts";
import { type Choices, gather, type WholeAnswer } from "../answers/choices.ts";
import { timingsOf, usageOf } from "../answers/usage.ts";
import { type ApiCall, apiPost } from "../fields/route.ts";
import type { Route } from "../service/route.ts";
import { eventStream, type StreamEvent } from "../http/sse.ts";
import { modelNamed, type Ready } from "../service/service.ts";
import { randomId } from "../tools/family.ts";
import { chatAsk } from "./chat_ask.ts";
import { chatChoices } from "./chat_choices.ts";
import { CHAT, type ChatRequest } from "./chat_schema.ts";
import { withoutServerTools } from "./server_tools.ts";
import { streamError } from "./stream_error.ts";
import { chatLogprobs } from "./logprobs.ts";
import { checkStreamOptions } from "./stream_options.ts";
import { CHAT_FIELDS } from "./taken.ts";

export const CHAT_ROUTE: Route = apiPost(
  {
    path: "/v1/chat/completions",
    summary: "The next message of a conversation",
    tag: "OpenAI",
    fields: CHAT_FIELDS,
    prepare: (sent, { ignore }) => withoutServerTools(sent, ignore),
  },
  CHAT,
  chat,
);

async function chat(body: ChatRequest, call: ApiCall): Promise<Response> {
  const { service } = call;
  const ready = modelNamed(service, body.model);
  checkStreamOptions(body);
  const count = body.n ?? 1;
  const choices = await chatChoices(call, ready, chatAsk(body, ready, service.options), count);
  const head = headOf(ready, service.options.version);
  if (body.stream) {
    return eventStream(streamError(chunks(choices, { body, ready, head }), choices), choices.leave);
  }
  const answers = await gather(choices);
  return Response.json({
    ...head,
    object: "chat.completion",
    choices: answers.map((answer, index) => wholeChoice(answer, { index, body, ready })),
    usage: usageOf(answers.map(({ ended }) => ended)),
    timings: timingsOf(answers[0]?.ended as AnswerOutcome),
  });
}

interface Head {
  readonly id: string;
  readonly created: number;
  readonly model: string;
  readonly system_fingerprint: string;
}

function headOf({ model }: Ready, version: string): Head {
  const created = Math.floor(Date.now() / 1000);
  return { id: `chatcmpl-${randomId(24)}`, created, model, system_fingerprint: `eyrie-${version}` };
}

interface Context {
  readonly body: ChatRequest;
  readonly ready: Ready;
}

function wholeChoice(
  answer: WholeAnswer,
  { index, body, ready }: Context & { readonly index: number },
): unknown {
  const { text, reasoning, calls, logprobs, rounds, ended } = answer;
  const tool_calls = calls.map((call) => (
    { id: ready.tools.callId(), type: "function", function: call }
  ));
  return {
    index,
    message: {
      role: "assistant",
      content: text === "" && calls.length > 0 ? null : text,
      ...reasoning === "" || body.include_reasoning === false
        ? {}
        : { reasoning_content: reasoning },
      ...calls.length === 0 ? {} : { tool_calls },
      refusal: null,
    },
    logprobs: body.logprobs ? chatLogprobs(logprobs) : null,
    finish_reason: ended.finish,
    ...body.return_rounds ? { rounds } : {},
  };
}

/** A stream's events: deltas, one chunk with finish_reason for each answer, usage, `[DONE]`. */
async function* chunks(
  { pieces }: Choices,
  { body, ready, head }: Context & { readonly head: Head },
): AsyncGenerator<StreamEvent, void, void> {
  const includeUsage = body.stream_options?.include_usage ?? false;
  const chunk = (choices: unknown[], more: Record<string, unknown> = {}): StreamEvent => ({
    data: {
      ...head,
      object: "chat.completion.chunk",
      choices,
      ...includeUsage ? { usage: null } : {},
      ...more,
    },
  });
  const deltas = Array.from({ length: body.n ?? 1 }, (_, index) => openDeltas(index, body, ready));
  const ended: AnswerOutcome[] = [];
  let left = deltas.length;
  for await (const [index, piece] of pieces) {
    const choice = deltas[index]?.(piece);
    if (choice === undefined) continue;
    if (piece.kind !== "end") {
      yield chunk([choice]);
      continue;
    }
    ended[index] = piece.ended;
    // Clients that do not ask for a usage chunk find the usage in the last chunk.
    const last = --left === 0 && !includeUsage;
    const timings = timingsOf(piece.ended);
    yield chunk([choice], { timings, ...last ? { usage: usageOf(ended) } : {} });
  }
  if (includeUsage) {
    const timings = timingsOf(ended[0] as AnswerOutcome);
    yield chunk([], { usage: usageOf(ended), timings });
  }
  yield { data: "[DONE]" };
}

/** Turns the pieces of one answer into `choices` of chunks; undefined for a piece that makes no delta. */
function openDeltas(
  index: number,
  { logprobs, return_rounds: tellsRounds, include_reasoning: tellsThoughts }: ChatRequest,
  { tools }: Ready,
): (piece: Piece) => unknown {
  /** Tokens and rounds that have not been sent yet. */
  let tokens: TextLogprobs[] = [];
  let rounds: unknown[] = [];
  const choice = (delta: unknown, finish: AnswerOutcome["finish"] | null = null) => {
    const tokenLogprobs = logprobs && tokens.length > 0 ? chatLogprobs(tokens) : null;
    const more = tellsRounds && rounds.length > 0 ? { rounds } : {};
    [tokens, rounds] = [[], []];
    return { index, delta, logprobs: tokenLogprobs, finish_reason: finish, ...more };
  };
  return (piece) => {
    switch (piece.kind) {
      case "begin":
        return choice({ role: "assistant", content: "" });
      case "text":
        return choice({ content: piece.text });
      case "reasoning":
        return tellsThoughts === false ? undefined : choice({ reasoning_content: piece.text });
      case "call": {
        const called = { name: piece.name, arguments: "" };
        const call = { index: piece.index, id: tools.callId(), type: "function", function: called };
        return choice({ tool_calls: [call] });
      }
      case "arguments":
        return choice({
          tool_calls: [{ index: piece.index, function: { arguments: piece.text } }],
        });
      case "round": {
        tokens.push(...piece.logprobs);
        const { tokens: count, accepted, drafted } = piece;
        rounds.push({ tokens: count, accepted, drafted });
        return undefined;
      }
      case "called":
        return undefined;
      case "end":
        return choice({}, piece.ended.finish);
    }
  };
}
