import { defined } from "../../defined.ts";
import { asError, reason, UsageError } from "../../errors.ts";
import { isObject } from "../../objects.ts";
import type { ChatMessage } from "../../text/chat_template.ts";
import { outputFile } from "../terminal/output_file.ts";
import {
  LOCAL,
  SERVERS,
  SETTING_NAMES,
  settingAllows,
  type Settings,
  settingTexts,
  withSetting,
} from "./settings.ts";
import type { ChatState } from "./state.ts";

/** Raised when a field changes its meaning; files of another version are refused. */
const VERSION = 1;

/** The conversation as a JSON document. */
export function chatToJson(state: ChatState, model: string): string {
  const { system, messages, settings } = state;
  const document = {
    eyrie_chat: VERSION,
    model,
    ...defined({ system }),
    messages,
    settings: settingTexts(settings),
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}

/** The parts of a file that are ignored. */
interface Keeping {
  /** Names of settings that keep their values. */
  readonly kept?: readonly string[];
  /** The running program has a draft, so one may be switched on. */
  readonly drafts?: boolean;
}

/** A chat that was read. */
export interface LoadedChat {
  readonly state: ChatState;
  /** The model that it was held with; undefined where the file does not say. */
  readonly model: string | undefined;
}

/**
 * Reads what `chatToJson` wrote.
 * Settings that are not in the file keep their values.
 */
export function chatFromJson(
  text: string,
  current: ChatState,
  { kept = [], drafts = false }: Keeping = {},
): LoadedChat {
  const document = parsed(text);
  if (!isObject(document) || document["eyrie_chat"] !== VERSION) {
    throw new Error(`it is not a conversation (eyrie_chat is not ${VERSION})`);
  }
  const { system, messages, settings, model } = document;
  if (system !== undefined && typeof system !== "string") throw new Error("system is not text");
  const state = {
    system,
    messages: checkMessages(messages),
    settings: checkSettings(settings ?? {}, current.settings, { kept, drafts }),
    attempt: 0,
    tokens: 0,
  };
  return { state, model: typeof model === "string" ? model : undefined };
}

/** Writes the file as results are written, see `outputFile`. @throws UsageError, which does not end the chat */
export function saveChat(path: string, state: ChatState, model: string): void {
  try {
    outputFile(path, { force: true }).write(chatToJson(state, model));
  } catch (cause) {
    throw new UsageError(asError(cause).message, { cause });
  }
}

/** The state from a file; the current one is untouched when the file is broken. */
export async function loadChat(
  path: string,
  current: ChatState,
  keeping: Keeping = {},
): Promise<LoadedChat> {
  try {
    return chatFromJson(await Deno.readTextFile(path), current, keeping);
  } catch (cause) {
    throw new UsageError(`Cannot load "${path}": ${reason(cause)}`, { cause });
  }
}

function checkMessages(messages: unknown): ChatMessage[] {
  if (!Array.isArray(messages)) throw new Error("messages is not a list");
  if (messages.length % 2 !== 0) throw new Error("the last message has no answer");
  return messages.map((message: unknown, at) => {
    const role = at % 2 === 0 ? "user" : "assistant";
    if (
      !isObject(message) || message["role"] !== role || typeof message["content"] !== "string"
    ) {
      throw new Error(`messages[${at}] is not a message of role ${role}`);
    }
    const { content, reasoning_content } = message;
    const thought = typeof reasoning_content === "string" ? { reasoning_content } : {};
    return { role, content: content as string, ...thought };
  });
}

function checkSettings(
  texts: unknown,
  current: Settings,
  { kept, drafts }: Required<Keeping>,
): Settings {
  if (!isObject(texts)) throw new Error("settings is not an object");
  return Object.entries(texts).reduce((settings, [name, value]) => {
    if (kept.includes(name)) return settings;
    // A server chooses its draft and steps itself. A setting that was left to a server is left to the engine.
    if (settings.remote ? LOCAL.includes(name) : value === SERVERS) return settings;
    if (name === "draft" && value === "on" && !drafts) return settings;
    // Steps that the engine chose were not set by the user: its policy still chooses.
    if (name === "num-steps" && value === String(settings.openedSteps)) {
      return { ...settings, numSteps: undefined };
    }
    return readSetting(settings, name, String(value));
  }, current);
}

function readSetting(settings: Settings, name: string, value: string): Settings {
  try {
    return withSetting(settings, name, value);
  } catch (cause) {
    if (!(cause instanceof UsageError)) throw cause;
    const known = SETTING_NAMES.includes(name);
    const why = known ? `allowed is ${settingAllows(name, settings)}` : "there is no such setting";
    throw new Error(`its setting ${name} is ${value}, ${why}`, { cause });
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error("it is not JSON");
  }
}
