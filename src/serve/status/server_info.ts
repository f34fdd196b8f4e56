import { maxRequestTokens } from "../answers/limits.ts";
import { CELLS_PER_PAGE } from "../../engine/schedule/sequence_pages.ts";
import { isChain, tierText } from "../../speculate/round_shape.ts";
import { get, type Route } from "../service/route.ts";
import { readyOf, type Service } from "../service/service.ts";
import { liveStatus } from "./live.ts";

export const STATUS_ROUTES: readonly Route[] = [
  get(
    { path: "/metrics", summary: "Counters as Prometheus reads them", tag: "Status" },
    async ({ service }) => await metrics(service),
  ),
  get(
    {
      path: "/server_info",
      summary: "How the server speculates, and what it does now",
      tag: "Status",
    },
    async ({ service }) => Response.json(await serverInfo(service)),
  ),
  get(
    {
      path: "/props",
      summary: "The model's properties, as llama-server reports them",
      tag: "Status",
    },
    ({ service }) => Response.json(props(service)),
  ),
  get(
    { path: "/slots", summary: "What each place of the batch does", tag: "Status" },
    ({ service }) => Response.json(slots(service)),
  ),
];

/** Answers also while there is no engine; the engine's numbers are 0 then. */
async function metrics({ phase, table, metrics }: Service): Promise<Response> {
  const status = phase.kind === "ready" ? await liveStatus(phase.ready.engine) : undefined;
  const { free, total } = status?.pages ?? { free: 0, total: 0 };
  const text = metrics.text({
    running: table.running,
    waiting: table.waiting,
    kvUsage: total > 0 ? 1 - free / total : 0,
    kvTokens: total * CELLS_PER_PAGE,
    preemptions: status?.counts.preemptions ?? 0,
  });
  return new Response(text, { headers: { "content-type": metrics.contentType } });
}

/** The names are those of SGLang's /server_info, as far as it has them. */
async function serverInfo(service: Service): Promise<unknown> {
  const { engine, model } = readyOf(service);
  const { options, table, started } = service;
  const { counts, speculation, pages } = await liveStatus(engine);
  const { policy, own, active_num_steps, rounds, switches, tier_ms } = speculation;
  const live = [...table.live];
  const total = (of: (each: typeof live[number]) => number) =>
    live.reduce((sum, each) => sum + of(each), 0);
  return {
    version: options.version,
    model_path: engine.info.name,
    served_model_name: model,
    status: "ready",
    start_time: started.toISOString(),
    device: engine.info.device,
    kv_cache_dtype: engine.info.kvDtype,
    quantization: engine.info.weights.quantize ?? null,
    context_length: engine.info.contextLength,
    max_total_num_tokens: pages.total * CELLS_PER_PAGE,
    max_req_len: maxRequestTokens(engine.info),
    max_running_requests: options.maxBatch,
    max_queued_requests: options.maxQueue,
    speculative_algorithm: engine.info.algorithm === "NONE" ? null : engine.info.algorithm,
    speculative_draft_model_path: engine.info.draftName ?? null,
    speculative_num_steps: engine.info.tier.depth,
    speculative_eagle_topk: engine.info.tier.depth > 0 ? engine.info.tier.width : 0,
    speculative_num_draft_tokens: engine.info.tier.depth > 0 ? engine.info.tier.rows : 0,
    speculative_adaptive: policy !== "static",
    lossless: engine.info.acceptThresholds === undefined,
    internal_states: [{
      num_running_reqs: table.running,
      num_waiting_reqs: table.waiting,
      kv_pages: pages,
      avg_spec_accept_length: ratio(
        // The prefill chose the first token of a request; one that waits has none yet.
        total(({ firstToken, outputTokens }) => firstToken === undefined ? 0 : outputTokens - 1),
        total((each) => each.rounds),
      ),
      adaptive: {
        policy,
        current_steps: active_num_steps,
        rounds,
        switches,
        tier_ms,
        candidates: engine.info.tiers.shapes.map((tier) =>
          isChain(tier) ? tier.depth : tierText(tier)
        ),
        ...own.json,
      },
      counts,
    }],
  };
}

function props(service: Service): unknown {
  const { engine, model } = readyOf(service);
  const { temperature, topK, topP, minP } = service.options.sampling(engine);
  const { repetitionPenalty, frequencyPenalty, presencePenalty } = service.options.sampling(engine);
  return {
    total_slots: service.options.maxBatch,
    default_generation_settings: {
      n_ctx: engine.info.contextLength,
      params: {
        temperature,
        top_k: topK,
        top_p: topP,
        min_p: minP,
        repeat_penalty: repetitionPenalty,
        frequency_penalty: frequencyPenalty,
        presence_penalty: presencePenalty,
      },
    },
    model_alias: model,
    model_path: engine.info.name,
    chat_template: engine.info.chatTemplate ?? "",
    modalities: { vision: false, audio: false },
    build_info: `eyrie-${service.options.version}`,
  };
}

function slots(service: Service): unknown {
  const { engine } = readyOf(service);
  const { table, options: { maxBatch } } = service;
  const taken = new Map([...table.live].map((each) => [each.slot, each]));
  const now = performance.now();
  return Array.from({ length: maxBatch }, (_, id) => {
    const live = taken.get(id);
    if (live === undefined) return { id, n_ctx: engine.info.contextLength, is_processing: false };
    return {
      id,
      n_ctx: engine.info.contextLength,
      is_processing: true,
      id_task: live.id,
      state: live.state,
      n_prompt_tokens: live.promptTokens,
      n_prompt_tokens_processed: live.promptDone,
      n_prompt_tokens_cache: live.cachedTokens,
      n_decoded: live.outputTokens,
      speculative: live.draftTokens > 0,
      rounds: live.rounds,
      num_steps: live.depth,
      draft_n: live.draftTokens,
      draft_n_accepted: live.acceptedTokens,
      accept_length: ratio(live.outputTokens - 1, live.rounds),
      ms: Math.round(now - live.arrived),
    };
  });
}

function ratio(part: number, whole: number): number {
  return whole > 0 ? Math.round(part / whole * 1000) / 1000 : 0;
}
