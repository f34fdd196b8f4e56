import type { AcceptThresholds } from "../../speculate/accept_thresholds.ts";
import { isChain, tierText } from "../../speculate/round_shape.ts";
import type { GenerateResult, TextLogprob } from "../../engine/schedule/events.ts";
import { unitsText } from "../../engine/matrices/units_report.ts";
import { bytesText, percentText } from "../../text/numbers.ts";
import type { Engine, EngineInfo } from "../../engine/engine.ts";
import { shownName } from "../open/reference.ts";

/** A finished request: what the statistics describe. */
export interface Finished {
  readonly engine: Engine;
  readonly result: GenerateResult & { readonly reasoning?: string };
  /** The noise key that was used; undefined when decoding was greedy. */
  readonly seed: number | undefined;
}

/** A person notices a wait that is as long. */
const NOTICED_MS = 1000;

/** The closing line of a run: tokens, rates, acceptance, seed. */
export function statsLine({ engine, result, seed }: Finished): string {
  const { timing, speculative, promptIds, outputIds, cachedTokens } = result;
  const cached = cachedTokens > 0 ? ` (${cachedTokens} cached)` : "";
  const parts = [
    outputText(outputIds.length, "token", timing),
    `prompt ${plural(promptIds.length, "token")}${cached} in ${seconds(timing.prefillMs)}`,
    // The only request of an engine waits for nothing else.
    ...noticeable(timing.queuedMs, "to compile the grammar"),
    ...noticeable(timing.compileMs, "to compile kernels"),
  ];
  if (speculative.draft_tokens > 0) {
    parts.push(
      `${speculative.mean_accept_length.toFixed(2)} tokens a round`,
      `${percentText(speculative.draft_acceptance_rate)} of drafts accepted`,
      ...engine.info.acceptThresholds ? ["not lossless"] : [],
    );
  }
  if (seed !== undefined) parts.push(`seed ${seed}`);
  return parts.join(", ");
}

/**
 * An answer's tokens, or what else was counted: `5 tokens, 193 ms after the first, 20.8 tokens/s`. Time and rate are
 * those of the tokens after the first, which a single token does not have.
 */
export function outputText(
  count: number,
  noun: string,
  { decodeMs, tokensPerSecond = 0 }: {
    readonly decodeMs: number;
    readonly tokensPerSecond?: number | undefined;
  },
): string {
  if (count < 2) return plural(count, noun);
  const rate = tokensPerSecond > 0 ? `, ${tokensPerSecond.toFixed(1)} tokens/s` : "";
  return `${plural(count, noun)}, ${seconds(decodeMs)} after the first${rate}`;
}

/** Its grammar is what the only request of an engine waits for. */
function grammarRows({ queuedMs }: GenerateResult["timing"]): [string, string][] {
  return queuedMs < NOTICED_MS ? [] : [["grammar", `${seconds(queuedMs)} to compile, before it`]];
}

function promptKernels({ compileMs }: GenerateResult["timing"]): string {
  return `${seconds(compileMs)} to compile the prompt's, before it`;
}

/** What took time before the prompt. */
function noticeable(ms: number, what: string): string[] {
  return ms < NOTICED_MS ? [] : [`${seconds(ms)} before it ${what}`];
}

/** The built-in WebGPU is not named. */
function deviceText({ adapter, backend, webgpu, software }: EngineInfo["device"]): string {
  const other = webgpu === "builtin" ? [] : [webgpu];
  return [adapter, backend, ...other, ...software ? ["software"] : []].join(", ");
}

