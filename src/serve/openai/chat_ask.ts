import { defined } from "../../defined.ts";
import type { PromptInput } from "../../engine/load/text.ts";
import type { Grammar } from "../../grammar/rules/grammar.ts";
import type { ChatMessage } from "../../text/chat_template.ts";
import { effortArguments } from "../../text/effort.ts";
import { parseWithLiterals, textWithLiterals } from "../../text/number_literals.ts";
import { thinkArguments } from "../../text/reasoning.ts";
import type { Reading } from "../answers/answer.ts";
import type { Ask } from "../answers/ask.ts";
import { invalid } from "../http/errors.ts";
import type { Ready, ServiceOptions } from "../service/service.ts";
import { type ForcedCall, type ToolFamily, wholeTool, type WrittenCall } from "../tools/family.ts";
import { excludesObjects } from "../tools/objects.ts";
import { GENERIC, withoutToolRoles } from "../tools/generic.ts";
import type { Tool } from "../tools/tool.ts";
import { type CallField, type ChatRequest, contentText, type MessageField } from "./chat_schema.ts";
import { askOf } from "./fields.ts";
import { formatGrammar, onlyGrammar } from "./grammar.ts";

/** A conversation's next message, as it is asked for. */
export interface ChatAsk {
  readonly prompt: PromptInput;
  readonly ask: Ask;
  readonly reading: Reading;
  /** Fields that this model does not support and that are ignored. */
  readonly ignored: readonly string[];
}

/**
 * What a chat request asks for.
 *
 * @throws ApiError (400) for fields that contradict each other or that this model has nothing for.
 */
export function chatAsk(
  request: ChatRequest,
  ready: Ready,
  options: Pick<ServiceOptions, "templateArguments">,
): ChatAsk {
  if (!ready.engine.info.hasChatTemplate) {
    throw invalid(
      `"${ready.model}" has no chat template; POST /v1/completions needs none`,
      "messages",
    );
  }
  const tools = toolsOf(request);
  const forced = forcedCall(request, tools, ready);
  const { grammar, grammarField } = oneGrammar(request, forced);
  const switches = switchesOf(request, ready.engine);
  const { max_completion_tokens, max_tokens } = request;
  const ask: Ask = {
    ...askOf(request),
    grammar,
    grammarField,
    maxTokens: max_completion_tokens ?? max_tokens ?? undefined,
    ...logprobsOf(request),
    ...request.prediction ? { prediction: contentText(request.prediction.content) } : {},
  };
  const parallel = request.parallel_tool_calls ?? true;
  // A grammar of the text holds from the first token, so that no call can be written.
  const callable = tools.length > 0 && (grammar === undefined || forced !== undefined);
  return {
    prompt: promptOf(request, { ready, tools, forced, grammar, options, switches }),
    ask,
    ignored: [
      ...switches.ignored,
      ...cutArguments(request) ? [CUT_ARGUMENTS] : [],
      ...tools.length > 0 && !callable ? ["tools"] : [],
    ],
    reading: {
      // A grammar leaves no room for reasoning, and a message that the answer continues has already ended it.
      reasoning: grammar === undefined && request.separate_reasoning !== false &&
        begunText(request) === undefined,
      calls: callable
        ? { begun: forced?.begin ?? "", most: parallel && !forced ? Infinity : 1, tools }
        : undefined,
    },
  };
}

/** The tools that may be called. */
function toolsOf({ tools, tool_choice: choice }: ChatRequest): Tool[] {
  if (choice === "none") return [];
  const listed = (tools ?? []).map(({ function: { name, description, parameters } }) => ({
    name,
    ...description ? { description } : {},
    ...parameters ? { parameters } : {},
  }));
  const twice = listed.find(({ name }, i) => listed.findIndex((each) => each.name === name) < i);
  if (twice !== undefined) throw invalid(`two tools have the name "${twice.name}"`, "tools");
  const at = listed.findIndex(({ parameters }) => excludesObjects(parameters));
  if (at >= 0) {
    const why = "its parameters exclude objects, and the arguments of a call are one";
    const message = `Cannot use the tool "${listed[at]?.name}": ${why}`;
    throw invalid(message, `tools[${at}].function.parameters`);
  }
  return listed;
}

