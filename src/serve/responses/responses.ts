import { defined } from "../../defined.ts";
import type { AnswerOutcome } from "../answers/answer.ts";
import { type Block, type BlockEvent, blockWriter } from "../answers/blocks.ts";
import type { Choices } from "../answers/choices.ts";
import { usageOf } from "../answers/usage.ts";
import { eventStream, type StreamEvent } from "../http/sse.ts";
import { chatChoices } from "../openai/chat_choices.ts";
import { chatLogprobs } from "../openai/logprobs.ts";
import { checkStreamOptions } from "../openai/stream_options.ts";
import { type ApiCall, apiPost } from "../fields/route.ts";
import { RESPONSES_FIELDS } from "../openai/taken.ts";
import type { Route } from "../service/route.ts";
import { modelNamed, type Ready } from "../service/service.ts";
import { randomId } from "../tools/family.ts";
import { responsesAsk } from "./ask.ts";
import { RESPONSES, type ResponsesRequest } from "./schema.ts";
import { type ClientTool, clientTools, customInput, hasFormats, withoutHosted } from "./tools.ts";

export const RESPONSES_ROUTE: Route = apiPost(
  {
    path: "/v1/responses",
    summary: "The next items of a conversation, which is sent whole: nothing is stored",
    tag: "OpenAI",
    fields: RESPONSES_FIELDS,
    prepare: withoutHosted,
    names: {
      messages: "input",
      max_tokens: "max_output_tokens",
      response_format: "text.format",
      reasoning_effort: "reasoning.effort",
      "tools[].function.parameters": "tools[].parameters",
      "tool_choice.function.name": "tool_choice.name",
    },
  },
  RESPONSES,
  respond,
);

async function respond(body: ResponsesRequest, call: ApiCall): Promise<Response> {
  const { service } = call;
  const ready = modelNamed(service, body.model);
  checkStreamOptions(body);
  if (hasFormats(body.tools ?? [])) call.ignore("tools.format");
  const choices = await chatChoices(call, ready, responsesAsk(body, ready, service.options));
  const response = openResponse(body, ready);
  if (body.stream) return eventStream(events(choices, response), choices.leave);
  let last: unknown;
  for await (const { data } of responseEvents(choices, response)) last = data;
  return Response.json((last as { response: unknown }).response);
}

interface OpenResponse {
  /** The response as it is: its state, its output, and more. */
  readonly as: (
    status: string,
    output: readonly unknown[],
    more?: Record<string, unknown>,
  ) => unknown;
  readonly ready: Ready;
  readonly clientTools: ReadonlyMap<string, ClientTool>;
}

function openResponse(body: ResponsesRequest, ready: Ready): OpenResponse {
  const id = `resp_${randomId(32)}`;
  const created_at = Math.floor(Date.now() / 1000);
  return {
    ready,
    clientTools: clientTools(body.tools ?? []),
    as: (status, output, more = {}) => ({
      id,
      object: "response",
      created_at,
      status,
      error: null,
      incomplete_details: null,
      instructions: body.instructions ?? null,
      max_output_tokens: body.max_output_tokens ?? null,
      model: ready.model,
      output,
      parallel_tool_calls: body.parallel_tool_calls ?? true,
      previous_response_id: null,
      reasoning: { effort: body.reasoning?.effort ?? null, summary: null },
      store: false,
      temperature: body.temperature ?? null,
      text: { format: body.text?.format ?? { type: "text" } },
      tool_choice: body.tool_choice ?? "auto",
      tools: body.tools ?? [],
      top_p: body.top_p ?? null,
      truncation: "disabled",
      usage: null,
      user: body.user ?? null,
      metadata: body.metadata ?? {},
      ...more,
    }),
  };
}

/** Numbers the events; after an error the last event reports it. */
async function* events(
  choices: Choices,
  response: OpenResponse,
): AsyncGenerator<StreamEvent, void, void> {
  let number = 0;
  const numbered = ({ event, data }: StreamEvent): StreamEvent => ({
    ...defined({ event }),
    data: { ...data as object, sequence_number: number++ },
  });
  try {
    for await (const each of responseEvents(choices, response)) yield numbered(each);
  } catch (error) {
    const { message, code, type } = choices.failed(error);
    const failed = { code: String(code ?? type), message };
    const data = {
      type: "response.failed",
      response: response.as("failed", [], { error: failed }),
    };
    yield numbered({ event: "response.failed", data });
  }
  yield { data: "[DONE]" };
}

async function* responseEvents(
  { pieces }: Choices,
  response: OpenResponse,
): AsyncGenerator<StreamEvent, void, void> {
  const named = (type: string, fields: Record<string, unknown>): StreamEvent => (
    { event: type, data: { type, ...fields } }
  );
  const writer = blockWriter();
  const items = openItems(response);
  yield named("response.created", { response: response.as("in_progress", []) });
  yield named("response.in_progress", { response: response.as("in_progress", []) });
  let ended: AnswerOutcome | undefined;
  for await (const [, piece] of pieces) {
    if (piece.kind === "end") ended = piece.ended;
    for (const event of writer.write(piece)) {
      // Blocks that are open at the end are incomplete if a limit cuts the answer, calls also if a stop text does.
      const isCall = event.kind === "close" && event.block.kind === "call";
      const isCut = ended && (ended.finish === "length" || isCall) ||
        piece.kind === "called" && piece.broken;
      const status = isCut ? "incomplete" : "completed";
      for (const [type, fields] of items.eventsOf(event, status)) yield named(type, fields);
    }
  }
  const cut = ended?.finish === "length";
  const status = cut ? "incomplete" : "completed";
  const output = writer.blocks.map((block, index) => items.whole(block, index));
  const usage = usageOfResponse(ended as AnswerOutcome);
  yield named(`response.${status}`, {
    response: response.as(status, output, {
      usage,
      completed_at: Math.floor(Date.now() / 1000),
      ...cut ? { incomplete_details: { reason: "max_output_tokens" } } : {},
    }),
  });
}

