import { type BodyEvent, type BodyReader, collector, isName } from "./body.ts";
import type { Tool } from "./tool.ts";
import {
  argumentNames,
  argumentTypes,
  isTextOnly,
  jsonOfText,
  toolNamed,
  type Types,
} from "./values.ts";

/** How a call with a tag for each argument is written. */
export interface Tags {
  /** Tags around the name. Without `close`, white space or the first argument ends the name. */
  readonly name: { readonly open: string; readonly close?: string };
  readonly key: { readonly open: string; readonly close: string };
  /** Behind the key. */
  readonly value: { readonly open: string; readonly close: string };
  /** Ends the call. */
  readonly end: string;
  /**
   * One line end at each side of a value belongs to the tags. A line that begins with the key of another of the tool's
   * arguments ends a value that was not closed.
   */
  readonly lines?: boolean;
  /** Follows the call. Before it either of the last two tags may be missing. */
  readonly after?: string;
  /** Tokens that models slip into names. */
  readonly dropped?: readonly string[];
}

type Expected = "name open" | "name" | "argument" | "key" | "value open" | "value";

/**
 * Reads a call with tags. Arguments become JSON of the types in the tool's schema; arguments that can only be
 * texts are streamed.
 *
 * @param of.tools give the types. A namespace in front of a tool's name is removed.
 * @param of.named the name's opening tag has been read.
 */
