import type {
  FinishReason,
  GenerateRequest,
  GenerateResult,
  TextLogprobs,
} from "../../src/engine/schedule/events.ts";
import type { EngineEvent } from "../../src/engine/schedule/events.ts";
import { EventStream } from "../../src/engine/schedule/event_stream.ts";
import type { EngineOptions } from "../../src/engine/options.ts";
import type { Engine, EngineInfo, OpenEngine } from "../../src/engine/engine.ts";
import type { Io, TextSink } from "../../src/cli/terminal/io.ts";
import type { SpeculationPlan } from "../../src/engine/schedule/speculation.ts";
import {
  policyPlan,
  speculationPlan,
  staticPlan,
} from "../../src/engine/schedule/speculation_choice.ts";
import type { ChatMessage, TemplateArguments } from "../../src/text/chat_template.ts";
import { REASONING_MARKS, reasoningCounter } from "../../src/text/reasoning.ts";
import { relaxing } from "../../src/speculate/accept_thresholds.ts";
import { chain } from "../../src/speculate/round_shape.ts";

/** A terminal in memory, which keeps what is written to it. */
export interface FakeIo extends Io {
  readonly out: () => string;
  readonly err: () => string;
  /** Presses Ctrl+C as a signal. */
  readonly interrupt: () => void;
  /** Sends the process another signal. */
  readonly raise: (name: "SIGCONT" | "SIGWINCH") => void;
  /** Makes the terminal this wide. */
  readonly resize: (columns: number) => void;
  /** Every switch of raw mode (on or off) and every stop by Ctrl+Z, in order. */
  readonly modes: readonly (boolean | "stop")[];
  /** Sends keys or piped bytes later. */
  readonly type: (text: string) => void;
  readonly endInput: () => void;
  /** Resolves when stderr and stdout together contain the text (again, after the last wait). */
  readonly seen: (text: string) => Promise<void>;
}

interface FakeIoOptions {
  readonly stdin?: string | Uint8Array;
  readonly terminal?: boolean;
  readonly columns?: number;
  readonly stdoutBreaks?: boolean;
}

export function fakeIo(options: FakeIoOptions = {}): FakeIo {
  const { stdin, terminal = false } = options;
  let { columns = 80 } = options;
  const listeners = new Set<readonly [string, () => void]>();
  const modes: (boolean | "stop")[] = [];
  const interrupt = new AbortController();
  const encoder = new TextEncoder();
  let input!: ReadableStreamDefaultController<Uint8Array>;
  const bytes = new ReadableStream<Uint8Array>({
    start(controller) {
      input = controller;
      if (stdin === undefined) return;
      controller.enqueue(typeof stdin === "string" ? encoder.encode(stdin) : stdin);
      controller.close();
    },
  });
  let all = "";
  let searched = 0;
  let changed = Promise.withResolvers<void>();
  const output = (breaks: boolean): TextSink & { text: () => string } => {
    let text = "";
    return {
      isTerminal: terminal,
      columns: () => columns,
      rows: () => 24,
      text: () => text,
      write(piece) {
        if (breaks) throw new Deno.errors.BrokenPipe("nobody reads");
        text += piece;
        all += piece;
        changed.resolve();
        changed = Promise.withResolvers();
      },
    };
  };
  const stdout = output(options.stdoutBreaks ?? false);
  const stderr = output(false);
  return {
    stdin: { isTerminal: terminal, bytes, setRaw: (on) => void modes.push(on) },
    stdout,
    stderr,
    colour: false,
    signal: interrupt.signal,
    onSignal(name, listener) {
      const entry = [name, listener] as const;
      listeners.add(entry);
      return { [Symbol.dispose]: () => void listeners.delete(entry) };
    },
    suspend: () => void modes.push("stop"),
    raise: (name) => listeners.forEach(([of, listener]) => of === name && listener()),
    resize: (wide) => void (columns = wide),
    modes,
    out: stdout.text,
    err: stderr.text,
    interrupt: () => interrupt.abort(),
    type: (text) => input.enqueue(encoder.encode(text)),
    endInput: () => input.close(),
    async seen(text) {
      while (true) {
        const at = all.indexOf(text, searched);
        if (at >= 0) {
          searched = at + text.length;
          return;
        }
        await changed.promise;
      }
    },
  };
}

/** The id of the token that opens the reasoning; no other word has it. */
const OPEN_ID = 151667;

/** An engine that plays back a script, one token for each word. `requests` has the requests that it got. */
export interface FakeEngine extends Engine {
  readonly requests: GenerateRequest[];
  readonly prompts: (string | readonly ChatMessage[])[];
  /** The arguments that the template got for each prompt. */
  readonly templateArguments: (TemplateArguments | undefined)[];
  /** The given beginning of each prompt's answer. */
  readonly begins: (string | undefined)[];
  /** The functions that the template got for each prompt. */
  readonly tools: (readonly unknown[] | undefined)[];
  readonly opened: EngineOptions[];
  readonly open: OpenEngine;
  readonly disposed: () => boolean;
}

