import type { CallForm } from "../../grammar/rules/grammar.ts";
import type { CallFormat } from "./call_stream.ts";
import type { Tool } from "./tool.ts";

/** How the models of one family call functions. */
export interface ToolFamily {
  readonly name: string;
  /** Does a chat template speak so? */
  readonly speaks: (template: string) => boolean;
  readonly format: CallFormat;
  /** For an output that has to call one of these tools: how it begins, and which forms may follow. */
  readonly forced: (tools: readonly Tool[], template: string) => ForcedCall;
  /** How the template wants the arguments of earlier calls. */
  readonly argumentsAs: "object" | "text";
  /** The template fails for a tool without a description or parameters. */
  readonly wholeTools?: boolean;
  /** Writes earlier calls as the model does, for templates that do not write calls. */
  readonly written?: (calls: readonly WrittenCall[]) => string;
  /** The id of an earlier call as the template takes it; absent: as it is. */
  readonly earlierId?: (id: string) => string;
  /** Returns the id of a new call; Mistral's templates require nine letters and digits. */
  readonly callId: () => string;
}

export interface ForcedCall {
  /** A part of the prompt. */
  readonly begin: string;
  /** The output is one of these. */
  readonly forms: readonly CallForm[];
}

/** An earlier call. */
export interface WrittenCall {
  readonly name: string;
  readonly arguments: unknown;
}

/** Fills in a tool's missing description and parameters with empty ones. */
export function wholeTool({ description, parameters, ...tool }: Tool): Tool {
  return {
    ...tool,
    description: description ?? "",
    parameters: { type: "object", properties: {}, ...parameters as object | undefined },
  };
}

/** What a tool takes where it does not say. */
export const ANY_ARGUMENTS = { type: "object" } as const;

const LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

export function randomId(length: number): string {
  const bytes = crypto.getRandomValues(new Uint8Array(length));
  return Array.from(bytes, (byte) => LETTERS[byte % LETTERS.length]).join("");
}

export const openAiCallId = (): string => `call_${randomId(24)}`;

/**
 * Forms that write a function's name, a separator and the arguments; where there is one tool, the output begins with
 * its name.
 *
 * @param separators.one between the name and the arguments where there is one tool.
 */
export function namedForms(
  tools: readonly Tool[],
  begin: string,
  { one, each }: { readonly one: string; readonly each: string },
): ForcedCall {
  const [only] = tools;
  const form = (before: string, { parameters }: Tool): CallForm => (
    { before, schema: parameters ?? ANY_ARGUMENTS, after: "" }
  );
  return tools.length === 1 && only !== undefined
    ? { begin: `${begin}${only.name}${one}`, forms: [form("", only)] }
    : { begin, forms: tools.map((tool) => form(`${tool.name}${each}`, tool)) };
}

/** `{"name": "f", "KEY": ARGUMENTS}`, the spaces as Python's json has them. */
export function jsonForms(
  tools: readonly Tool[],
  key: string,
  around: readonly [before: string, after: string] = ["", ""],
): CallForm[] {
  return tools.map((tool) => jsonForm(tool, key, around));
}

/** One of these. */
export function jsonForm(
  { name, parameters }: Tool,
  key: string,
  [before, after]: readonly [before: string, after: string] = ["", ""],
): CallForm {
  return {
    before: `${before}{"name": ${JSON.stringify(name)}, "${key}": `,
    schema: parameters ?? ANY_ARGUMENTS,
    after: `}${after}`,
  };
}