function forcedCall(
  { tool_choice: choice }: ChatRequest,
  tools: readonly Tool[],
  { tools: family, engine }: Ready,
): ForcedCall | undefined {
  if (!choice || choice === "none" || choice === "auto") return undefined;
  if (tools.length === 0) {
    throw invalid('Cannot use "tool_choice": it needs tools', "tool_choice");
  }
  const allowed = choice === "required"
    ? tools
    : tools.filter(({ name }) => name === choice.function.name);
  if (allowed.length === 0 && choice !== "required") {
    throw invalid(`there is no tool "${choice.function.name}"`, "tool_choice.function.name");
  }
  return family.forced(allowed, engine.info.chatTemplate ?? "");
}

/** @throws ApiError where there are two: an output has one. */
function oneGrammar(
  request: ChatRequest,
  forced: ForcedCall | undefined,
): Pick<Ask, "grammar" | "grammarField"> {
  const { response_format: format } = request;
  const only = onlyGrammar([
    ["response_format", format ? formatGrammar(format) : undefined],
    [request.regex ? "regex" : "grammar", askOf(request).grammar],
    ["tool_choice", forced && { kind: "forms", forms: forced.forms }],
  ]);
  // An error in a forced call's grammar comes from the schema of a tool.
  return forced ? { grammar: only.grammar, grammarField: "tools" } : only;
}

function logprobsOf({ logprobs, top_logprobs: top }: ChatRequest): Pick<Ask, "logprobs"> {
  if (logprobs) return { logprobs: top ?? 0 };
  if (top === undefined || top === null) return {};
  throw invalid('Cannot use "top_logprobs": it needs "logprobs": true', "top_logprobs");
}

function promptOf(
  request: ChatRequest,
  { ready: { tools: family, engine }, tools, forced, grammar, options, switches }: {
    readonly ready: Ready;
    readonly tools: readonly Tool[];
    readonly forced: ForcedCall | undefined;
    readonly grammar: Grammar | undefined;
    readonly options: Pick<ServiceOptions, "templateArguments">;
    readonly switches: Switches;
  },
): PromptInput {
  const begun = begunText(request);
  if (begun !== undefined && grammar !== undefined) {
    throw invalid("an assistant's message cannot be continued with a grammar", "messages");
  }
  const messages = request.messages.slice(0, begun === undefined ? undefined : -1)
    .map((message) => messageOf(message, family));
  const begin = begun ?? forced?.begin ?? (grammar && "");
  const generic = family.name === GENERIC.name;
  const { written } = family;
  const writes = written !== undefined && !/\btool_calls\b/.test(engine.info.chatTemplate ?? "");
  return {
    messages: generic
      ? withoutToolRoles(messages, tools)
      : writes
      ? messages.map((message) => withCallsWritten(message, written))
      : messages,
    templateArguments: { ...options.templateArguments, ...switches.templateArguments },
    ...generic || tools.length === 0 ? {} : {
      tools: tools.map((tool) => (
        { type: "function", function: family.wholeTools ? wholeTool(tool) : tool }
      )),
    },
    ...defined({ begin }),
  };
}

/** Writes the calls into the message's text, for a template that knows tools but writes no calls. */
function withCallsWritten(
  { tool_calls: calls, ...message }: ChatMessage,
  written: NonNullable<ToolFamily["written"]>,
): ChatMessage {
  if (calls === undefined) return message;
  const functions = (calls as readonly { readonly function: WrittenCall }[]).map((call) =>
    call.function
  );
  const content = [message.content, written(functions)].filter((each) => each !== "").join("\n");
  return { ...message, content };
}

