import { UsageError } from "../../errors.ts";
import type { Grammar } from "../../grammar/rules/grammar.ts";
import { type Endpoint, endpointOf } from "../../remote/endpoint.ts";
import type { Json } from "../../remote/json.ts";
import { templateArguments } from "../open/template.ts";
import type { ChatOptions } from "../options/options.ts";

/** The server that `--remote` names. @throws UsageError */
export function remoteEndpoint(remote: string): Endpoint {
  return endpointOf(remote, (name) => Deno.env.get(name));
}

/** What the flags or the settings of a chat say about a request. */
export interface RequestSettings extends
  Pick<
    ChatOptions,
    | "temperature"
    | "topK"
    | "topP"
    | "minP"
    | "repetitionPenalty"
    | "frequencyPenalty"
    | "presencePenalty"
    | "seed"
    | "maxTokens"
    | "stop"
    | "ignoreEos"
    | "think"
    | "templateArg"
  > {
  readonly logitBias?: ChatOptions["logitBias"] | undefined;
}

/**
 * Fields of a request's body: only those that were set; the server chooses the others. Fields that OpenAI
 * does not have use the names of vLLM, SGLang and Eyrie.
 */
export function fieldsOf(settings: RequestSettings, endpoint: Endpoint, grammar?: Grammar): Json {
  const { logitBias = {}, stop, maxTokens } = settings;
  const kwargs = templateArguments(settings);
  const fields = {
    temperature: settings.temperature,
    top_p: settings.topP,
    top_k: settings.topK,
    min_p: settings.minP,
    repetition_penalty: settings.repetitionPenalty,
    frequency_penalty: settings.frequencyPenalty,
    presence_penalty: settings.presencePenalty,
    logit_bias: Object.keys(logitBias).length > 0 ? logitBias : undefined,
    seed: settings.seed,
    [endpoint.limitField]: maxTokens,
    stop: stop.length > 0 ? stop : undefined,
    ignore_eos: settings.ignoreEos || undefined,
    chat_template_kwargs: Object.keys(kwargs).length > 0 ? kwargs : undefined,
    response_format: grammar && formatOf(grammar),
  };
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

function formatOf(grammar: Grammar): Json {
  if (grammar.kind === "json object") return { type: "json_object" };
  if (grammar.kind !== "json schema") {
    throw new UsageError(`Cannot ask a server for a grammar: allowed are JSON schemas`);
  }
  const { schema } = grammar;
  return { type: "json_schema", json_schema: { name: "output", schema, strict: true } };
}
