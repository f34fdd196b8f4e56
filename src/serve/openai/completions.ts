import { z } from "zod";
import { defined } from "../../defined.ts";
import type { Grammar } from "../../grammar/rules/grammar.ts";
import type { TextLogprobs } from "../../engine/schedule/events.ts";
import type { AnswerOutcome } from "../answers/answer.ts";
import type { Ask, Prompt } from "../answers/ask.ts";
import { type Choices, gather, openChoices } from "../answers/choices.ts";
import { timingsOf, usageOf, usageSum } from "../answers/usage.ts";
import { invalid } from "../http/errors.ts";
import { type ApiCall, apiPost } from "../fields/route.ts";
import type { Route } from "../service/route.ts";
import { eventStream, type StreamEvent } from "../http/sse.ts";
import { modelNamed } from "../service/service.ts";
import { randomId } from "../tools/family.ts";
import { RESPONSE_FORMAT, STREAM_OPTIONS } from "./chat_schema.ts";
import { streamError } from "./stream_error.ts";
import { askOf, optional, SAMPLING_FIELDS, TOKENS } from "./fields.ts";
import { completionLogprobs, type TextOffset, textOffset } from "./logprobs.ts";
import { formatGrammar, onlyGrammar } from "./grammar.ts";
import { checkStreamOptions } from "./stream_options.ts";
import { COMPLETION_FIELDS, SCHEMA_OR_TEXT } from "./taken.ts";

const IDS = z.array(z.int().min(0)).min(1);

/** Body of POST /v1/completions; its prompt is a text, token ids, or several of either. */
const COMPLETION = z.object({
  model: optional(z.string()),
  prompt: z.union([
    z.string(),
    z.array(z.string()).min(1).max(128),
    IDS,
    z.array(IDS).min(1).max(128),
  ]),
  ...SAMPLING_FIELDS,
  max_tokens: optional(TOKENS),
  n: optional(z.int().min(1).max(128)),
  best_of: optional(z.int().min(1)),
  echo: optional(z.literal(false, "the prompt is not repeated: allowed is false")),
  suffix: optional(z.literal("", "this model does not fill in the middle")),
  logprobs: optional(z.int().min(0).max(20)),
  // llama-server's.
  json_schema: optional(SCHEMA_OR_TEXT),
  // vLLM's.
  response_format: optional(RESPONSE_FORMAT),
  add_special_tokens: optional(z.boolean()),
  stream: optional(z.boolean()),
  stream_options: STREAM_OPTIONS,
});

type CompletionRequest = z.infer<typeof COMPLETION>;

/** OpenAI's. */
const MAX_TOKENS = 16;

export const COMPLETION_ROUTE: Route = apiPost(
  {
    path: "/v1/completions",
    summary: "A text's continuation, without the chat template",
    tag: "OpenAI",
    fields: COMPLETION_FIELDS,
    names: { messages: "prompt" },
  },
  COMPLETION,
  complete,
);

async function complete(body: CompletionRequest, call: ApiCall): Promise<Response> {
  const { service } = call;
  const ready = modelNamed(service, body.model);
  checkStreamOptions(body);
  const { n, logprobs, max_tokens: maxTokens } = body;
  const count = n ?? 1;
  if (body.best_of && body.best_of !== count) {
    throw invalid('Cannot use "best_of": it has to be equal to "n"', "best_of");
  }
  const prompts = promptsOf(body);
  const choices = await openChoices(call, {
    ready,
    prompts,
    count,
    reading: { reasoning: false },
    ask: {
      ...askOf(body),
      ...grammarOf(body),
      maxTokens: maxTokens ?? service.options.maxTokens ?? MAX_TOKENS,
      ...logprobs === undefined || logprobs === null ? {} : { logprobs },
    },
  });
  const head = {
    id: `cmpl-${randomId(24)}`,
    object: "text_completion",
    created: Math.floor(Date.now() / 1000),
    model: ready.model,
    system_fingerprint: `eyrie-${service.options.version}`,
  };
  if (body.stream) {
    const total = prompts.length * count;
    return eventStream(
      streamError(chunks(choices, { body, head, total, count }), choices),
      choices.leave,
    );
  }
  const answers = await gather(choices);
  return Response.json({
    ...head,
    choices: answers.map(({ text, ended, logprobs: pendingLogprobs }, index) => ({
      text,
      index,
      finish_reason: ended.finish,
      logprobs: wantsLogprobs(body) ? completionLogprobs(pendingLogprobs, textOffset()) : null,
    })),
    usage: usage(answers.map(({ ended }) => ended), count),
    timings: timingsOf(answers[0]?.ended as AnswerOutcome),
  });
}

