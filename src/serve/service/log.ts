import { reason } from "../../errors.ts";
import { ApiError } from "../http/errors.ts";
import type { Unread } from "../http/listener.ts";
import type { LiveRequest } from "./table.ts";
import type { Trace } from "./trace.ts";

/** How the log is written: lines for people, a JSON object a line, or faults of the server alone. */
export type LogFormat = "text" | "json" | "none";

/** What the server writes about itself. Nothing in it is part of a prompt or an output, unless asked. */
export interface Log {
  /** A mistake of the server itself, with its stack; written in every format. */
  fault(error: unknown): void;
  /** A line about the server. */
  line(text: string): void;
  /** Like `line`, the first time that `key` is given. */
  once(key: string, text: string): void;
  /** A request whose connection is done with its answer. */
  access(trace: Trace, ended: EndedAnswer): void;
  /** What a client sent that is no request. */
  unread(unread: Unread): void;
  /** A request that has a slot, for which the engine has done nothing for so long. */
  stall(entry: LiveRequest, silentMs: number): void;
}

export interface EndedAnswer {
  /** Status that was sent; 499 if the client had disconnected before. */
  readonly status: number;
  /** The client took the whole answer. */
  readonly complete: boolean;
}

export interface LogOptions {
  readonly format: LogFormat;
  /** Writes one line, without its end. What it throws is dropped: the server goes on. */
  readonly write: (line: string) => void;
  readonly now?: () => number;
  readonly date?: () => Date;
}

/** Keys of `once` that are remembered: clients may choose the names of fields. */
const MAX_KEYS = 1000;

/** Paths that monitors poll: a line is written only where the status changes. */
const POLLED: ReadonlySet<string> = new Set(["/health", "/metrics"]);

export function openLog(
  { format, now = () => performance.now(), date = () => new Date(), ...options }: LogOptions,
): Log {
  const seen = new Set<string>();
  /** The last status of each path in POLLED. */
  const polled = new Map<string, number>();

  function write(text: string): void {
    try {
      options.write(text);
    } catch {
      // The log's reader has gone, or its disk is full.
    }
  }

  function json(level: string, fields: Readonly<Record<string, unknown>>): void {
    write(JSON.stringify({ time: date().toISOString(), level, ...fields }));
  }

  function line(text: string): void {
    if (format === "none") return;
    if (format === "json") json("info", { message: text });
    else write(printable(text));
  }

  return {
    fault(error) {
      const text = error instanceof Error ? error.stack ?? error.message : reason(error);
      if (format === "json") json("error", { message: text });
      else write(text);
    },
    line,
    once(key, text) {
      if (seen.has(key) || seen.size >= MAX_KEYS) return;
      seen.add(key);
      line(text);
    },
    access(trace, ended) {
      if (format === "none") return;
      if (ended.complete && POLLED.has(trace.path)) {
        const before = polled.get(trace.path) ?? 200;
        polled.set(trace.path, ended.status);
        if (before === ended.status) return;
      }
      const ms = now() - trace.arrived;
      if (format === "json") json(levelOf(ended), accessFields(trace, { ...ended, ms }));
      else {
        write(`${clock(date())} ${accessLine(trace, { ...ended, ms })}`);
        for (const text of textLines(trace)) write(text);
      }
    },
    unread({ id, status, reason, address = "-" }) {
      if (format === "none") return;
      if (format === "json") {
        json("warn", { message: "no request", id, client: address, status, reason });
      } else {
        write(
          `${clock(date())} ${address} no request ${status}: ${printable(cut(reason))} [${id}]`,
        );
      }
    },
    stall(entry, silentMs) {
      if (format === "none") return;
      const { requestId: id, state, outputTokens } = entry;
      const seconds = Math.round(silentMs / 1000);
      if (format === "json") {
        const silent_s = seconds;
        json("warn", { message: "stall", id, state, output_tokens: outputTokens, silent_s });
      } else {
        const so = `no sign of the engine for ${seconds} s, after ${outputTokens} output tokens`;
        write(`${clock(date())} stall: ${so} (${state}) [${id}]`);
      }
    },
  };
}

/**
 * What the client is told of an error, of a mistake of the server only that there is one: the log has its stack.
 * `trace` gets the reason.
 */
export function reported(
  error: unknown,
  { log, trace }: { readonly log: Log; readonly trace?: Trace | undefined },
): ApiError {
  const isKnown = error instanceof ApiError;
  if (!isKnown) log.fault(error);
  const known = isKnown
    ? error
    : new ApiError(500, "internal error; the server's log has the details");
  if (trace) trace.reason ??= known.message;
  return known;
}

interface Measured extends EndedAnswer {
  /** From the request's arrival to the end of its answer. */
  readonly ms: number;
}