/** Names that the conversation itself sets. */
const TAKEN = ["messages", "add_generation_prompt", "tools"];

/** Variables for the template, and fields that it has no variable for. */
interface Switches {
  readonly templateArguments: Readonly<Record<string, unknown>>;
  readonly ignored: readonly string[];
}

/** Reasoning effort is only a hint: it is ignored for a model whose template has no switch for it. */
function switchesOf(
  { chat_template_kwargs: given, reasoning_effort: effort }: ChatRequest,
  { info: { chatTemplate, reasoning } }: Ready["engine"],
): Switches {
  const taken = Object.keys(given ?? {}).find((name) => TAKEN.includes(name));
  if (taken !== undefined) {
    throw invalid(
      `Cannot use "${taken}": the request itself sets it`,
      `chat_template_kwargs.${taken}`,
    );
  }
  if (!effort) return { templateArguments: { ...given }, ignored: [] };
  const efforts = effortArguments(chatTemplate, effort);
  const spoken = Object.keys(efforts).length > 0;
  const think = reasoning.switchable ? thinkArguments(effort === "none" ? "off" : "on") : {};
  return {
    templateArguments: { ...think, ...efforts, ...given },
    ignored: spoken || reasoning.switchable || effort === "none" ? [] : ["reasoning_effort"],
  };
}

/** The last assistant message, where the answer continues it. */
function begunText(
  { messages, continue_final_message: goesOn }: ChatRequest,
): string | undefined {
  if (!goesOn) return undefined;
  const last = messages.at(-1);
  if (last?.role === "assistant") return contentText(last.content);
  throw invalid(
    'Cannot use "continue_final_message": the last message is not the assistant\'s',
    "continue_final_message",
  );
}

const asItIs = (id: string): string => id;

/** The settings of a family that concern earlier calls. */
type EarlierCalls = "argumentsAs" | "earlierId";

function messageOf(message: MessageField, family: Pick<ToolFamily, EarlierCalls>): ChatMessage {
  const { earlierId = asItIs } = family;
  const content = contentText(message.content);
  const name = message.name ? { name: message.name } : {};
  switch (message.role) {
    case "developer":
      return { role: "system", content, ...name };
    case "tool":
      return { role: "tool", content, tool_call_id: earlierId(message.tool_call_id), ...name };
    case "assistant": {
      const reasoning = message.reasoning_content ?? message.reasoning;
      const calls = message.tool_calls ?? [];
      return {
        role: "assistant",
        content: content || (message.refusal ?? ""),
        ...name,
        ...reasoning ? { reasoning_content: reasoning } : {},
        ...calls.length === 0 ? {} : {
          tool_calls: calls.map((call) => callOf(call, family)),
        },
      };
    }
    default:
      return { role: message.role, content, ...name };
  }
}

function callOf(
  { id, type, function: { name, arguments: given } }: CallField,
  { argumentsAs, earlierId = asItIs }: Pick<ToolFamily, EarlierCalls>,
): unknown {
  const value = argumentsOf(given);
  const sent = argumentsAs === "object"
    ? value ?? {}
    : value === undefined
    ? given
    : textWithLiterals(value);
  return { id: earlierId(id), type, function: { name, arguments: sent } };
}

/** Undefined where they are not JSON: a limit may have cut them. */
function argumentsOf(given: string): unknown {
  try {
    return parseWithLiterals(given === "" ? "{}" : given);
  } catch {
    return undefined;
  }
}

/** The name under which the log has arguments that are not JSON. */
const CUT_ARGUMENTS = "messages.tool_calls.function.arguments";

/** Whether an earlier call has arguments that are not JSON. */
function cutArguments({ messages }: ChatRequest): boolean {
  return messages.some((message) =>
    message.role === "assistant" &&
    message.tool_calls?.some((call) => argumentsOf(call.function.arguments) === undefined)
  );
}
