import type { Ended } from "../answers/answer.ts";
import { type Choices, gather, type Gathered, openChoices } from "../answers/choices.ts";
import { timingsOf } from "../answers/usage.ts";
import { asApiError } from "../http/errors.ts";
import { lineStream } from "../http/sse.ts";
import type { ChatAsk } from "../openai/chat_ask.ts";
import { type Call, get, post, type Route } from "../service/route.ts";
import { modelNamed, type Ready, readyOf, type Service } from "../service/service.ts";
import { ollamaChatAsk, ollamaGenerateAsk } from "./ask.ts";
import { ollamaError } from "./errors.ts";
import { OLLAMA_CHAT, OLLAMA_GENERATE, type OllamaChat, type OllamaGenerate } from "./schema.ts";

const ABOUT = { tag: "ollama", errors: ollamaError } as const;

export const OLLAMA_ROUTES: readonly Route[] = [
  post(
    { path: "/api/chat", summary: "The next message of a conversation", streams: true, ...ABOUT },
    OLLAMA_CHAT,
    (body: OllamaChat, call) => {
      const ready = named(call.service, body.model);
      const ask = ollamaChatAsk(body, ready, call.service.options);
      return answered(call, { ready, ask, stream: body.stream, asMessage });
    },
  ),
  post(
    { path: "/api/generate", summary: "The answer to a prompt", streams: true, ...ABOUT },
    OLLAMA_GENERATE,
    (body: OllamaGenerate, call) => {
      const ready = named(call.service, body.model);
      const ask = ollamaGenerateAsk(body, ready, call.service.options);
      return answered(call, { ready, ask, stream: body.stream, asMessage: asResponse });
    },
  ),
  get(
    { path: "/api/tags", summary: "The model that is served", ...ABOUT },
    ({ service }) => Response.json({ models: [modelOf(service)] }),
  ),
  get(
    { path: "/api/version", summary: "The server's version", ...ABOUT },
    ({ service }) => Response.json({ version: service.options.version }),
  ),
];

/** ollama's clients may name a model's tag. */
function named(service: Service, name: string): Ready {
  const { model } = readyOf(service);
  return modelNamed(service, name === `${model}:latest` ? model : name);
}

function modelOf(service: Service): unknown {
  const { engine, model } = readyOf(service);
  const { quantize, bytes } = engine.weights;
  return {
    ...{ name: model, model, modified_at: service.started.toISOString(), size: bytes, digest: "" },
    details: {
      ...{ parent_model: "", format: "safetensors", family: "", families: null },
      ...{ parameter_size: "", quantization_level: quantize ?? "" },
    },
  };
}

/** A part of an answer. */
interface Said {
  readonly content: string;
  readonly thinking?: string;
  readonly calls?: readonly { readonly name: string; readonly arguments: string }[];
}

type AsMessage = (said: Said) => Record<string, unknown>;

function asMessage({ content, thinking, calls }: Said): Record<string, unknown> {
  const tool_calls = calls?.flatMap(({ name, arguments: json }) => {
    const given = objectOf(json);
    return given === undefined ? [] : [{ function: { name, arguments: given } }];
  });
  return {
    message: {
      ...{ role: "assistant", content },
      ...thinking ? { thinking } : {},
      ...tool_calls?.length ? { tool_calls } : {},
    },
  };
}

function asResponse({ content, thinking }: Said): Record<string, unknown> {
  return { response: content, ...thinking ? { thinking } : {} };
}

/** Undefined for arguments that the answer's end cut. */
function objectOf(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

async function answered(
  call: Call,
  { ready, ask: { prompt, ask, reading }, stream, asMessage: as }: {
    readonly ready: Ready;
    readonly ask: ChatAsk;
    readonly stream: boolean | null | undefined;
    readonly asMessage: AsMessage;
  },
): Promise<Response> {
  const choices = await openChoices(call, {
    ...{ ready, prompts: [prompt], ask, reading, count: 1 },
  });
  const head = (done: boolean) => (
    { model: ready.model, created_at: new Date().toISOString(), done }
  );
  if (stream ?? true) {
    return lineStream(lines(choices, { head, as, loadMs: ready.engine.loadMs }), choices.leave);
  }
  const [answer] = await gather(choices);
  const { text, reasoning, calls, ended } = answer as Gathered;
  const said = as({ content: text, thinking: reasoning, calls });
  return Response.json({ ...head(true), ...said, ...last(ended, ready.engine.loadMs) });
}

async function* lines(
  { pieces, leave }: Choices,
  { head, as, loadMs }: {
    readonly head: (done: boolean) => Record<string, unknown>;
    readonly as: AsMessage;
    readonly loadMs: number;
  },
): AsyncGenerator<unknown, void, void> {
  let call = { name: "", arguments: "" };
  try {
    for await (const [, piece] of pieces) {
      if (piece.kind === "text") yield { ...head(false), ...as({ content: piece.text }) };
      else if (piece.kind === "reasoning") {
        yield { ...head(false), ...as({ content: "", thinking: piece.text }) };
      } else if (piece.kind === "call") call = { name: piece.name, arguments: "" };
      else if (piece.kind === "arguments") call.arguments += piece.text;
      else if (piece.kind === "called") {
        yield { ...head(false), ...as({ content: "", calls: [call] }) };
      } else if (piece.kind === "end") {
        yield { ...head(true), ...as({ content: "" }), ...last(piece.ended, loadMs) };
      }
    }
  } catch (error) {
    leave();
    yield { error: asApiError(error).message };
  }
}

/** Counts and times in nanoseconds. */
function last(ended: Ended, loadMs: number): Record<string, unknown> {
  const { result, waitedMs, finish } = ended;
  const { prompt_ms = 0, predicted_ms = 0 } = timingsOf(ended);
  const nanoseconds = (ms: number) => Math.round(ms * 1e6);
  return {
    done_reason: finish === "length" ? "length" : "stop",
    total_duration: nanoseconds(waitedMs + prompt_ms + predicted_ms),
    load_duration: nanoseconds(loadMs),
    prompt_eval_count: result.promptIds.length,
    prompt_eval_duration: nanoseconds(prompt_ms),
    eval_count: result.outputIds.length,
    eval_duration: nanoseconds(predicted_ms),
  };
}
