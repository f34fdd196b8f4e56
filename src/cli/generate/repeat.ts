/** What `--json` and the lines of a batch report so that a run can be repeated. */
import { defined } from "../../defined.ts";
import denoJson from "../../../deno.json" with { type: "json" };
import type { PromptInput } from "../../engine/load/text.ts";
import type { GenerateRequest } from "../../engine/schedule/events.ts";
import type { Engine } from "../../engine/engine.ts";
import { modelReference } from "../open/reference.ts";
import { grammarField } from "./constraint.ts";
import { COMMANDS } from "../options/commands.ts";
import type { GenerateOptions } from "../options/options.ts";

/** A request as a line that `--batch` takes: the prompt, and sampling as it was used. */
export function requestReport(
  input: PromptInput,
  { sampling, maxTokens, stop, ignoreEos, grammar, logprobs }: GenerateRequest,
): Record<string, unknown> {
  const { temperature, topK, topP, minP, seed, logitBias } = sampling;
  const { repetitionPenalty, frequencyPenalty, presencePenalty } = sampling;
  return {
    ..."raw" in input ? { prompt: input.raw } : { messages: input.messages },
    temperature,
    top_k: topK,
    top_p: topP,
    min_p: minP,
    repetition_penalty: repetitionPenalty,
    frequency_penalty: frequencyPenalty,
    presence_penalty: presencePenalty,
    logit_bias: logitBias,
    seed,
    max_tokens: maxTokens,
    stop,
    ignore_eos: ignoreEos,
    ...grammar && grammarField(grammar),
    ...defined({ logprobs }),
  };
}

/** Reports what answered, and the flags that open the same engine again. */
export function runReport(engine: Engine, options: GenerateOptions): Record<string, unknown> {
  const { device, weights, draftName } = engine.info;
  const embedded = options.model === undefined;
  // The embedded model is identified by the version.
  const model = embedded ? engine.info.name : modelReference(engine.info.name);
  const ownDraft = embedded && (options.draft === undefined || options.draft === "auto");
  const draft = draftName && !ownDraft ? modelReference(draftName) : draftName;
  return {
    version: denoJson.version,
    deno: Deno.version.deno,
    model,
    draft: draft ?? null,
    quantize: weights.quantize ?? null,
    quantize_draft: weights.quantizeDraft ?? null,
    kv_dtype: engine.info.kvDtype,
    adapter: device.adapter,
    backend: device.backend,
    webgpu: device.webgpu,
    flags: givenFlags({
      ...options,
      ...embedded ? {} : { model },
      ...ownDraft || !draft ? {} : { draft },
    }),
  };
}

/** The given flags that say what is opened and how prompts are rendered, by their names. */
function givenFlags(options: GenerateOptions): Record<string, unknown> {
  const { Model, Prompt, Speculation } = COMMANDS.generate.groups;
  const { promptFile: _file, prediction: _text, ...flags } = {
    ...Model,
    ...Prompt,
    ...Speculation,
  };
  const values = new Map<string, unknown>(Object.entries(options));
  return Object.fromEntries(
    Object.entries(flags).map(([key, { flag }]) => [flag.slice(2), values.get(key)] as const)
      .filter(([, value]) => value !== undefined && value !== false && !isEmpty(value)),
  );
}

function isEmpty(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}
