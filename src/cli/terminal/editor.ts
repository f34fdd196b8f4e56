import stringWidth from "string-width";
import {
  type Cell,
  cellsOf,
  DELETES,
  type Edited,
  editing,
  EMPTY,
  insert,
  KILLS,
  moveLine,
  MOVES,
  remove,
  textOf,
  transpose,
  type,
} from "./edited.ts";
import type { History } from "./history.ts";
import { type Io, isHungUp } from "./io.ts";
import { type Key, KeyReader } from "./keys.ts";
import type { Line, LineSource } from "./lines.ts";
import { terminalModes } from "./modes.ts";
import { Recall } from "./recall.ts";
import { LineScreen } from "./screen.ts";
import { beginSearch, found, type Search, searchKey, searchLine } from "./search.ts";

/** An Escape key is known as one when nothing follows it for so long. */
const ESCAPE_MS = 100;

/** Texts that Ctrl+_ goes back to. */
const UNDO_STEPS = 100;

const END: Line = { kind: "end" };

/** What Tab may put in the place of the end of the text, and that end. */
export type Completion = readonly [candidates: readonly string[], end: string];

interface EditorOptions {
  readonly history: History;
  readonly complete: (line: string) => Completion;
}

/** Lines that were read before they were asked for, and the pending request for one. */
interface Waiting {
  readonly lines: Line[];
  wake: ((line: Line) => void) | undefined;
}

/**
 * Lines edited on a terminal, with history, completion, search and pastes. The editor draws on stderr,
 * so stdout has the answers only. It draws once for all keys of a read, and a paste is one edit.
 */
