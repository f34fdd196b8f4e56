import { channelsOf } from "./channels.ts";
import { type ChatMessage, renderChat, type TemplateMessage } from "./chat_template.ts";
import { joinedSystem, joinedTurns, systemReminder } from "./turns.ts";

/**
 * The messages of a conversation with the field names and in the order that a template reads. The template
 * decides which reasoning of earlier turns the model sees again.
 */
export function historyFor(
  template: string,
  messages: readonly ChatMessage[],
): readonly TemplateMessage[] {
  const ordered = inOrderOfCalls(messages);
  const takesAll = !hasLaterSystem(ordered) || takesSeveralSystems(template);
  const withSystem = takesAll ? ordered : withOneSystem(ordered);
  const turns = mustAlternate(template) ? alternating(withSystem) : withSystem;
  const channels = channelsOf(template);
  if (channels === "harmony") return oneCallEach(turns).map(thinkingBeforeCall);
  if (channels === "glimmer") return turns.flatMap((turn) => textBeforeCalls(turn, GOES_ON));
  if (takesOneCall(template)) return oneCallEach(turns);
  if (takesBlocks(template)) return turns.map(inBlocks);
  if (joinsMessages(template)) return turns.flatMap((turn) => textBeforeCalls(turn));
  return readsThinking(template) ? turns.map(withThinking) : turns;
}

/**
 * The results of parallel calls in the order of the calls. Clients send them as they come, and many templates tell
 * them apart by their order alone.
 */
function inOrderOfCalls(messages: readonly ChatMessage[]): readonly ChatMessage[] {
  const ordered = [...messages];
  for (const [at, { tool_calls: calls = [] }] of messages.entries()) {
    if (calls.length < 2) continue;
    const ids = calls.map(idOf);
    const results = resultsBehind(messages, at);
    const place = ({ tool_call_id: id }: ChatMessage) => ids.indexOf(id);
    if (results.some((result) => place(result) < 0)) continue;
    ordered.splice(at + 1, results.length, ...results.toSorted((a, b) => place(a) - place(b)));
  }
  return ordered;
}

function idOf(call: unknown): unknown {
  return (call as { readonly id?: unknown }).id;
}

function hasLaterSystem(messages: readonly ChatMessage[]): boolean {
  return messages.some(({ role }, at) => role === "system" && at > 0);
}

/** What is known of templates, of which a process has few. */
const systemTakers = new Map<string, boolean>();

/**
 * Whether a template shows the model every system message. gpt-oss's and others' leave out all but the first, and
 * Qwen3.8's and others' refuse them, so a short conversation with several is rendered, once for each template.
 */
function takesSeveralSystems(template: string): boolean {
  return systemTakers.getOrInsertComputed(template, () => {
    try {
      const options = { addGenerationPrompt: true, bosToken: "", eosToken: "" };
      const rendered = renderChat(template, SEVERAL_SYSTEMS, options);
      return SEVERAL_SYSTEMS.every(({ content }) => rendered.includes(content));
    } catch {
      return false;
    }
  });
}

const SEVERAL_SYSTEMS: readonly ChatMessage[] = [
  { role: "system", content: "first rule" },
  { role: "system", content: "second rule" },
  { role: "user", content: "question" },
  { role: "assistant", content: "answer" },
  { role: "system", content: "third rule" },
  { role: "user", content: "next" },
];

function withOneSystem(messages: readonly ChatMessage[]): ChatMessage[] {
  return joinedSystem(messages, ({ content }) => content).map((message, at) =>
    message.role === "system" && at > 0 ? systemReminder(message.content) : message
  );
}

/** Ministral 3, Devstral, Mistral Small and Gemma 3. */
function mustAlternate(template: string): boolean {
  return template.includes("must alternate");
}

/**
 * Turns that alternate between the user and the assistant, where calls and their results do not count. Empty messages
 * of the assistant, which Ministral 3 refuses, are left out. Before what the user says after a result comes an answer:
 * these models are trained on an answer to every result, and in a result the user's words would have no authority.
 */
function alternating(messages: readonly ChatMessage[]): ChatMessage[] {
  const turns: ChatMessage[] = [];
  for (const message of messages) {
    const last = turns.at(-1);
    if (message.role === "assistant" && isEmpty(message)) continue;
    if (message.role === "user" && last !== undefined && isOpen(last)) turns.push(ANSWERED);
    if (message.role === "assistant" && last?.role === "assistant" && !isOpen(last)) {
      turns[turns.length - 1] = joinedAnswers(last, message);
    } else turns.push(message);
  }
  return joinedTurns(turns, ({ content }) => content);
}

const ANSWERED: ChatMessage = { role: "assistant", content: "Done." };

function isEmpty({ content, reasoning_content: thinking, tool_calls: calls }: ChatMessage) {
  return content === "" && !thinking && !calls?.length;
}

/** Whether the assistant's turn goes on after a message. */
function isOpen({ role, tool_calls: calls }: ChatMessage): boolean {
  return role === "tool" || (role === "assistant" && (calls?.length ?? 0) > 0);
}

