import { createHash } from "node:crypto";
import { parseToWrite } from "../../text/number_literals.ts";
import type { AnswerOutcome } from "../answers/answer.ts";
import { type Choices, gather, type WholeAnswer } from "../answers/choices.ts";
import { timingsOf } from "../answers/usage.ts";
import { maxRequestTokens } from "../answers/limits.ts";
import { type ApiCall, apiPost, type Take } from "../fields/route.ts";
import type { Body } from "../fields/taking.ts";
import { ApiError, invalid } from "../http/errors.ts";
import { lineStream } from "../http/sse.ts";
import type { ChatAsk } from "../openai/chat_ask.ts";
import { chatChoices } from "../openai/chat_choices.ts";
import { withoutServerTools } from "../openai/server_tools.ts";
import { get, type Route } from "../service/route.ts";
import { modelNamed, modelNames, type Ready, readyOf, type Service } from "../service/service.ts";
import { ollamaChatAsk, ollamaGenerateAsk } from "./ask.ts";
import { ollamaError } from "./errors.ts";
import {
  OLLAMA_CHAT,
  OLLAMA_FIELDS,
  OLLAMA_GENERATE,
  OLLAMA_OPTIONS,
  OLLAMA_SHOW,
  type OllamaChat,
  type OllamaGenerate,
  type OllamaShow,
} from "./schema.ts";

const ABOUT = { tag: "ollama", errors: ollamaError } as const;

const ASKED = {
  ...ABOUT,
  fields: OLLAMA_FIELDS,
  calls: ["messages", "*", "tool_calls", "*", "function", "arguments"],
  prepare: (body: Body, { ignore, fields }: Take) => {
    const kept = withoutServerTools(body, ignore);
    const options = kept["options"];
    if (typeof options !== "object" || options === null) return kept;
    return { ...kept, options: fields("options", options as Body, OLLAMA_OPTIONS) };
  },
  names: {
    max_tokens: "options.num_predict",
    repetition_penalty: "options.repeat_penalty",
    response_format: "format",
    reasoning_effort: "think",
  },
} as const;

/** Clients refuse servers whose ollama is too old for what they use; Eyrie's own version is in /server_info. */
const OLLAMA_VERSION = "0.9.0";

export const OLLAMA_ROUTES: readonly Route[] = [
  apiPost(
    { path: "/api/chat", summary: "The next message of a conversation", ...ASKED },
    OLLAMA_CHAT,
    (body: OllamaChat, call) => {
      const ready = named(call.service, body.model);
      if (!body.messages?.length) return loadedAnswer(ready, body, asMessage);
      const ask = ollamaChatAsk(body, ready, call.service.options);
      return answered(call, { ready, ask, stream: body.stream, asMessage });
    },
  ),
  apiPost(
    { path: "/api/generate", summary: "The answer to a prompt", ...ASKED },
    OLLAMA_GENERATE,
    (body: OllamaGenerate, call) => {
      const ready = named(call.service, body.model);
      if (!body.prompt) return loadedAnswer(ready, body, asResponse);
      const ask = ollamaGenerateAsk(body, ready, call.service.options);
      return answered(call, { ready, ask, stream: body.stream, asMessage: asResponse });
    },
  ),
  apiPost(
    { path: "/api/show", summary: "What is known of the model", fields: {}, ...ABOUT },
    OLLAMA_SHOW,
    ({ model, name }: OllamaShow, { service }) => {
      const given = model ?? name;
      if (!given) throw invalid('Cannot do without "model": it names the model', "model");
      return Response.json(shown(service, named(service, given)));
    },
  ),
  get(
    { path: "/api/tags", summary: "The model that is served", ...ABOUT },
    ({ service }) => {
      const names = modelNames(readyOf(service), service);
      return Response.json({ models: names.map((name) => modelOf(service, name)) });
    },
  ),
  get(
    { path: "/api/ps", summary: "The model that is loaded", ...ABOUT },
    ({ service }) => Response.json({ models: [loaded(service)] }),
  ),
  get(
    { path: "/api/version", summary: "The version of ollama whose API this is", ...ABOUT },
    () => Response.json({ version: OLLAMA_VERSION }),
  ),
  ...["/api/embed", "/api/embeddings"].map((path) =>
    refusal(path, "Refused: there are no embeddings", "this server makes no embeddings")
  ),
  ...["pull", "push", "create", "copy"].map((name) =>
    refusal(
      `/api/${name}`,
      "Refused: the model is chosen when the server starts",
      "the server has the one model that it was started with; eyrie models lists others",
    )
  ),
];

/** A route of ollama's that does nothing here, and says so in ollama's shape. */
function refusal(path: string, summary: string, message: string): Route {
  const handle = () => {
    throw new ApiError(501, message, { type: "invalid_request_error", code: "not_implemented" });
  };
  return { method: "post", path, summary, ...ABOUT, refuses: true, handle };
}

/** ollama's clients may name a model's tag. */
function named(service: Service, name: string): Ready {
  const bare = name.replace(/:latest$/, "");
  const known = modelNames(readyOf(service), service).includes(bare);
  return modelNamed(service, known ? bare : name);
}

