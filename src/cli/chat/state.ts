import { UsageError } from "../../errors.ts";
import type { ChatMessage } from "../../text/chat_template.ts";
import type { Settings } from "./settings.ts";

/** A conversation between two answers. Every change makes a new value. */
export interface ChatState {
  readonly system: string | undefined;
  /** User and assistant in turns, beginning with user. */
  readonly messages: readonly ChatMessage[];
  readonly settings: Settings;
  /** How often the newest message was answered anew: moves a fixed seed on. */
  readonly attempt: number;
  /** Tokens in the context after the newest answer. */
  readonly tokens: number;
  /** What the newest answer was made with, where it was not broken off: see `asksFor`. */
  readonly answeredAs?: string | undefined;
}

/** What an answer at temperature 0 depends on besides the messages. */
export function asksFor({ system, settings }: ChatState): string {
  const { temperature, maxTokens, stop, think, format } = settings;
  const { repetitionPenalty, frequencyPenalty, presencePenalty, logitBias } = settings;
  const penalties = [repetitionPenalty, frequencyPenalty, presencePenalty, logitBias];
  return JSON.stringify([system, temperature, maxTokens, stop, think, format?.text, ...penalties]);
}

/** What the template is given. */
export function allMessages(
  { system, messages }: Pick<ChatState, "system" | "messages">,
): ChatMessage[] {
  return [
    ...system === undefined ? [] : [{ role: "system" as const, content: system }],
    ...messages,
  ];
}

export function withQuestion(state: ChatState, content: string): ChatState {
  return { ...state, attempt: 0, messages: [...state.messages, { role: "user", content }] };
}

/** @param answer `reasoning` is kept with the text: the template decides whether the model sees it. */
export function withAnswer(
  state: ChatState,
  { text: content, reasoning = "", whole = true }: {
    readonly text: string;
    readonly reasoning?: string;
    /** Not broken off. */
    readonly whole?: boolean;
  },
  tokens: number,
): ChatState {
  const thought = reasoning === "" ? {} : { reasoning_content: reasoning };
  const messages = [...state.messages, { role: "assistant" as const, content, ...thought }];
  return { ...state, messages, tokens, answeredAs: whole ? asksFor(state) : undefined };
}

/** The state before the newest answer, to answer again; undefined when there is none. */
export function beforeAnswer(state: ChatState): ChatState | undefined {
  if (state.messages.at(-1)?.role !== "assistant") return undefined;
  return { ...state, messages: state.messages.slice(0, -1), attempt: state.attempt + 1 };
}

/** Without the newest question and its answer; undefined when nothing was said. */
export function withoutNewest(state: ChatState): ChatState | undefined {
  const last = state.messages.findLastIndex(({ role }) => role === "user");
  if (last < 0) return undefined;
  return { ...state, messages: state.messages.slice(0, last), attempt: 0, tokens: 0 };
}

/** Without the oldest exchange; undefined when only the newest question is left. */
export function withoutOldest(state: ChatState): ChatState | undefined {
  const next = state.messages.findIndex(({ role }, at) => at > 0 && role === "user");
  return next < 0 ? undefined : { ...state, messages: state.messages.slice(next) };
}

/** A conversation that fits into the context, and what was dropped for it. */
export interface FittingChat {
  readonly state: ChatState;
  readonly promptIds: readonly number[];
  /** Exchanges dropped. */
  readonly dropped: number;
}

/** Part of the context kept free for the answer, so that it is not cut after one token. */
const ROOM_SHARE = 1 / 8;

/** Drops oldest exchanges until question and answer have room; the system message stays. */
export async function fitContext(
  start: ChatState,
  { encode, contextLength, maxContextLength }: {
    encode: (messages: readonly ChatMessage[]) => Promise<readonly number[]>;
    contextLength: number;
    /** Of another start. */
    maxContextLength: number;
  },
): Promise<FittingChat> {
  const { maxTokens = contextLength } = start.settings;
  const room = Math.min(maxTokens, Math.floor(contextLength * ROOM_SHARE));
  let state = start;
  let promptIds = await encode(allMessages(state));
  let dropped = 0;
  while (promptIds.length + room > contextLength) {
    const shorter = withoutOldest(state);
    if (shorter === undefined) break;
    state = shorter;
    promptIds = await encode(allMessages(state));
    dropped += 1;
  }
  if (promptIds.length >= contextLength) {
    const more = contextLength < maxContextLength ? ", or start with --context-length" : "";
    throw new UsageError(
      `Cannot send "the message": it makes a prompt of ${promptIds.length} tokens, ` +
        `the context holds ${contextLength}; send less${more}`,
    );
  }
  return { state, promptIds, dropped };
}