interface FakeEngineOptions {
  /** The answer to request number `n`; default `answer n`. */
  readonly answer?: (n: number) => string;
  readonly contextLength?: number;
  readonly maxContextLength?: number;
  readonly hasChatTemplate?: boolean;
  readonly draft?: boolean;
  /** Drafts that an answer's rounds accept; default 15. */
  readonly accepted?: number;
  /** Default 10. */
  readonly rounds?: number;
  readonly generation?: EngineInfo["generation"];
  /** Whether the template has no switch for thinking. */
  readonly unswitchable?: boolean;
  readonly weights?: EngineInfo["weights"];
  readonly tuned?: EngineInfo["tuned"];
  readonly costsLine?: string;
  /** The texts of an answer's tokens; default: its words. */
  readonly pieces?: (answer: string) => readonly string[];
  /** Waits before each word: lets a test interrupt. */
  readonly beforeWord?: (word: string) => Promise<void>;
}

export function fakeEngine(options: FakeEngineOptions = {}): FakeEngine {
  const { answer = (n: number) => `answer ${n}`, contextLength = 1000, draft = true } = options;
  const requests: GenerateRequest[] = [];
  const prompts: FakeEngine["prompts"] = [];
  const templateArguments: FakeEngine["templateArguments"] = [];
  const tools: FakeEngine["tools"] = [];
  const begins: FakeEngine["begins"] = [];
  const opened: EngineOptions[] = [];
  let disposed = false;
  let plan: SpeculationPlan = staticPlan(chain(0));
  const asOpened = (request: GenerateRequest) => ({ numSteps: plan.tier.depth, ...request });
  const info: EngineInfo = {
    get tier() {
      return plan.tier;
    },
    get tiers() {
      return { shapes: plan.tiers, bytes: 1000 };
    },
    chatTemplate: "",
    name: "fake",
    draftName: draft ? "fake-eagle3" : undefined,
    weights: options.weights ??
      {
        quantize: undefined,
        quantizeDraft: undefined,
        bytes: 10_000_000,
        target: { bytes: 8_000_000, parameters: 2_000_000 },
      },
    tuned: options.tuned,
    costsLine: options.costsLine,
    kvDtype: "f32",
    get acceptThresholds() {
      return relaxing(opened.at(-1)?.speculation?.acceptThresholds);
    },
    contextLength,
    maxContextLength: options.maxContextLength ?? 1_000_000,
    loadMs: 12.3456,
    compileMs: 2.5,
    device: {
      webgpu: "builtin",
      adapter: "none",
      hardware: "",
      backend: "vulkan",
      software: true,
      features: ["subgroups"],
    },
    algorithm: draft ? "EAGLE3" : "NONE",
    hasChatTemplate: options.hasChatTemplate ?? true,
    // A prompt whose last word is "<think>" opens the reasoning.
    reasoning: {
      marks: REASONING_MARKS[0],
      openings: [[OPEN_ID]],
      switchable: !options.unswitchable,
    },
    generation: options.generation ?? {},
  };
  const engine: FakeEngine = {
    info,
    get status() {
      const counts = { preemptions: 0, waits: 0, catchUps: 0, catchUpMs: 0, wasted: 0 };
      return { counts, speculation: plan.speculation.report, pages: { free: 8, total: 8 } };
    },
    ping: () => Promise.resolve(1),
    readStatus: () => Promise.resolve(engine.status),
    decode: (ids) => Promise.resolve(ids.join(" ")),
    pieces: (ids) => Promise.resolve(ids.map(String)),
    templateArguments,
    tools,
    begins,
    requests,
    prompts,
    opened,
    open: (given) => {
      opened.push(given);
      plan = planOf(given, draft ? "EAGLE3" : "NONE") ?? plan;
      given.hooks?.onProgress?.({ label: "target", done: 5_000_000, total: 10_000_000 });
      given.hooks?.onProgress?.({ label: "target", done: 10_000_000, total: 10_000_000 });
      return Promise.resolve(engine);
    },
    encodePrompt(input) {
      prompts.push("raw" in input ? input.raw : input.messages);
      templateArguments.push("raw" in input ? undefined : input.templateArguments);
      tools.push("raw" in input ? undefined : input.tools);
      begins.push("raw" in input ? undefined : input.begin);
      const texts = "raw" in input ? [input.raw] : input.messages.map(({ content }) => content);
      const words = texts.flatMap((text) => text.split(/\s+/));
      return Promise.resolve(words.map((word) => word === "<think>" ? OPEN_ID : word.length));
    },
    submit: (request) => {
      requests.push(request);
      return streamOf(play(asOpened(request), answer(requests.length), options));
    },
    disposed: () => disposed,
    terminate: () => Promise.resolve(),
    [Symbol.asyncDispose]() {
      disposed = true;
      return Promise.resolve();
    },
  };
  return engine;
}