function usageOfResponse(ended: AnswerOutcome): unknown {
  const { prompt_tokens, completion_tokens, total_tokens, ...details } = usageOf([ended]);
  return {
    input_tokens: prompt_tokens,
    input_tokens_details: { ...details.prompt_tokens_details },
    output_tokens: completion_tokens,
    output_tokens_details: { ...details.completion_tokens_details },
    total_tokens,
  };
}

/** How an item ended: whole, or where the answer's limit cut it. */
type ItemEnd = "completed" | "incomplete";

type ItemEvent = readonly [type: string, fields: Record<string, unknown>];

/** Blocks as items, with the ids that they keep. */
function openItems({ ready: { tools }, clientTools }: OpenResponse): {
  readonly whole: (block: Block, index: number) => unknown;
  /** @param end state of an item that ends. */
  readonly eventsOf: (event: BlockEvent, end: ItemEnd) => ItemEvent[];
} {
  const ids: string[] = [];
  const ends: ItemEnd[] = [];
  const callIds: string[] = [];
  const prefix = { reasoning: "rs", text: "msg", call: "fc" } as const;
  const idOf = (block: Block, index: number) =>
    ids[index] ??= `${prefix[block.kind]}_${randomId(32)}`;

  function item(
    block: Block,
    index: number,
    status: "in_progress" | ItemEnd,
  ): Record<string, unknown> {
    const id = idOf(block, index);
    const done = status !== "in_progress";
    if (block.kind === "reasoning") {
      const content = done ? [{ type: "reasoning_text", text: block.text }] : [];
      return { id, type: "reasoning", status, summary: [], content };
    }
    if (block.kind === "call") {
      const call_id = callIds[index] ??= tools.callId();
      const { name, namespace, custom } = clientTools.get(block.name) ?? { name: block.name };
      const named = { id, status, call_id, name, ...namespace ? { namespace } : {} };
      if (custom) {
        return { ...named, type: "custom_tool_call", input: done ? customInput(block.text) : "" };
      }
      return { ...named, type: "function_call", arguments: done ? block.text : "" };
    }
    return { id, type: "message", status, role: "assistant", content: done ? [part(block)] : [] };
  }

  function eventsOf({ kind, index, block, text, logprobs }: BlockEvent, end: ItemEnd): ItemEvent[] {
    if (kind === "close") ends[index] = end;
    const at = { item_id: idOf(block, index), output_index: index };
    const inside = { ...at, content_index: 0 };
    const added = ["response.output_item.added", {
      output_index: index,
      item: item(block, index, "in_progress"),
    }] as const;
    const done = ["response.output_item.done", {
      output_index: index,
      item: item(block, index, end),
    }] as const;
    if (block.kind === "call" && clientTools.get(block.name)?.custom) {
      const type = "response.custom_tool_call_input";
      if (kind === "open") return [added];
      if (kind === "delta") return []; // the text is a string in JSON, and is read when that is complete
      const input = customInput(block.text);
      return [[`${type}.delta`, { ...at, delta: input }], [`${type}.done`, { ...at, input }], done];
    }
    if (block.kind === "call") {
      const type = "response.function_call_arguments";
      if (kind === "open") return [added];
      if (kind === "delta") return [[`${type}.delta`, { ...at, delta: text }]];
      return [[`${type}.done`, {
        ...at,
        name: clientTools.get(block.name)?.name ?? block.name,
        arguments: block.text,
      }], done];
    }
    const type = block.kind === "text" ? "response.output_text" : "response.reasoning_text";
    if (kind === "delta") {
      const more = block.kind === "text" ? { logprobs: logprobsOf(logprobs) } : {};
      return [[`${type}.delta`, { ...inside, delta: text, ...more }]];
    }
    if (kind === "open") {
      return [added, ["response.content_part.added", {
        ...inside,
        part: part({ ...block, text: "", logprobs: [] }),
      }]];
    }
    const more = block.kind === "text" ? { logprobs: logprobsOf(block.logprobs) } : {};
    return [
      [`${type}.done`, { ...inside, text: block.text, ...more }],
      ["response.content_part.done", { ...inside, part: part(block) }],
      done,
    ];
  }

  return { eventsOf, whole: (block, index) => item(block, index, ends[index] ?? "completed") };
}

function part({ kind, text, logprobs }: Block): unknown {
  if (kind === "reasoning") return { type: "reasoning_text", text };
  return { type: "output_text", text, annotations: [], logprobs: logprobsOf(logprobs) };
}

function logprobsOf(tokens: Block["logprobs"] | BlockEvent["logprobs"]): unknown {
  return (chatLogprobs(tokens) as { content: unknown }).content;
}