/** `--stats`: one fact a line. */
export function statsTable({ engine, result, seed }: Finished): string {
  const { timing, speculative, promptIds, outputIds } = result;
  const { device } = engine.info;
  const prefilled = promptIds.length - result.cachedTokens;
  const rows: [string, string][] = [
    ["model", shownName(engine.info.name)],
    ["draft", draftText(engine, result)],
    ["device", deviceText(device)],
    ...weightRows(engine),
    ...engine.info.kvDtype === "f32" ? [] : [["kv", engine.info.kvDtype] as [string, string]],
    [
      "load",
      `${seconds(engine.info.loadMs)}, of which ${seconds(engine.info.compileMs)} for kernels`,
    ],
    ...grammarRows(timing),
    ...timing.compileMs > 0 ? [["kernels", promptKernels(timing)] as [string, string]] : [],
    ...tunedRows(engine),
    ...engine.info.units ? [["units", unitsText(engine.info.units)] as [string, string]] : [],
    [
      "prompt",
      `${plural(promptIds.length, "token")}, ${result.cachedTokens} cached, ` +
      `${seconds(timing.prefillMs)}, ${rate(prefilled, timing.prefillMs)}`,
    ],
    ["first token", seconds(timing.timeToFirstTokenMs)],
    [
      "output",
      `${outputText(outputIds.length, "token", timing)}, ended by ${result.finishReason}`,
    ],
  ];
  if (speculative.draft_tokens > 0) rows.push(...speculationRows(engine, result));
  rows.push(...adaptiveRows(engine));
  if (seed !== undefined) rows.push(["seed", String(seed)]);
  return rows.map(([name, text]) => `${name.padEnd(12)}${text}`).join("\n");
}

function weightRows({ info: { weights, draftName } }: Engine): [string, string][] {
  const { quantize, quantizeDraft, bytes } = weights;
  if (quantize === undefined) return [];
  const draft = draftName && !quantizeDraft ? ", the draft as it is" : "";
  return [["weights", `${quantize}${draft}, ${bytesText(bytes)}`]];
}

/** Result of autotuning: how many launches of matmul shapes are known, measured, and left. */
function tunedRows({ info: { tuned } }: Engine): [string, string][] {
  if (tuned === undefined) return [];
  const { known, measured, left, ms } = tuned;
  const later = left > 0 ? `, ${left} left for the next start` : "";
  return [["tuning", `${known} launches known, ${measured} measured${later}, ${seconds(ms)}`]];
}

function speculationRows(
  { info: { acceptThresholds } }: Engine,
  { speculative, prediction }: GenerateResult,
): [string, string][] {
  const { rounds, draft_tokens, accepted_tokens, acceptance_per_position } = speculative;
  return [
    ["rounds", `${rounds}, ${speculative.mean_accept_length.toFixed(2)} tokens each`],
    [
      "drafts",
      `${draft_tokens}, ${accepted_tokens} accepted (${
        percentText(speculative.draft_acceptance_rate)
      })`,
    ],
    ...prediction
      ? [["predicted", `${prediction.drafted} of them, ${prediction.accepted} accepted`] as [
        string,
        string,
      ]]
      : [],
    ["by position", acceptance_per_position.map((share) => percentText(share)).join(" ")],
    ...acceptThresholds
      ? [["acceptance", `relaxed, ${thresholdsText(acceptThresholds)}: not lossless`] as [
        string,
        string,
      ]]
      : [],
  ];
}

/** The thresholds of relaxed acceptance. */
export function thresholdsText({ single, acc }: AcceptThresholds): string {
  return `single ${single}, acc ${acc}`;
}

/** Where acceptance was relaxed, that it was; nothing where the text is lossless. */
export function lossReport({ info: { acceptThresholds: of } }: Engine): Record<string, unknown> {
  if (of === undefined) return {};
  return {
    lossless: false,
    accept_threshold_single: of.single,
    accept_threshold_acc: of.acc,
  };
}

function draftText(
  { info: { draftName, algorithm } }: Engine,
  { speculative: { num_steps: steps } }: GenerateResult,
): string {
  if (algorithm === "NONE") return "none";
  const name = draftName === undefined ? undefined : shownName(draftName);
  const named = name === undefined ? algorithm : `${name}, ${algorithm}`;
  return steps === 0 ? `${name ?? algorithm}, not used` : `${named}, ${steps} steps`;
}

/** The object of `generate --json`; its field names are a public format. */
export function jsonReport({ engine, result }: Omit<Finished, "seed">): Record<string, unknown> {
  const { timing, speculative } = result;
  const { adapter, backend, webgpu, software, features } = engine.info.device;
  return {
    text: result.text,
    ...result.reasoning ? { reasoning: result.reasoning } : {},
    prompt_ids: result.promptIds,
    output_ids: result.outputIds,
    ...logprobsReport(result),
    finish_reason: result.finishReason,
    usage: {
      prompt_tokens: result.promptIds.length,
      completion_tokens: result.outputIds.length,
      cached_tokens: result.cachedTokens,
    },
    timing: {
      load_ms: thousandths(engine.info.loadMs),
      compile_ms: thousandths(timing.compileMs),
      prefill_ms: thousandths(timing.prefillMs),
      decode_ms: thousandths(timing.decodeMs),
      time_to_first_token_ms: thousandths(timing.timeToFirstTokenMs),
      tokens_per_second: thousandths(timing.tokensPerSecond),
    },
    ...weightsReport(engine),
    ...engine.info.kvDtype === "f32" ? {} : { kv_dtype: engine.info.kvDtype },
    speculative: { ...speculative, ...lossReport(engine), ...adaptiveReport(engine) },
    ...result.prediction ? { prediction: result.prediction } : {},
    device: {
      adapter,
      backend,
      webgpu,
      software,
      features,
      ...engine.info.units ? { matrix_units: engine.info.units } : {},
    },
  };
}

