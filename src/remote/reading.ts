import { isObject } from "../objects.ts";
import type { Acceptance } from "./acceptance.ts";
import { between, type Counters, countersIn } from "./counters.ts";
import { look } from "./http.ts";
import { type Json, listOf, numberOf, objectOf, parsed, textOf } from "./json.ts";
import type { Server, ServerKind } from "./server.ts";

/** How a server speculates. */
export interface ServerSpeculation {
  /** Undefined: it does not draft. */
  readonly algorithm: string | undefined;
  readonly draft: string | undefined;
  readonly numSteps: number | undefined;
  readonly eagleTopk: number | undefined;
  readonly numDraftTokens: number | undefined;
  readonly adaptive: boolean;
}

/** What a server reports about itself at a moment; undefined: nothing. */
export interface Reading {
  readonly speculation?: ServerSpeculation | undefined;
  /** Requests that it answers at once. */
  readonly maxRunning?: number | undefined;
  /** Tokens of a round that drafted, mean since its start. */
  readonly acceptLength?: number | undefined;
  readonly counters?: Counters | undefined;
}

/** Paths at which a server reports its settings: SGLang's, the newer one first. */
const INFO: Partial<Record<ServerKind, readonly string[]>> = {
  eyrie: ["/server_info"],
  sglang: ["/server_info", "/get_server_info"],
};

/** Reads what the server counts and how it was started. @throws the signal's reason if it aborts. */
export async function readServer(server: Server, signal: AbortSignal): Promise<Reading> {
  const { endpoint } = server;
  const [settings, metrics] = await Promise.all([
    readSettings(server, signal),
    look(endpoint, `${endpoint.root}/metrics`, signal),
  ]);
  return { ...settings, counters: countersIn(metrics ?? "") };
}

async function readSettings({ endpoint, kind }: Server, signal: AbortSignal): Promise<Reading> {
  for (const path of INFO[kind] ?? []) {
    const json = parsed(await look(endpoint, `${endpoint.root}${path}`, signal) ?? "");
    if (isObject(json)) return infoOf(json);
  }
  return {};
}

/**
 * SGLang's /server_info: the arguments that it was started with, and in `internal_states` those that
 * hold now, which the adaptive mode changes, with the mean `avg_spec_accept_length`.
 */
export function infoOf(info: Json): Reading {
  const [state] = listOf(info["internal_states"]).map(objectOf);
  const now = { ...info, ...state };
  const algorithm = textOf(info["speculative_algorithm"]);
  const length = numberOf(now["avg_spec_accept_length"]);
  return {
    speculation: {
      algorithm: algorithm === "NONE" ? undefined : algorithm,
      draft: textOf(info["speculative_draft_model_path"]),
      numSteps: numberOf(now["speculative_num_steps"]),
      eagleTopk: numberOf(now["speculative_eagle_topk"]),
      numDraftTokens: numberOf(now["speculative_num_draft_tokens"]),
      adaptive: info["speculative_adaptive"] === true,
    },
    maxRunning: numberOf(info["max_running_requests"]),
    acceptLength: length !== undefined && length > 0 ? length : undefined,
  };
}

/** What the server's own numbers say of the time between two readings. */
export function acceptanceBetween(before: Reading, after: Reading): Acceptance | undefined {
  if (before.counters !== undefined && after.counters !== undefined) {
    return between(before.counters, after.counters);
  }
  const { acceptLength } = after;
  return acceptLength === undefined ? undefined : { source: "server_info", acceptLength };
}

/** `EAGLE3 with org/head, 3 steps`; undefined where nothing is reported. */
export function speculationText(speculation: ServerSpeculation | undefined): string | undefined {
  const setting = settingText(speculation);
  const { draft } = speculation ?? {};
  return draft === undefined ? setting : setting?.replace(/^[^,]+/, `$& with ${draft}`);
}

/** The same without the draft's name. */
export function settingText(speculation: ServerSpeculation | undefined): string | undefined {
  if (speculation === undefined) return undefined;
  const { algorithm, numSteps, eagleTopk, numDraftTokens, adaptive } = speculation;
  if (algorithm === undefined) return "no drafts";
  if (adaptive) return `${algorithm}, adaptive`;
  const tree = eagleTopk !== undefined && eagleTopk > 1;
  return [
    algorithm,
    ...numSteps === undefined ? [] : [`${numSteps} steps`],
    ...tree ? [`topk ${eagleTopk}`, `${numDraftTokens ?? "?"} draft tokens`] : [],
  ].join(", ");
}