function wantsLogprobs({ logprobs }: CompletionRequest): boolean {
  return logprobs !== undefined && logprobs !== null;
}

/** @throws ApiError (400) for two: an output has one. */
function grammarOf(body: CompletionRequest): Pick<Ask, "grammar" | "grammarField"> {
  const { json_schema: schema, response_format: format } = body;
  const given: [string, Grammar | undefined][] = [
    ["response_format", format ? formatGrammar(format) : undefined],
    ["json_schema", schema ? { kind: "json schema", schema } : undefined],
    [body.regex ? "regex" : "grammar", askOf(body).grammar],
  ];
  return onlyGrammar(given);
}

function promptsOf(
  { prompt, add_special_tokens: special }: Pick<
    CompletionRequest,
    "prompt" | "add_special_tokens"
  >,
): Prompt[] {
  const raw = (text: string): Prompt => ({
    raw: text,
    ...defined({ addSpecialTokens: special ?? undefined }),
  });
  if (typeof prompt === "string") return [raw(prompt)];
  if (typeof prompt[0] === "number") return [{ ids: prompt as readonly number[] }];
  return (prompt as readonly (string | readonly number[])[]).map((each) =>
    typeof each === "string" ? raw(each) : { ids: each }
  );
}

/** @param count answers to each prompt, which come together. */
function usage(ended: readonly AnswerOutcome[], count: number): ReturnType<typeof usageOf> {
  const prompts = Array.from(
    { length: ended.length / count },
    (_, i) => ended.slice(i * count, (i + 1) * count),
  );
  return usageSum(prompts.map(usageOf));
}

async function* chunks(
  { pieces }: Choices,
  { body, head, total, count }: {
    readonly body: CompletionRequest;
    readonly head: Readonly<Record<string, unknown>>;
    readonly total: number;
    readonly count: number;
  },
): AsyncGenerator<StreamEvent, void, void> {
  const includeUsage = body.stream_options?.include_usage ?? false;
  const pendingLogprobs: TextLogprobs[][] = Array.from({ length: total }, () => []);
  const offsets = Array.from({ length: total }, textOffset);
  const ended: AnswerOutcome[] = [];
  let left = total;
  const chunk = (choices: unknown[], more: Record<string, unknown> = {}): StreamEvent => (
    { data: { ...head, choices, ...includeUsage ? { usage: null } : {}, ...more } }
  );
  for await (const [index, piece] of pieces) {
    if (piece.kind === "round") pendingLogprobs[index]?.push(...piece.logprobs);
    if (piece.kind !== "text" && piece.kind !== "end") continue;
    const text = piece.kind === "text" ? piece.text : "";
    const tokens = pendingLogprobs[index]?.splice(0) ?? [];
    const logprobs = wantsLogprobs(body) && tokens.length > 0
      ? completionLogprobs(tokens, offsets[index] as TextOffset)
      : null;
    if (piece.kind === "text") {
      yield chunk([{ text, index, logprobs, finish_reason: null }]);
      continue;
    }
    ended[index] = piece.ended;
    const last = --left === 0 && !includeUsage;
    yield chunk([{ text, index, logprobs, finish_reason: piece.ended.finish }], {
      timings: timingsOf(piece.ended),
      ...last ? { usage: usage(ended, count) } : {},
    });
  }
  if (includeUsage) yield chunk([], { usage: usage(ended, count) });
  yield { data: "[DONE]" };
}