/** A stream of what the generator yields and throws. */
export function streamOf(events: AsyncGenerator<EngineEvent, void, void>): EventStream {
  const stream = new EventStream(() => {
    stream.push({ kind: "error", error: new Error("the reader has left") });
  });
  (async () => {
    try {
      for await (const event of events) stream.push(event);
    } catch (error) {
      stream.push({ kind: "error", error: error as Error });
    }
  })();
  return stream;
}

/** The plan that the engine would make from the options; undefined if they do not say how to speculate. */
function planOf(
  { speculation, limits, hooks }: EngineOptions,
  algorithm: "EAGLE3" | "NONE",
): SpeculationPlan | undefined {
  const { maxBatch = 1 } = limits ?? {};
  const { onWarning = () => {} } = hooks ?? {};
  const { speculate } = speculation ?? {};
  if (speculate === undefined) return undefined;
  // A copy, as a worker would get it.
  const copy = structuredClone(speculate);
  const of = { algorithm, architecture: "LlamaForCausalLM", maxBatch, onWarning };
  return "policy" in copy ? policyPlan(copy, of) : speculationPlan(copy, of);
}

/** A request with a known number of draft steps. */
type Stepped = GenerateRequest & { readonly numSteps: number };

function wordsOf(answer: string): string[] {
  return answer.split(/(?<= )/);
}

async function* play(
  request: Stepped,
  answer: string,
  { beforeWord = () => Promise.resolve(), pieces = wordsOf, accepted = 15, rounds = 10 }:
    FakeEngineOptions,
): AsyncGenerator<EngineEvent, void, void> {
  const total = request.promptIds.length;
  yield { kind: "prefill", done: total, total, cached: 0 };
  const words = answer === "" ? [] : pieces(answer);
  let text = "";
  let reason: FinishReason = "stop";
  let count = 0;
  const reasoned = reasoningCounter({ marks: REASONING_MARKS[0], openings: [] }, request.promptIds);
  for (const word of words) {
    await beforeWord(word);
    await new Promise((resolve) => setTimeout(resolve, 0));
    if (request.signal?.aborted) reason = "interrupt";
    else if (count >= request.maxTokens) reason = "length";
    if (reason !== "stop") break;
    count += 1;
    text += word;
    reasoned.push(word);
    yield { kind: "round", ids: [count], accepted: 0, drafts: [], tier: chain(0) };
    yield { kind: "text", text: word };
  }
  const { tokens: reasoningTokens } = reasoned;
  const got = { text, count, reason, accepted, rounds, reasoningTokens };
  yield { kind: "finish", result: result(request, got) };
}

function result(
  request: Stepped,
  { text, count, reason, accepted, rounds, reasoningTokens }: {
    text: string;
    count: number;
    reason: FinishReason;
    accepted: number;
    rounds: number;
    reasoningTokens: number;
  },
): GenerateResult {
  return {
    text,
    promptIds: request.promptIds,
    outputIds: Array.from({ length: count }, (_, at) => at + 1),
    finishReason: reason,
    timing: {
      queuedMs: 0,
      prefillMs: 20,
      decodeMs: 1500,
      compileMs: 0,
      timeToFirstTokenMs: 25.5,
      tokensPerSecond: 88.8888888,
    },
    cachedTokens: 0,
    reasoningTokens,
    speculative: {
      algorithm: "EAGLE3",
      num_steps: request.numSteps,
      eagle_topk: 1,
      num_draft_tokens: request.numSteps + 1,
      rounds,
      draft_tokens: request.numSteps * rounds,
      accepted_tokens: accepted,
      mean_accept_length: 2.5,
      draft_acceptance_rate: 0.5,
      acceptance_per_position: [0.8, 0.5, 0.2],
      accepted_per_round: [3, 0, 2],
    },
    drafts: [],
    ...request.logprobs === undefined ? {} : { logprobs: toldOf(count, request.logprobs) },
  };
}

/** A made-up log-probability for each token. */
function toldOf(count: number, most: number): TextLogprobs[] {
  const one = (id: number) => ({ id, text: `word ${id}`, logprob: -id / 4 });
  const top = Array.from({ length: most }, (_, i) => one(i + 1));
  return Array.from({ length: count }, (_, at) => ({ ...one(at + 1), top }));
}