/** Log-probabilities of the output tokens; nothing where none were asked for. */
export function logprobsReport({ logprobs }: GenerateResult): Record<string, unknown> {
  if (logprobs === undefined) return {};
  const named = ({ id, text, logprob }: TextLogprob) => ({ id, token: text, logprob });
  return { logprobs: logprobs.map((one) => ({ ...named(one), top_logprobs: one.top.map(named) })) };
}

/** What the weights were quantized to; nothing where they were not. */
function weightsReport({ info: { weights } }: Engine): Record<string, unknown> {
  const { quantize, quantizeDraft, bytes } = weights;
  if (quantize === undefined) return {};
  return { weights: { quantize, quantize_draft: quantizeDraft ?? null, bytes } };
}

/** What a policy did that adapts; nothing of a static depth. SGLang's controller goes unnamed. */
function adaptiveReport(
  { status: { speculation, counts }, info: { tiers } }: Engine,
): Record<string, unknown> {
  const { policy, own, ...report } = speculation;
  if (policy === "static") return {};
  const { catchUps, catchUpMs } = counts;
  const tier_ms = Object.fromEntries(
    Object.entries(report.tier_ms).map(([steps, ms]) => [steps, thousandths(ms)]),
  );
  const catch_up = { count: catchUps, ms: thousandths(catchUpMs) };
  const policyReport = { ...policy === "ema" ? {} : { policy }, ...report, ...own.json };
  return {
    adaptive: {
      ...policyReport,
      tiers: tiers.shapes.map((tier) => isChain(tier) ? tier.depth : tierText(tier)),
      tier_bytes: tiers.bytes,
      tier_ms,
      catch_up,
      ...counts.elastic ? { elastic_draft: counts.elastic } : {},
    },
  };
}

function adaptiveRows(
  { status: { speculation, counts }, info: { tiers } }: Engine,
): [string, string][] {
  const { policy, active_num_steps, switches, switch_count, own, tier_ms } = speculation;
  if (policy === "static") return [];
  const { catchUps, catchUpMs } = counts;
  return [
    ...policy === "ema" ? [] : [["policy", policy] as [string, string]],
    ["tiers", `${tiers.shapes.map(tierText).join(", ")} steps, ${bytesText(tiers.bytes)}`],
    ["tier", `${active_num_steps} steps now`],
    ...own.rows.map(([name, text]): [string, string] => [name, text]),
    ["tier time", Object.entries(tier_ms).map(([n, ms]) => `${n}: ${seconds(ms)}`).join(", ")],
    ["switches", String(switch_count)],
    ...switches.map(({ round, reason }): [string, string] => [`  round ${round}`, reason]),
    ...catchUps > 0
      ? [["catch-ups", `${catchUps}, ${seconds(catchUpMs)}`] as [string, string]]
      : [],
    ...elasticRows(counts),
  ];
}

function elasticRows({ elastic }: Engine["status"]["counts"]): [string, string][] {
  if (elastic === undefined) return [];
  const { draft, evictions, reloads, pages } = elastic;
  const text = `draft ${draft}, unloaded ${evictions} times, loaded again ${reloads} times`;
  return [["memory", `${text}, ${pages.join(" or ")} KV pages`]];
}

function thousandths(value: number): number {
  return Math.round(value * 1000) / 1000;
}

/** A time in words: `193 ms`, `1.50 s`. */
export function seconds(ms: number): string {
  return ms < 1000 ? `${ms.toFixed(0)} ms` : `${(ms / 1000).toFixed(2)} s`;
}

function rate(count: number, ms: number): string {
  return `${ms > 0 ? (count / ms * 1000).toFixed(1) : "0.0"} tokens/s`;
}

function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
