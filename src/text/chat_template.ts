import { Environment, Template } from "@huggingface/jinja";
// @ts-types="npm:@types/strftime@0.9.8"
import strftime from "strftime";
import { BoundedInterpreter, templateBudget, TemplateLimit } from "./bounded_interpreter.ts";
import { defined } from "../defined.ts";
import { asError, UsageError } from "../errors.ts";
import { field } from "../objects.ts";
import { withBudget } from "./reasoning.ts";
import { restoreNumbers } from "./template_numbers.ts";

/** One message of a conversation; templates refuse the roles they do not know. */
export interface ChatMessage {
  readonly role: "system" | "user" | "assistant" | "tool";
  readonly content: string;
  /** The model's reasoning before `content`; the template decides whether the model sees it again. */
  readonly reasoning_content?: string;
  /** Functions that the assistant calls, as transformers gives them to templates. */
  readonly tool_calls?: readonly unknown[];
  /** In a tool's message, the call that it answers. */
  readonly tool_call_id?: string;
  /** In a tool's message, the function; in others, the name of the speaker. */
  readonly name?: string;
}

/** A message as a template takes it. */
export interface TemplateMessage extends Omit<ChatMessage, "content"> {
  /** A text, or blocks of it. */
  readonly content: unknown;
  /** Another name for `reasoning_content`. */
  readonly thinking?: string;
  /** False where the assistant's turn goes on after the message (Glimmer). */
  readonly end_turn?: boolean;
}

/** Variables that a caller gives a template, by name: `enable_thinking`. JSON values. */
export type TemplateArguments = Readonly<Record<string, unknown>>;

/** What a template may use besides the messages. */
export interface ChatOptions {
  /** End with the header of the assistant's turn, so that the model answers. */
  readonly addGenerationPrompt: boolean;
  /** Undefined when the tokenizer has none; then the template sees an undefined variable. */
  readonly bosToken?: string | undefined;
  readonly eosToken?: string | undefined;
  /** JSON schemas of the functions that the model may call; default none. */
  readonly tools?: readonly unknown[];
  readonly templateArguments?: TemplateArguments | undefined;
  /** The day that `strftime_now` formats (Llama 3 writes it in the system message); default: now. */
  readonly now?: Date;
}

/**
 * The Jinja text of a checkpoint's chat template: chat_template.jinja if there is one, else
 * `chat_template` of tokenizer_config.json (a text, or a list of named texts of which "default" is
 * taken), else that of chat_template.json, which some models with vision have. Undefined when the
 * checkpoint has none: a base model.
 */
export function chatTemplate(
  jinjaText: string | undefined,
  tokenizerConfig: unknown,
  templateJson?: unknown,
): string | undefined {
  if (jinjaText !== undefined) return jinjaText;
  const entry = field(tokenizerConfig, "chat_template") ?? field(templateJson, "chat_template");
  const text = Array.isArray(entry)
    ? field(entry.find((each) => field(each, "name") === "default"), "template")
    : entry;
  return typeof text === "string" ? text : undefined;
}

/**
 * The prompt text of a conversation, with the variables and functions that transformers'
 * `apply_chat_template` gives a template.
 * @throws UsageError when the template does not parse, calls `raise_exception`, fails or wants more than
 * its budget.
 */
export function renderChat(
  template: string,
  messages: readonly TemplateMessage[],
  options: ChatOptions,
): string {
  try {
    // Jinja reads line ends of any kind as "\n".
    const { parsed } = new Template(template.replace(/\r\n?/g, "\n"));
    const { tools, templateArguments } = options;
    const input = JSON.stringify([messages, tools, templateArguments]);
    const interpreter = new BoundedInterpreter(
      environment(messages, options),
      templateBudget(input.length),
    );
    return String(field(interpreter.run(parsed), "value"));
  } catch (error) {
    const why = error instanceof TemplateLimit
      ? error.message
      : `says "${oneLine(asError(error).message)}"`;
    const chat = messages.length === 1 ? "1 message" : `${messages.length} messages`;
    throw new UsageError(
      `Cannot render the chat of ${chat}: the template ${why}`,
      { cause: error },
    );
  }
}

/** A template's own words in one line, for a terminal: control characters are written as JSON has them. */
function oneLine(text: string): string {
  return text.slice(0, LONGEST_REASON).replace(/[\p{Cc}\u2028\u2029]/gu, (control) => {
    const written = JSON.stringify(control).slice(1, -1);
    return written === control
      ? `\\u${control.charCodeAt(0).toString(16).padStart(4, "0")}`
      : written;
  });
}

/** A template may put a whole conversation into its error. */
const LONGEST_REASON = 200;

/**
 * The package's own globals are not used: its `strftime_now` follows the machine's language. This one
 * gives Python's text in English, except that strftime 0.10.3 counts %j a day short at midnight and in
 * the first hour of a day of summer time; templates write the date.
 */
function environment(messages: readonly TemplateMessage[], options: ChatOptions): Environment {
  const { addGenerationPrompt, bosToken, eosToken, tools = null, now = new Date() } = options;
  const variables: Record<string, unknown> = {
    true: true,
    True: true,
    false: false,
    False: false,
    none: null,
    None: null,
    range,
    raise_exception: (message: unknown) => {
      throw new Error(String(message));
    },
    strftime_now: (format: string) => strftime(format, now),
    tools,
    // SmolLM3's name for them.
    ...tools !== null && { xml_tools: tools },
    documents: null,
    ...defined({ bos_token: bosToken, eos_token: eosToken }),
    ...withBudget(options.templateArguments ?? {}),
    messages,
    add_generation_prompt: addGenerationPrompt,
  };
  const environment = new Environment();
  for (const [name, value] of Object.entries(variables)) environment.set(name, value);
  restoreNumbers(environment.lookupVariable("messages"));
  return environment;
}

/** Longer than any conversation; a template that wants more would take the memory. */
const MAX_RANGE = 1_000_000;

/** Python's `range`, which templates loop over. */
function range(first: number, second?: number, step: number = 1): number[] {
  const [from, to] = second === undefined ? [0, first] : [first, second];
  if (step === 0) throw new Error("range() step is 0");
  const length = Math.max(0, Math.ceil((to - from) / step));
  if (!(length <= MAX_RANGE)) throw new Error(`range() is too long: ${length}`);
  return Array.from({ length }, (_, index) => from + index * step);
}
