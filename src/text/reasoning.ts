/** What begins and ends the reasoning in front of an answer. */
export interface ReasoningMarks {
  readonly open: string;
  readonly close: string;
}

/** Marks by family; a checkpoint has the first ones that its vocabulary knows. */
export const REASONING_MARKS: readonly ReasoningMarks[] = [
  // Qwen3, QwQ, DeepSeek R1 and V3.1, GLM, SmolLM3, Phi-4 reasoning
  { open: "<think>", close: "</think>" },
  { open: "[THINK]", close: "[/THINK]" }, // Magistral
  { open: "<seed:think>", close: "</seed:think>" }, // Seed-OSS
];

/** The variables with which templates ask whether to think. */
const SWITCHES = [
  "enable_thinking", // Qwen3, GLM, SmolLM3
  "thinking", // DeepSeek-V3.1, Granite, Kimi
];

/** How a checkpoint reasons. Plain data. */
export interface Reasoning {
  /** Undefined where its output has no such part. */
  readonly marks: ReasoningMarks | undefined;
  /** Token ids at the end of prompts whose template has opened the reasoning already. */
  readonly openings: readonly (readonly number[])[];
  /** The template asks whether to think. */
  readonly switchable: boolean;
}

/** What this needs of a tokenizer. */
interface Vocabulary {
  encode(text: string, options: { readonly addSpecialTokens: boolean }): number[];
  idOf(token: string): number | undefined;
}

/** @param template undefined for a base model. */
export function reasoningOf(
  tokenizer: Vocabulary,
  template: string | undefined,
): Reasoning {
  const knows = (mark: string) => tokenizer.idOf(mark) !== undefined || template?.includes(mark);
  const marks = REASONING_MARKS.find(({ open, close }) => knows(open) && knows(close));
  const openings = marks === undefined
    ? []
    : ["", "\n", "\n\n"].map((space) =>
      tokenizer.encode(`${marks.open}${space}`, { addSpecialTokens: false })
    );
  const switchable = SWITCHES.some((name) => new RegExp(`\\b${name}\\b`).test(template ?? ""));
  return { marks, openings, switchable };
}

/** Template variables for thinking or not; "auto" leaves it to the template. */
export function thinkArguments(think: "on" | "off" | "auto"): Record<string, boolean> {
  if (think === "auto") return {};
  return Object.fromEntries(SWITCHES.map((name) => [name, think === "on"]));
}

/** A piece of output, parted. */
export interface SeparatedText {
  readonly reasoning: string;
  readonly text: string;
}

/** Where an output is: it has said nothing yet, reasons, has ended that, or answers. */
type Part = "begin" | "reasoning" | "gap" | "text";

/** Parts an output that arrives in pieces. */
export interface ReasoningStream {
  /** The part that the last piece belongs to. */
  readonly part: Part;
  push(piece: string): SeparatedText;
  /** The output ended: what was held back. */
  end(): SeparatedText;
}

const NOTHING: SeparatedText = { reasoning: "", text: "" };

/**
 * Separates reasoning from the answer. Reasoning is the text between the marks at the beginning of an
 * output, or from its beginning where the prompt opened it (`openings`); marks further on are text.
 * White space around reasoning and the empty lines before the answer are left out. The result does
 * not depend on how the output is cut.
 */
export function reasoningStream(
  { marks, openings }: Pick<Reasoning, "marks" | "openings">,
  promptIds: readonly number[],
): ReasoningStream {
  if (marks === undefined) {
    return { part: "text", push: (text) => ({ ...NOTHING, text }), end: () => NOTHING };
  }
  const { open, close } = marks;
  const opened = openings.some((ids) => ids.every((id, i) => id === promptIds.at(i - ids.length)));
  let part: Part = "begin";
  let held = "";
  let begun = false;

  /** What of `held` is sure to be reasoning; the rest waits. */
  function takeReasoning(ended: boolean): string {
    const at = held.indexOf(close);
    const end = at >= 0 ? at : ended ? held.length : held.length - openTail(held, close);
    const whole = held.slice(0, end);
    const shown = begun ? whole.trimEnd() : whole.trim();
    begun ||= shown !== "";
    const rest = at >= 0 ? held.slice(at + close.length) : held.slice(whole.trimEnd().length);
    held = rest;
    if (at >= 0) part = "gap";
    return shown;
  }

  function take(ended: boolean): SeparatedText {
    let reasoning = "";
    if (part === "begin") {
      const start = held.trimStart();
      if (start.startsWith(open)) {
        held = start.slice(open.length);
        part = "reasoning";
      } else if (ended || !open.startsWith(start)) part = opened ? "reasoning" : "text";
    }
    if (part === "reasoning") reasoning = takeReasoning(ended);
    if (part === "gap" && held.trim() !== "") {
      held = held.replace(/^\s*\n/, "");
      part = "text";
    }
    if (part !== "text") return { reasoning, text: "" };
    const text = held;
    held = "";
    return { reasoning, text };
  }

  return {
    get part() {
      return part;
    },
    push(piece) {
      held += piece;
      return take(false);
    },
    end: () => take(true),
  };
}

/** Counts the tokens of an output that reason, both marks included. */
export interface ReasoningCounter {
  readonly tokens: number;
  /** Whether no token to come counts. */
  readonly over: boolean;
  /** Takes what the next token adds to the text. */
  push(piece: string): void;
}

export function reasoningCounter(
  reasoning: Pick<Reasoning, "marks" | "openings">,
  promptIds: readonly number[],
): ReasoningCounter {
  const stream = reasoningStream(reasoning, promptIds);
  let [tokens, all] = [0, 0];
  const over = () => stream.part === "gap" || stream.part === "text";
  return {
    get tokens() {
      return tokens;
    },
    get over() {
      return over();
    },
    push(piece) {
      const before = stream.part;
      if (over()) return;
      all++;
      const { reasoning } = stream.push(piece);
      // The token that completes the closing mark is the last one.
      const none = stream.part === "begin" || (before === "begin" && stream.part === "text");
      if (!none || reasoning !== "") tokens = all;
    },
  };
}

/** A whole output, parted. */
export function partReasoning(
  output: string,
  reasoning: Pick<Reasoning, "marks" | "openings">,
  promptIds: readonly number[],
): SeparatedText {
  const stream = reasoningStream(reasoning, promptIds);
  const [first, last] = [stream.push(output), stream.end()];
  return { reasoning: first.reasoning + last.reasoning, text: first.text + last.text };
}

/** Length of the longest end of `text` that begins `mark`. */
function openTail(text: string, mark: string): number {
  let length = Math.min(mark.length - 1, text.length);
  while (length > 0 && !mark.startsWith(text.slice(-length))) length--;
  return length;
}
