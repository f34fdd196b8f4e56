import { setImmediate } from "node:timers/promises";
import { NOT_A_TOKEN } from "../../shaders/choose.ts";
import { UsageError } from "../errors.ts";
import { type RoundCount, type SpeculativeStats, speculativeStats } from "../speculate/stats.ts";
import { stopScanner } from "../text/stop.ts";
import { textStream } from "../text/stream.ts";
import type { Tokenizer } from "../text/tokenizer.ts";
import type { Core, Slot } from "./core.ts";
import type { EngineEvent, FinishReason, GenerateRequest } from "./events.ts";

/** What a request runs on. */
export interface Generation {
  readonly core: Core;
  readonly tokenizer: Tokenizer;
  /** Of the target, for messages. */
  readonly name: string;
  readonly eosTokenIds: readonly number[];
  readonly algorithm: SpeculativeStats["algorithm"];
}

/** Timers and signals wait while the GPU is read; give them a turn at least this often. */
const TURN_MS = 8;

/**
 * Runs one request in a slot: prefill of what the slot does not hold yet, then rounds until a stop.
 *
 * @throws UsageError for an empty prompt, one that fills the context, or logits that are no numbers.
 */
export async function* generate(
  generation: Generation,
  slot: Slot,
  request: GenerateRequest,
): AsyncGenerator<EngineEvent> {
  const { core } = generation;
  checkPrompt(generation, request);
  const turn = turns();
  const output = openOutput(generation, request);
  const started = performance.now();

  core.setSampling(slot, request.sampling);
  const cached = reusable(slot, request, core.models.draft !== undefined);
  yield* prefill(generation, slot, request, cached);
  const prefillMs = performance.now() - started;
  if (!request.signal?.aborted) yield* output.take({ ids: [slot.root], accepted: 0, drafts: [] });

  const numSteps = core.models.draft ? request.numSteps : 0;
  const decoding = performance.now();
  while (!output.finished && !request.signal?.aborted) {
    const [lane] = await core.round([slot], numSteps);
    if (lane) yield* output.take(lane);
    await turn();
  }
  const decodeMs = performance.now() - decoding;
  yield* output.end({ prefillMs, decodeMs, cached, numSteps });
}

function checkPrompt({ name, core }: Generation, { promptIds, maxTokens }: GenerateRequest): void {
  const { contextLength } = core.capacity;
  if (promptIds.length === 0) throw new UsageError(`Cannot generate: the prompt is empty`);
  if (promptIds.length >= contextLength) {
    throw new UsageError(
      `Cannot generate: the prompt has ${promptIds.length} tokens, ` +
        `the context of "${name}" holds ${contextLength}`,
    );
  }
  if (maxTokens < 1) throw new UsageError(`Cannot generate: max tokens is ${maxTokens}`);
}

/**
 * Tokens of the prompt whose keys and values the slot holds. The last of them is run again: its
 * draft entry pairs its hidden row with the next token, which may be another one now; and a prompt
 * that is cached whole still needs the logits of its last row.
 */
function reusable(slot: Slot, { promptIds }: GenerateRequest, draft: boolean): number {
  const most = Math.min(slot.tokens.length, promptIds.length);
  let common = 0;
  while (common < most && slot.tokens[common] === promptIds[common]) common++;
  return Math.max(0, Math.min(common - 1, draft ? slot.draftLength : Infinity));
}

async function* prefill(
  { core }: Generation,
  slot: Slot,
  { promptIds, signal }: GenerateRequest,
  cached: number,
): AsyncGenerator<EngineEvent> {
  const total = promptIds.length;
  yield { kind: "prefill", done: cached, total, cached };
  for (let from = cached; from < total && !signal?.aborted;) {
    const to = Math.min(total, from + core.capacity.prefillRows);
    await core.prefill(slot, promptIds, from, to);
    yield { kind: "prefill", done: to, total, cached };
    await setImmediate();
    from = to;
  }
}

/** Gives timers and signals a turn when the last one is TURN_MS ago. */
function turns(): () => Promise<void> {
  let last = performance.now();
  return async () => {
    if (performance.now() - last < TURN_MS) return;
    await setImmediate();
    last = performance.now();
  };
}

interface Taken {
  readonly ids: readonly number[];
  readonly accepted: number;
  readonly drafts: readonly number[];
}

interface Spent {
  readonly prefillMs: number;
  readonly decodeMs: number;
  readonly cached: number;
  readonly numSteps: number;
}

/** Folds rounds into text, stops and counts. */
interface Output {
  readonly finished: FinishReason | undefined;
  take(round: Taken): Generator<EngineEvent>;
  end(spent: Spent): Generator<EngineEvent>;
}

function openOutput(generation: Generation, request: GenerateRequest): Output {
  const { core, tokenizer, name, eosTokenIds, algorithm } = generation;
  const stream = textStream(tokenizer);
  const scanner = stopScanner(request.stop);
  const room = core.capacity.contextLength - request.promptIds.length;
  const most = Math.min(request.maxTokens, room);
  const outputIds: number[] = [];
  const rounds: RoundCount[] = [];
  const drafts: (readonly number[])[] = [];
  let text = "";
  let finished: FinishReason | undefined;

  /** Adds one token; its text if any. */
  function add(id: number): string {
    if (id === NOT_A_TOKEN) {
      const position = request.promptIds.length + outputIds.length;
      throw new UsageError(
        `Cannot generate with "${name}": the logits at position ${position} are not numbers`,
      );
    }
    outputIds.push(id);
    const ended = !request.ignoreEos && eosTokenIds.includes(id);
    const { text: piece, stopped } = scanner.push(stream.push([id]));
    if (ended || stopped) finished = "stop";
    else if (outputIds.length >= most) finished = "length";
    return piece;
  }

  return {
    get finished() {
      return finished;
    },
    *take(round) {
      const kept: number[] = [];
      let piece = "";
      for (const id of round.ids) {
        if (finished) break;
        piece += add(id);
        kept.push(id);
      }
      const accepted = Math.min(round.accepted, kept.length);
      // The token that prefill chose is no round.
      if (outputIds.length > kept.length) {
        rounds.push({ drafted: round.drafts.length, accepted, emitted: kept.length });
        drafts.push(round.drafts);
      }
      text += piece;
      yield { kind: "round", ids: kept, accepted };
      if (piece) yield { kind: "text", text: piece };
    },
    *end({ prefillMs, decodeMs, cached, numSteps }) {
      const held = scanner.push(stream.end());
      const rest = held.text + scanner.end();
      if (rest) yield { kind: "text", text: rest };
      const setting = {
        algorithm: numSteps > 0 ? algorithm : "NONE",
        num_steps: numSteps,
        eagle_topk: numSteps > 0 ? 1 : 0,
        num_draft_tokens: numSteps > 0 ? numSteps + 1 : 0,
      } as const;
      const seconds = decodeMs / 1000;
      const tokensPerSecond = seconds > 0 ? Math.max(0, outputIds.length - 1) / seconds : 0;
      yield {
        kind: "finish",
        result: {
          text: text + rest,
          promptIds: request.promptIds,
          outputIds,
          finishReason: finished ?? "interrupt",
          timing: { prefillMs, decodeMs, timeToFirstTokenMs: prefillMs, tokensPerSecond },
          cachedTokens: cached,
          speculative: speculativeStats(setting, rounds),
          drafts,
        },
      };
    },
  };
}
