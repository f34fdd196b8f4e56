import { defined } from "../../defined.ts";
import { reason, UsageError } from "../../errors.ts";
import type { Grammar } from "../../grammar/rules/grammar.ts";
import type { Sampling } from "../../speculate/sampling.ts";
import type { ChatMessage } from "../../text/chat_template.ts";
import { type Flag, parseValue } from "../options/flag.ts";
import { biasOf, MAX_BIAS } from "../options/logit_bias.ts";
import { type BatchId, parseWithId } from "./batch_id.ts";
import { shortened } from "./batch_error.ts";
import { GRAMMAR_FIELDS, grammarOfLine } from "./constraint.ts";
import { flagNamed } from "../options/commands.ts";

/** One line of a batch file, checked. Missing fields take the values of the command line. */
export interface BatchLine {
  readonly prompt?: string;
  readonly messages?: readonly ChatMessage[];
  readonly sampling: Partial<Sampling>;
  readonly maxTokens?: number;
  readonly stop?: readonly string[];
  readonly ignoreEos?: boolean;
  readonly grammar?: Grammar;
  readonly logprobs?: number;
}

/** Number fields of a line and the flag whose range they share. */
const NUMBERS = {
  temperature: "temperature",
  top_k: "topK",
  top_p: "topP",
  min_p: "minP",
  repetition_penalty: "repetitionPenalty",
  frequency_penalty: "frequencyPenalty",
  presence_penalty: "presencePenalty",
  seed: "seed",
  max_tokens: "maxTokens",
  logprobs: "logprobs",
} as const;

const FIELDS = [
  "id",
  "prompt",
  "messages",
  "stop",
  "ignore_eos",
  "logit_bias",
  ...Object.keys(NUMBERS),
  ...GRAMMAR_FIELDS,
];

/**
 * Reads {"prompt" | "messages"} and any other of FIELDS.
 *
 * @throws UsageError naming the line and the field.
 */
export function parseBatchLine(text: string, line: number): BatchLine {
  const fail = (why: string): never => {
    throw new UsageError(`Cannot use line ${line}: ${why}`);
  };
  const { values } = parseObject(text, fail);
  const unknown = Object.keys(values).find((name) => !FIELDS.includes(name));
  if (unknown !== undefined) {
    fail(`it has a field "${shortened(unknown)}", allowed are ${FIELDS.join(", ")}`);
  }
  const { id, prompt, messages, stop, ignore_eos: ignoreEos, logit_bias } = values;
  if (id !== undefined && typeof id !== "string" && typeof id !== "number") {
    fail("id is neither text nor number");
  }
  if ((prompt === undefined) === (messages === undefined)) {
    fail("it needs one of prompt and messages");
  }
  if (prompt !== undefined && (typeof prompt !== "string" || prompt === "")) {
    fail("prompt is not a text, or empty");
  }
  if (messages !== undefined && !isChat(messages)) {
    fail("messages is not a list of {role: system | user | assistant, content: text}");
  }
  const stops = typeof stop === "string" ? [stop] : stop;
  if (stops !== undefined && !(isTexts(stops) && !stops.includes(""))) {
    fail("stop is neither a text nor a list of texts, or is empty");
  }
  if (ignoreEos !== undefined && typeof ignoreEos !== "boolean") {
    fail("ignore_eos is not a boolean");
  }
  const grammar = grammarOfLine(values, fail);
  const { maxTokens, logprobs, ...sampling } = numbersOf(values, fail);
  const logitBias = biasOf(logit_bias ?? {}) ??
    fail(`logit_bias is no object of token ids and values from -${MAX_BIAS} to ${MAX_BIAS}`);
  return {
    ...defined({
      prompt: prompt as string | undefined,
      messages: messages as ChatMessage[] | undefined,
      stop: stops as string[] | undefined,
      ignoreEos: ignoreEos as boolean | undefined,
      grammar,
      maxTokens,
      logprobs,
    }),
    sampling: logit_bias === undefined ? sampling : { ...sampling, logitBias },
  };
}

/** The id that a line gives, also where the rest of the line cannot be used. */
export function idOfLine(text: string): BatchId | undefined {
  try {
    const { values, id } = parseObject(text, (why) => {
      throw new UsageError(why);
    });
    return id ?? (typeof values["id"] === "string" ? values["id"] : undefined);
  } catch (error) {
    if (error instanceof UsageError) return undefined;
    throw error;
  }
}

function parseObject(
  text: string,
  fail: (why: string) => never,
): { readonly values: Record<string, unknown>; readonly id?: BatchId } {
  let parsed: ReturnType<typeof parseWithId>;
  try {
    parsed = parseWithId(text);
  } catch {
    return fail("it is not JSON");
  }
  const { value, ...id } = parsed;
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    fail("it is not a JSON object");
  }
  return { values: value as Record<string, unknown>, ...id };
}

function numbersOf(values: Record<string, unknown>, fail: (why: string) => never) {
  const found: Record<string, number> = {};
  for (const [field, key] of Object.entries(NUMBERS)) {
    const value = values[field];
    if (value === undefined) continue;
    if (typeof value !== "number") fail(`${field} is not a number`);
    found[key] = inRange(flagNamed(key), field, value as number, fail);
  }
  return found as Partial<Sampling> & { maxTokens?: number; logprobs?: number };
}

/** The ranges are those of the flags. */
function inRange(flag: Flag, field: string, value: number, fail: (why: string) => never): number {
  try {
    return parseValue(flag, String(value), field) as number;
  } catch (error) {
    // The line says already that it cannot be used.
    return fail(reason(error).replace(/^cannot use /, ""));
  }
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((each) => typeof each === "string");
}

function isChat(value: unknown): value is ChatMessage[] {
  return Array.isArray(value) && value.length > 0 &&
    value.every((each) =>
      typeof each === "object" && each !== null &&
      ["system", "user", "assistant"].includes(each.role) && typeof each.content === "string"
    );
}