export function taggedCall(
  tags: Tags,
  { tools, named = false }: { readonly tools: readonly Tool[]; readonly named?: boolean },
): BodyReader {
  const events = collector();
  const ends = valueEnds(tags);
  let expected: Expected = named || tags.name.open === "" ? "name" : "name open";
  /** The text since the last tag, and only its end (`tail`), in which tags are searched: `held` may be long. */
  let [held, tail] = ["", ""];
  let tool: Tool | undefined;
  let names: readonly string[] = [];
  let types: Types;
  const keys = new Set<string>();
  /** A text of which a part has been returned. */
  let streaming = false;
  /** The value's first character is to come. */
  let first = true;

  function take(): BodyEvent[] {
    if (expected === "value" && isTextOnly(types)) stream();
    return events.take();
  }

  /** Streams the part of a text argument that cannot be the beginning of what ends it. */
  function stream(): void {
    const at = [...held.matchAll(/[\n<]/g)].find(({ index }) => mayEndValue(held.slice(index)));
    const sure = held.slice(0, at?.index);
    if (sure === "") return;
    events.arguments(`${streaming ? "" : '"'}${JSON.stringify(sure).slice(1, -1)}`);
    streaming = true;
    held = held.slice(sure.length);
  }

  /** Can the text begin what ends a value? */
  function mayEndValue(text: string): boolean {
    if (tags.lines && nextKeys().some((key) => key.startsWith(text))) return true;
    const tag = tags.lines && text.startsWith("\n") ? text.slice(1) : text;
    return ends.some(({ mark, next }) =>
      mark.startsWith(tag) ||
      tag.startsWith(mark) && next.startsWith(tag.slice(mark.length).trimStart())
    );
  }

  /** Lines with the keys of the tool's arguments that have not been given. */
  function nextKeys(): string[] {
    return names.filter((name) => !keys.has(name))
      .map((name) => `\n${tags.key.open}${name}${tags.key.close}`);
  }

  function endValue(text: string): void {
    const value = tags.lines && text.endsWith("\n") ? text.slice(0, -1) : text;
    if (streaming) events.arguments(`${JSON.stringify(value).slice(1, -1)}"`);
    else events.arguments(jsonOfText(value, types));
    streaming = false;
    expect("argument");
  }

  function endName(text: string): "more" | "bad" {
    let name = text;
    for (const token of tags.dropped ?? []) name = name.replaceAll(token, "");
    name = name.trim();
    if (!isName(name)) return "bad";
    tool = toolNamed(tools, name);
    names = tool === undefined ? [] : argumentNames(tool);
    events.name(tool?.name ?? name);
    expect("argument");
    return "more";
  }

  /** The text before a tag, if `held` ends with it. */
  function before(tag: string): string | undefined {
    return tail.endsWith(tag) ? held.slice(0, -tag.length) : undefined;
  }

  function expect(next: Expected): void {
    [expected, held, tail] = [next, "", ""];
  }

  function end(): "end" {
    events.arguments(keys.size === 0 ? "{}" : "}");
    return "end";
  }

  /** Reads a tag that must follow, maybe behind white space. */
  function readOpen(tag: string, next: Expected): "more" | "bad" {
    held = held.trimStart();
    if (!tag.startsWith(held)) return "bad";
    if (held === tag) expect(next);
    return "more";
  }

  function readName(): "more" | "bad" | "end" {
    const { close } = tags.name;
    if (close !== undefined) {
      const name = before(close);
      if (name !== undefined) return endName(name);
      // A stray token may stand in the place of the name's closing tag.
      const early = before(tags.key.open);
      if (early !== undefined && tags.dropped?.some((token) => early.endsWith(token))) {
        if (endName(early) === "bad") return "bad";
        expect("key");
        return "more";
      }
    } else {
      const [name, tag] = [tags.key.open, tags.end].map((each) => [before(each), each] as const)
        .find(([text]) => text !== undefined) ?? [];
      if (name !== undefined) {
        if (endName(name) === "bad") return "bad";
        if (tag === tags.end) return end();
        expect("key");
        return "more";
      }
    }
    return held.length > LONGEST_NAME ? "bad" : "more";
  }

  function readArgument(): "more" | "bad" | "end" {
    held = held.trimStart();
    if (held === tags.end) return end();
    if (held === tags.key.open) {
      expect("key");
      return "more";
    }
    const possible = [tags.end, tags.key.open].some((each) => each.startsWith(held));
    return possible ? "more" : "bad";
  }

  function readKey(): "more" | "bad" {
    const key = before(tags.key.close);
    if (key === undefined) return held.length > LONGEST_NAME ? "bad" : "more";
    beginValue(key.trim());
    return "more";
  }

  function beginValue(name: string): void {
    types = argumentTypes(tool, name);
    first = true;
    events.arguments(`${keys.size === 0 ? "{" : ", "}${JSON.stringify(name)}: `);
    keys.add(name);
    expect(tags.value.open === "" ? "value" : "value open");
  }

  function readValue(): "more" | "end" {
    if (first && tags.lines && tail === "\n") expect("value");
    first = false;
    for (const { mark, next } of ends) {
      const text = before(next)?.trimEnd();
      if (!text?.endsWith(mark)) continue;
      endValue(text.slice(0, -mark.length));
      if (next !== tags.key.open) return end();
      expect("key");
      return "more";
    }
    if (!tags.lines || !tail.endsWith(tags.key.close)) return "more";
    const line = nextKeys().find((key) => tail.endsWith(key));
    if (line === undefined) return "more";
    const key = line.slice(1);
    endValue(held.slice(0, -key.length));
    beginValue(key.slice(tags.key.open.length, -tags.key.close.length));
    return "more";
  }

  return {
    take,
    end() {
      const text = held.trimEnd();
      const isClosed = expected === "value" && text.endsWith(tags.value.close);
      if (isClosed) endValue(text.slice(0, -tags.value.close.length));
      return isClosed && end() === "end";
    },
    push(character) {
      held += character;
      tail = (tail + character).slice(-LONGEST_TAG);
      switch (expected) {
        case "name open":
          return readOpen(tags.name.open, "name");
        case "name":
          return readName();
        case "argument":
          return readArgument();
        case "key":
          return readKey();
        case "value open":
          return readOpen(tags.value.open, "value");
        case "value":
          return readValue();
      }
    },
  };
}

/**
 * What ends a value: a mark and, behind white space, the text that must follow it, because a value may contain its own
 * closing tag.
 */
function valueEnds({ key, value, end, after }: Tags): { mark: string; next: string }[] {
  const { close: mark } = value;
  const closed = [key.open, end].map((next) => ({ mark, next }));
  return after === undefined
    ? closed
    : [...closed, { mark, next: after }, { mark: end, next: after }];
}

const LONGEST_NAME = 400;

/** Longer than any tag, a key between its own included. */
const LONGEST_TAG = 128;