function modelOf(service: Service, name: string): Record<string, unknown> {
  const { engine } = readyOf(service);
  return {
    name,
    model: name,
    modified_at: service.started.toISOString(),
    size: engine.info.weights.bytes,
    digest: createHash("sha256").update(name).digest("hex"),
    details: detailsOf(engine.info.weights),
  };
}

function detailsOf({ quantize }: Ready["engine"]["info"]["weights"]): Record<string, unknown> {
  return {
    parent_model: "",
    format: "safetensors",
    family: "",
    families: null,
    parameter_size: "",
    quantization_level: quantize ?? "",
  };
}

/** Expiry time of the model, far in the future: it stays loaded until the server ends. */
const NEVER = "9999-12-31T23:59:59Z";

function loaded(service: Service): unknown {
  const { engine, model } = readyOf(service);
  const { bytes } = engine.info.weights;
  return {
    ...modelOf(service, model),
    expires_at: NEVER,
    size_vram: bytes,
    context_length: maxRequestTokens(engine.info),
  };
}

/** Clients read the context length under the architecture's name, and the capabilities. */
function shown(service: Service, { engine }: Ready): unknown {
  const { chatTemplate, hasChatTemplate, reasoning } = engine.info;
  return {
    modelfile: "",
    parameters: "",
    template: chatTemplate ?? "",
    details: detailsOf(engine.info.weights),
    model_info: {
      "general.architecture": "eyrie",
      "general.basename": engine.info.name,
      "eyrie.context_length": maxRequestTokens(engine.info),
    },
    capabilities: [
      "completion",
      ...hasChatTemplate ? ["tools"] : [],
      ...reasoning.switchable || reasoning.channels !== undefined ? ["thinking"] : [],
    ],
    modified_at: service.started.toISOString(),
  };
}

/** A part of an answer. */
interface AnswerPart {
  readonly content: string;
  readonly thinking?: string;
  readonly calls?: readonly { readonly name: string; readonly arguments: string }[];
}

type AsMessage = (said: AnswerPart) => Record<string, unknown>;

function asMessage({ content, thinking, calls }: AnswerPart): Record<string, unknown> {
  const tool_calls = calls?.flatMap(({ name, arguments: json }) => {
    const given = objectOf(json);
    return given === undefined ? [] : [{ function: { name, arguments: given } }];
  });
  return {
    message: {
      role: "assistant",
      content,
      ...thinking ? { thinking } : {},
      ...tool_calls?.length ? { tool_calls } : {},
    },
  };
}

function asResponse({ content, thinking }: AnswerPart): Record<string, unknown> {
  return { response: content, ...thinking ? { thinking } : {} };
}

/**
 * The answer to a request without a prompt, with which ollama's clients load the model, or unload it where it is to be
 * kept for 0 s. The model is loaded as long as the server runs.
 */
function loadedAnswer(
  { model }: Ready,
  { keep_alive: keep }: Pick<OllamaChat, "keep_alive">,
  as: AsMessage,
): Response {
  const none = keep === 0 ||
    (typeof keep === "string" && /^0(?:\.0+)?(?:ns|us|ms|s|m|h)?$/.test(keep));
  return Response.json({
    model,
    created_at: new Date().toISOString(),
    ...as({ content: "" }),
    done: true,
    done_reason: none ? "unload" : "load",
  });
}

/** Undefined for arguments that the answer's end cut. */
function objectOf(json: string): unknown {
  try {
    return parseToWrite(json);
  } catch {
    return undefined;
  }
}

async function answered(
  call: ApiCall,
  { ready, ask, stream, asMessage: as }: {
    readonly ready: Ready;
    readonly ask: ChatAsk;
    readonly stream: boolean | null | undefined;
    readonly asMessage: AsMessage;
  },
): Promise<Response> {
  const choices = await chatChoices(call, ready, ask);
  const head = (done: boolean) => (
    { model: ready.model, created_at: new Date().toISOString(), done }
  );
  if (stream ?? true) {
    return lineStream(
      lines(choices, { head, as }),
      choices.leave,
    );
  }
  const [answer] = await gather(choices);
  const { text, reasoning, calls, ended } = answer as WholeAnswer;
  const said = as({ content: text, thinking: reasoning, calls });
  return Response.json({ ...head(true), ...said, ...last(ended) });
}

async function* lines(
  { pieces, failed }: Choices,
  { head, as }: {
    readonly head: (done: boolean) => Record<string, unknown>;
    readonly as: AsMessage;
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
        yield { ...head(true), ...as({ content: "" }), ...last(piece.ended) };
      }
    }
  } catch (error) {
    yield { error: failed(error).message };
  }
}

/** Counts and times in nanoseconds. */
function last(ended: AnswerOutcome): Record<string, unknown> {
  const { result, finish } = ended;
  const { prompt_ms = 0, predicted_ms = 0 } = timingsOf(ended);
  const nanoseconds = (ms: number) => Math.round(ms * 1e6);
  return {
    done_reason: finish === "length" ? "length" : "stop",
    total_duration: nanoseconds(result.timing.queuedMs + prompt_ms + predicted_ms),
    // The model was loaded before the request.
    load_duration: 0,
    prompt_eval_count: result.promptIds.length,
    prompt_eval_duration: nanoseconds(prompt_ms),
    eval_count: result.outputIds.length,
    eval_duration: nanoseconds(predicted_ms),
  };
}
