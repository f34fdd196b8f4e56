import { RemoteError, UsageError } from "../errors.ts";
import { isObject } from "../objects.ts";
import type { Endpoint } from "./endpoint.ts";
import { ask, textIn } from "./http.ts";
import { type Json, listOf, objectOf, parsed, textOf } from "./json.ts";

/** Servers that report how they speculate. */
const KINDS = ["eyrie", "sglang", "vllm"] as const;

export type ServerKind = typeof KINDS[number] | "other";

/** A server that has answered, and the model that it is asked for. */
export interface Server {
  readonly endpoint: Endpoint;
  /** Kind of the server, by `owned_by` of its list of models. */
  readonly kind: ServerKind;
  readonly model: string;
}

/** A server that is busy answers this later than others, but one that is quiet for so long hangs. */
const MODELS_MS = 20_000;

/**
 * Asks the server what it serves.
 *
 * @param model default the only one that it serves.
 * @throws UsageError where nothing is there, it refuses the key, or several models are served and
 * none is named; RemoteError where it does not answer in time.
 */
export async function openServer(
  endpoint: Endpoint,
  { model, signal, modelsMs = MODELS_MS }: {
    readonly model?: string | undefined;
    readonly signal: AbortSignal;
    /** For so long the server may say nothing. */
    readonly modelsMs?: number;
  },
): Promise<Server> {
  const url = `${endpoint.api}/models`;
  const within = AbortSignal.any([signal, AbortSignal.timeout(modelsMs)]);
  const absent = model === undefined ? [] : [404, 405];
  let response: Response;
  let text: string;
  try {
    response = await ask(endpoint, { url, absent, signal: within });
    text = await textIn(response, within);
  } catch (error) {
    if (signal.aborted || !within.aborted) throw error;
    throw new RemoteError(
      `Cannot use "${endpoint.shown}": it has not said which models it serves within ` +
        `${modelsMs / 1000} s`,
    );
  }
  const json = parsed(text);
  if (response.ok && !isObject(json)) {
    throw new RemoteError(
      `Cannot use "${endpoint.shown}": its ${new URL(url).pathname} is no JSON, or was cut off; ` +
        "is it a server of OpenAI's API?",
    );
  }
  const served = response.ok ? listOf(objectOf(json)["data"]).filter(isObject) : [];
  const name = model ?? onlyOne(served, endpoint);
  const entry = served.find(({ id }) => id === name) ?? served[0];
  return { endpoint, kind: kindOf(entry), model: name };
}

function kindOf(entry: Json | undefined): ServerKind {
  return KINDS.find((kind) => kind === entry?.["owned_by"]) ?? "other";
}

/** vLLM lists LoRA adapters next to their model, which is their parent; Eyrie the names of one model. */
function onlyOne(served: readonly Json[], { shown }: Endpoint): string {
  const names = served.filter(({ parent }) => !parent).flatMap(({ id }) => textOf(id) ?? []);
  const [first, ...others] = names;
  if (first === undefined) {
    throw new UsageError(
      `Cannot use "${shown}": it does not say which model it serves; give --model`,
    );
  }
  if (others.length === 0 || served.every((entry) => kindOf(entry) === "eyrie")) return first;
  const more = names.length > 8 ? ", ..." : "";
  throw new UsageError(
    `Cannot use "${shown}": it serves several models; give --model ${
      names.slice(0, 8).join(", ")
    }${more}`,
  );
}