/** Sums over the answers of one HTTP request. Times are milliseconds. */
interface Sums {
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly outputTokens: number;
  /** Tokens a round, the bonus token included; undefined without rounds. */
  readonly acceptLength: number | undefined;
  /** Longest wait for a slot, the encoding of the prompt included. */
  readonly queueMs: number;
  /** From arrival to the first token of any answer. */
  readonly firstTokenMs: number | undefined;
}

function sumsOf({ answers, arrived }: Trace): Sums | undefined {
  if (answers.length === 0) return undefined;
  const sum = (of: (each: LiveRequest) => number) => answers.reduce((all, one) => all + of(one), 0);
  const rounds = sum((each) => each.rounds);
  const first = Math.min(...answers.map(({ firstToken }) => firstToken ?? Infinity));
  const begun = answers.filter(({ firstToken }) => firstToken !== undefined).length;
  return {
    promptTokens: sum((each) => each.promptTokens),
    cachedTokens: sum((each) => each.cachedTokens),
    outputTokens: sum((each) => each.outputTokens),
    // The prefill chose the first token of each answer.
    acceptLength: rounds > 0 ? (sum((each) => each.outputTokens) - begun) / rounds : undefined,
    queueMs: Math.max(...answers.map(({ admitted, left, arrived }) => (
      (admitted ?? left ?? arrived) - arrived
    ))),
    firstTokenMs: first === Infinity ? undefined : first - arrived,
  };
}

function levelOf({ status }: EndedAnswer): string {
  if (status >= 500) return "error";
  return status >= 400 ? "warn" : "info";
}

function accessFields(trace: Trace, { status, complete, ms }: Measured): Record<string, unknown> {
  const { id, method, path, address, reason, texts } = trace;
  const sums = sumsOf(trace);
  return {
    message: "request",
    id,
    client: address,
    method,
    path,
    status,
    complete,
    ms: rounded(ms),
    ...sums === undefined ? {} : {
      prompt_tokens: sums.promptTokens,
      cached_tokens: sums.cachedTokens,
      output_tokens: sums.outputTokens,
      accept_length: sums.acceptLength === undefined ? null : rounded(sums.acceptLength),
      queue_ms: rounded(sums.queueMs),
      first_token_ms: sums.firstTokenMs === undefined ? null : rounded(sums.firstTokenMs),
    },
    ...reason === undefined ? {} : { reason: cut(reason) },
    ...texts?.prompts === undefined ? {} : { prompts: texts.prompts, outputs: texts.outputs },
  };
}

function accessLine(trace: Trace, { status, complete, ms }: Measured): string {
  const { id, method, path, address = "-", reason } = trace;
  const sums = sumsOf(trace);
  const parts = [
    ...sums === undefined || sums.outputTokens === 0 ? [] : sumsText(sums),
    ...reason === undefined ? [] : [printable(cut(reason))],
    ...complete || status === 499 ? [] : ["the client left"],
  ];
  const detail = parts.length === 0 ? "" : `: ${parts.join(", ")}`;
  return `${address} ${method} ${path} ${status} in ${secondsText(ms)}${detail} [${id}]`;
}

function sumsText(sums: Sums): string[] {
  const { promptTokens, cachedTokens, outputTokens, acceptLength, queueMs, firstTokenMs } = sums;
  return [
    `prompt ${promptTokens}${cachedTokens > 0 ? ` (${cachedTokens} cached)` : ""}`,
    `output ${outputTokens}`,
    ...acceptLength === undefined ? [] : [`accept length ${acceptLength.toFixed(2)}`],
    `queued ${secondsText(queueMs)}`,
    ...firstTokenMs === undefined ? [] : [`first token ${secondsText(firstTokenMs)}`],
  ];
}

function textLines({ texts }: Trace): string[] {
  if (texts?.prompts === undefined) return [];
  const outputs = texts.outputs.map((output) => `  output: ${JSON.stringify(output)}`);
  return [`  prompts: ${JSON.stringify(texts.prompts)}`, ...outputs];
}

function secondsText(ms: number): string {
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(2)} s`;
}

/** Local time, as 17:04:59. */
function clock(date: Date): string {
  return date.toTimeString().slice(0, 8);
}

/** Longest reason that is written, characters. */
const MAX_REASON = 300;

function cut(text: string): string {
  return text.length > MAX_REASON ? `${text.slice(0, MAX_REASON)}...` : text;
}

/** On one line, without what a terminal would act on. */
function printable(text: string): string {
  return text.replaceAll(
    // deno-lint-ignore no-control-regex -- these are what it is about
    /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

function rounded(value: number): number {
  return Math.round(value * 1000) / 1000;
}