export function terminalLines(io: Io, { history, complete }: EditorOptions): LineSource {
  const waiting: Waiting = { lines: [], wake: undefined };
  const give = (line: Line) => {
    const { wake } = waiting;
    waiting.wake = undefined;
    if (wake === undefined) waiting.lines.push(line);
    else wake(line);
  };
  const screen = new LineScreen(io.stderr);
  const recall = new Recall(history.lines);
  let prompt = "";
  let line = EMPTY;
  let killed: readonly Cell[] = [];
  let undo: readonly Edited[] = [];
  let search: Search | undefined;
  let lastQuery = "";
  let tabbed = false;
  let stop: (() => void) | undefined;
  /** A line was asked for. */
  let prompted = false;
  let ended = false;
  let failure: { readonly error: unknown } | undefined;
  let escape: ReturnType<typeof setTimeout> | undefined;

  const shown = () => search ? searchLine(history.lines, search) : { ...line, prompt };
  const draw = () => modes.stopped || screen.draw(shown());
  const modes = terminalModes(io, {
    onResume: () => screen.muted || screen.drawAnew(shown()),
    onResize: () => screen.muted || screen.redraw(shown()),
  });

  function edit(next: Edited): void {
    undo = [...undo, line].slice(-UNDO_STEPS);
    line = next;
    recall.edited();
  }

  /** The text that was edited; the next one begins empty. */
  function take(): string {
    const text = textOf(line.cells);
    line = EMPTY;
    undo = [];
    recall.reset();
    return text;
  }

  function endSearch(next: Edited): void {
    if (search !== undefined && search.query !== "") lastQuery = search.query;
    search = undefined;
    line = next;
  }

  function end(): void {
    if (ended) return;
    ended = true;
    clearTimeout(escape);
    modes[Symbol.dispose]();
    give(END);
  }

  /** Ctrl+C. */
  function interrupt(): void {
    if (stop !== undefined) return stop();
    const empty = take() === "";
    draw();
    screen.muted = true;
    give({ kind: "interrupt", empty });
  }

  function press(key: Key): void {
    if (search !== undefined) {
      const next = searchKey(search, key, { history: history.lines, lastQuery });
      if (next !== undefined) return void (search = next);
      const cancelled = key.kind === "key" && (key.name === "C-g" || key.name === "escape");
      endSearch(cancelled ? search.before : found(history.lines, search));
      if (cancelled) return;
    }
    const again = tabbed;
    tabbed = false;
    if (key.kind === "text") return edit(type(line, key.text));
    if (key.kind === "paste") return edit(insert(line, cellsOf(key.text)));
    command(key.name, again);
  }

  function command(name: string, tabbedBefore: boolean): void {
    const place = MOVES[name]?.(line);
    if (place !== undefined) return void (line = { ...line, cursor: place });
    if (name === "C-d" && line.cells.length === 0) return end();
    const to = (DELETES[name] ?? KILLS[name])?.(line);
    if (to !== undefined) {
      const [from, until] = [Math.min(to, line.cursor), Math.max(to, line.cursor)];
      if (from === until) return;
      if (Object.hasOwn(KILLS, name)) killed = line.cells.slice(from, until);
      return edit(remove(line, from, until));
    }
    switch (name) {
      case "enter":
        screen.leave(shown());
        // Keys that arrive before the next prompt must not be drawn into what is written until then.
        screen.muted = true;
        return give({ kind: "line", text: take() });
      case "newline":
        return edit(insert(line, [{ text: "\n", shown: "\n" }]));
      case "C-c":
        return interrupt();
      case "C-z":
        screen.leave(shown());
        return modes.suspend();
      case "C-l":
        if (screen.muted) return;
        io.stderr.write("\x1b[H\x1b[2J");
        return screen.drawAnew(shown());
      case "up":
        return void (line = upOrDown(-1) ?? recall.step(line, 1));
      case "down":
        return void (line = upOrDown(1) ?? recall.step(line, -1));
      case "C-p":
        return void (line = recall.step(line, 1));
      case "C-n":
        return void (line = recall.step(line, -1));
      case "C-r":
        if (!screen.muted) search = beginSearch(line);
        return;
      case "C-t":
        return edit(transpose(line));
      case "C-y":
        return edit(insert(line, killed));
      case "C-_":
        line = undo.at(-1) ?? line;
        undo = undo.slice(0, -1);
        return;
      case "tab":
        return tab(tabbedBefore);
    }
  }

  /** The cursor in another line of the text; an entry just recalled makes way for the next at once. */
  function upOrDown(by: 1 | -1): Edited | undefined {
    return recall.shows(line) ? undefined : moveLine(line, by);
  }

  /** Completes as far as all candidates agree; the second time lists them. */
  function tab(again: boolean): void {
    const [candidates, end] = complete(textOf(line.cells.slice(0, line.cursor)));
    const more = commonStart(candidates).slice(end.length);
    tabbed = true;
    if (more !== "") return edit(type(line, more));
    if (!again || screen.muted || candidates.length < 2) return;
    screen.leave(shown());
    io.stderr.write(inColumns(candidates, io.stderr.columns()));
    screen.drawAnew(shown());
  }

  function pressAll(keys: readonly Key[]): void {
    for (const key of keys) {
      if (ended) return;
      press(key);
    }
    if (keys.length > 0) draw();
  }

  async function read(): Promise<void> {
    const reader = new KeyReader();
    const decoder = new TextDecoder();
    let first = true;
    for await (const chunk of io.stdin.bytes) {
      clearTimeout(escape);
      const input = decoder.decode(chunk, { stream: true });
      // What was typed before the terminal was raw comes in one read, and the terminal has made \n of Enter's \r.
      pressAll(reader.push(first && !prompted ? input.replaceAll("\n", "\r") : input));
      first = false;
      if (reader.waits && !ended) escape = setTimeout(() => pressAll(reader.flush()), ESCAPE_MS);
    }
  }

  // An error of the keyboard is thrown by the request for the next line.
  read().catch((error) => isHungUp(error) || (failure = { error })).finally(end);
  io.signal.addEventListener("abort", end);
  return {
    async next(asked) {
      prompted = true;
      const early = waiting.lines.shift();
      if (early !== undefined) {
        if (early.kind === "line") screen.leaveAnew({ ...editing(early.text), prompt: asked });
      } else if (!ended) {
        prompt = asked;
        screen.drawAnew(shown());
      }
      const given = early ??
        (ended ? END : await new Promise<Line>((resolve) => waiting.wake = resolve));
      if (given.kind === "end" && failure !== undefined) throw failure.error;
      return given;
    },
    async answering(stopAnswer, answer) {
      stop = stopAnswer;
      try {
        return await answer();
      } finally {
        stop = undefined;
      }
    },
    history: history.lines,
    remember: (text) => history.add(text),
    [Symbol.dispose]: end,
  };
}

/** What all texts begin with. */
function commonStart(texts: readonly string[]): string {
  const [first = "", ...others] = texts;
  let length = first.length;
  for (const text of others) {
    while (!text.startsWith(first.slice(0, length))) length--;
  }
  return first.slice(0, length);
}

/** Rows of as many columns as the terminal has room for. */
function inColumns(texts: readonly string[], columns: number): string {
  const width = Math.max(...texts.map((text) => stringWidth(text))) + 2;
  const perRow = Math.max(1, Math.floor(columns / width));
  const rows: string[] = [];
  for (let at = 0; at < texts.length; at += perRow) {
    const cells = texts.slice(at, at + perRow)
      .map((text) => text + " ".repeat(width - stringWidth(text)));
    rows.push(cells.join("").trimEnd());
  }
  return `${rows.join("\r\n")}\r\n`;
}