function joinedAnswers(first: ChatMessage, second: ChatMessage): ChatMessage {
  const joined = (a = "", b = "") => [a, b].filter((each) => each !== "").join("\n\n");
  const thinking = joined(first.reasoning_content, second.reasoning_content);
  return {
    ...second,
    content: joined(first.content, second.content),
    ...thinking === "" ? {} : { reasoning_content: thinking },
  };
}

/** gpt-oss, LFM2.5. */
function readsThinking(template: string): boolean {
  return /\bmessage\.thinking\b|\bmessage\[["']thinking["']\]/.test(template);
}

function withThinking(message: ChatMessage): TemplateMessage {
  const { reasoning_content: thinking } = message;
  return thinking === undefined ? message : { ...message, thinking };
}

/** Ministral 3 and Magistral. */
function takesBlocks(template: string): boolean {
  return /\[["']type["']\] *== *["']thinking["']/.test(template);
}

function inBlocks(message: ChatMessage): TemplateMessage {
  const { role, content, reasoning_content: thinking } = message;
  if (role !== "assistant" || !thinking) return message;
  const text = content === "" ? [] : [{ type: "text", text: content }];
  return { ...message, content: [{ type: "thinking", thinking }, ...text] };
}

/** Gemma 4's of July 2026: messages of the model that follow one another are one turn. */
function joinsMessages(template: string): boolean {
  return template.includes("<|tool_call>call:") && template.includes("continues_into_next");
}

/**
 * Gemma 4's template writes a message's text behind its calls and their results, and ends the turn with
 * it; Glimmer's leaves it out. As a message of its own the text stays before them, in the same turn.
 */
function textBeforeCalls(
  message: ChatMessage,
  spoken: Pick<TemplateMessage, "end_turn"> = {},
): TemplateMessage[] {
  const { role, content, tool_calls: calls, reasoning_content: thinking } = message;
  if (calls === undefined || content === "") return [message];
  const { reasoning_content: _, ...calling } = message;
  const said = { role, content, ...spoken };
  return [thinking === undefined ? said : { ...said, reasoning_content: thinking }, {
    ...calling,
    content: "",
  }];
}

/** What Glimmer's template needs to go on after what was said. */
const GOES_ON = { end_turn: false };

/** gpt-oss's template has a place for one text before a call: the reasoning, and what was said. */
function thinkingBeforeCall(message: ChatMessage): TemplateMessage {
  const { content, reasoning_content: thinking, tool_calls: calls } = message;
  if (calls === undefined) return withThinking(message);
  const before = [thinking, content].filter((each) => each).join("\n\n");
  return { ...message, content: "", ...before === "" ? {} : { thinking: before } };
}

/** Llama 3: "This model only supports single tool-calls at once!" */
function takesOneCall(template: string): boolean {
  return /\btool_calls *\| *length *[!=]= *1\b/.test(template);
}

/**
 * gpt-oss's template writes one call of a message, and takes a result for the call before it. Llama 3's refuses a
 * message with more.
 */
function oneCallEach(messages: readonly ChatMessage[]): readonly ChatMessage[] {
  return messages.flatMap((message, at) => {
    const { tool_calls: calls = [] } = message;
    if (message.role === "tool" && isResultOfSeveral(messages, at)) return [];
    if (calls.length < 2) return [message];
    const answers = resultsOf(calls, resultsBehind(messages, at));
    return calls.flatMap((call, number) => {
      const { reasoning_content: _, ...rest } = message;
      const first = number === 0 ? message : { ...rest, content: "" };
      return [{ ...first, tool_calls: [call] }, ...answers[number] ?? []];
    });
  });
}

/**
 * The results of each call. A result belongs to the first call of its id without one; results of no known id belong to
 * the calls that are left, in their order. Any more are the last call's, so that the model sees every result.
 */
function resultsOf(
  calls: readonly unknown[],
  results: readonly ChatMessage[],
): readonly (readonly ChatMessage[])[] {
  const ids = calls.map(idOf);
  const answers = calls.map((): ChatMessage[] => []);
  const isNamed = ({ tool_call_id: id }: ChatMessage) => ids.includes(id);
  for (const result of [...results.filter(isNamed), ...results.filter((each) => !isNamed(each))]) {
    const open = answers.findIndex((given, at) =>
      given.length === 0 && (!isNamed(result) || ids[at] === result.tool_call_id)
    );
    const named = ids.lastIndexOf(result.tool_call_id);
    answers.at(open < 0 ? named : open)?.push(result);
  }
  return answers;
}

/** The messages of tools behind the message at a place. */
function resultsBehind(messages: readonly ChatMessage[], at: number): readonly ChatMessage[] {
  const behind = messages.slice(at + 1);
  const end = behind.findIndex(({ role }) => role !== "tool");
  return end < 0 ? behind : behind.slice(0, end);
}

function isResultOfSeveral(messages: readonly ChatMessage[], at: number): boolean {
  const caller = messages.slice(0, at).findLast(({ role }) => role !== "tool");
  return (caller?.tool_calls?.length ?? 0) > 1;
}
