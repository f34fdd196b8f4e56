import { type BodyReader, collector, isName, withEscapes } from "./body.ts";
import { ANY_ARGUMENTS, openAiCallId, type ToolFamily } from "./family.ts";
import { nativeForms, type NativeSyntax } from "./native_forms.ts";
import { isObjectText } from "./object_text.ts";

const CALL = "<|tool_call>";
const END = "<tool_call|>";
/** Around texts. */
const QUOTE = '<|"|>';

/** Lists and objects within the arguments are JSON, which the reader takes as well. */
const SYNTAX: NativeSyntax = {
  before: (name) => `${name}{`,
  after: "}",
  between: ",",
  key: ["", ":"],
  text: [QUOTE, QUOTE],
  value: ["", ""],
  ends: [QUOTE],
  json: "where needed",
};

/** Gemma 4: `<|tool_call>call:f{a:<|"|>text<|"|>,b:[1,true]}<tool_call|>`. */
export const GEMMA4: ToolFamily = {
  name: "gemma4",
  speaks: (template) => template.includes(`${CALL}call:`),
  format: {
    marks: { [CALL]: "call", [END]: "drop" },
    // Models write this mark after the last call and then wait for the tool's result.
    after: [END, "<|tool_response>"],
    bare: false,
    body: gemmaCall,
  },
  forced: (tools) => ({
    begin: `${CALL}call:`,
    forms: nativeForms(tools, SYNTAX, ({ name, parameters }) => ({
      before: name,
      schema: parameters ?? ANY_ARGUMENTS,
      after: "",
    })),
  }),
  argumentsAs: "object",
  callId: openAiCallId,
};

/** The arguments become JSON at the call's end. */
function gemmaCall(): BodyReader {
  const events = collector();
  let head = "";
  /** The arguments' text, and only its end (`tail`), in which quotes are searched: `held` may be long. */
  let [held, tail] = ["", ""];
  let depth = 0;
  /** What ends the text that is being read. */
  let quote: string | undefined;
  let escaped = false;

  function finish(): "end" | "bad" {
    const json = objectOf(held);
    if (json === undefined) return "bad";
    events.arguments(json);
    return "end";
  }

  function readText(character: string, end: string): void {
    if (end === QUOTE) quote = tail.endsWith(QUOTE) ? undefined : QUOTE;
    else if (escaped) escaped = false;
    else if (character === "\\") escaped = true;
    else if (character === '"') quote = undefined;
  }

  return {
    take: events.take,
    push(character) {
      if (depth === 0 && character !== "{") {
        head += character;
        return head.length > LONGEST_HEAD || head.endsWith(END) ? "bad" : "more";
      }
      if (depth === 0) {
        const name = head.trim().replace(/^call:/, "").trim();
        if (!isName(name)) return "bad";
        events.name(name);
      }
      held += character;
      tail = (tail + character).slice(-LONGEST_TAIL);
      if (quote !== undefined) {
        readText(character, quote);
        return "more";
      }
      if (tail.endsWith(QUOTE)) quote = QUOTE;
      else if (character === '"' && /[{[,:]\s*"$/.test(tail)) quote = '"';
      else if (character === "{" || character === "[") depth++;
      else if (character === "}" || character === "]") depth--;
      return depth === 0 ? finish() : "more";
    },
  };
}

const LONGEST_HEAD = 400;

/** As much as a mark, or the white space before a text of JSON. */
const LONGEST_TAIL = 64;

/** JSON of an object whose keys have no quotes and whose texts have their own; undefined for others. */
function objectOf(text: string): string | undefined {
  let at = 0;

  const space = () => {
    while (/\s/.test(text[at] ?? "")) at++;
  };
  const take = (mark: string) => {
    space();
    if (!text.startsWith(mark, at)) return false;
    at += mark.length;
    return true;
  };

  /** JSON of a text in quotes of either kind; undefined where none begins. */
  function quoted(): string | undefined {
    if (take(QUOTE)) {
      const end = text.indexOf(QUOTE, at);
      if (end < 0) throw new NotGemma();
      const inner = text.slice(at, end);
      at = end + QUOTE.length;
      return JSON.stringify(inner);
    }
    space();
    const [json] = /^"(?:[^"\\]|\\[^])*"/.exec(text.slice(at)) ?? [];
    if (json === undefined) return undefined;
    at += json.length;
    return withEscapes(json);
  }

  function word(ends: string): string {
    space();
    const begin = at;
    while (at < text.length && !ends.includes(text[at] as string)) at++;
    return text.slice(begin, at).trim();
  }

  function value(): string {
    if (take("{")) {
      return list("}", () => `${quoted() ?? JSON.stringify(word(":}"))}${colon()}${value()}`, "{");
    }
    if (take("[")) return list("]", value, "[");
    return quoted() ?? scalar(word(",]}"));
  }

  function colon(): string {
    if (!take(":")) throw new NotGemma();
    return ": ";
  }

  function list(close: string, item: () => string, open: string): string {
    const items: string[] = [];
    while (!take(close)) {
      items.push(item());
      if (!take(",") && text[at] !== close) throw new NotGemma();
    }
    return `${open}${items.join(", ")}${close}`;
  }

  try {
    const json = value();
    return isObjectText(json) ? json : undefined;
  } catch (error) {
    if (error instanceof NotGemma || error instanceof RangeError) return undefined;
    throw error;
  }
}

class NotGemma extends Error {}

/** A number stays as it is written; what is neither number nor word of JSON is a text. */
function scalar(text: string): string {
  if (/^(?:true|false|null)$/.test(text)) return text;
  if (/^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?$/.test(text)) return text;
  return text === "None" ? "null" : JSON.stringify(text);
}
