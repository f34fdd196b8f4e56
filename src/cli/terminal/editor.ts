import readline from "node:readline";
import { draw, Keyboard, Screen } from "./readline.ts";
import { type History, HISTORY_SIZE } from "./history.ts";
import type { Io } from "./io.ts";
import type { Line, LineSource } from "./lines.ts";
import { terminalModes } from "./modes.ts";
import { markNewlines, unmarkNewlines } from "./paste.ts";
import { reverseSearch } from "./search.ts";

/** An Escape key is known as one when nothing follows it for so long. */
const ESCAPE_MS = 100;

/** What Tab may put in the place of the end of the line, and that end. */
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
 * Lines edited on a terminal, with history, completion, search and bracketed paste. The editing is
 * node:readline's; it draws on stderr, so stdout has the answers only.
 */
export function terminalLines(io: Io, { history, complete }: EditorOptions): LineSource {
  const waiting: Waiting = { lines: [], wake: undefined };
  const give = (line: Line) => {
    const { wake } = waiting;
    waiting.wake = undefined;
    if (wake === undefined) waiting.lines.push(line);
    else wake(line);
  };
  const screen = new Screen(io);
  const keyboard = new Keyboard(io);
  const recalled = history.lines.map(markNewlines);
  const editor = readline.createInterface({
    input: keyboard,
    output: screen,
    terminal: true,
    history: recalled,
    historySize: HISTORY_SIZE,
    escapeCodeTimeout: ESCAPE_MS,
    completer: (line: string) => {
      const [candidates, end] = complete(line);
      return [[...candidates], end];
    },
  });
  // What is recalled is what was remembered: readline would add each line of a message.
  const recall = () => void recalled.splice(0, recalled.length, ...history.lines.map(markNewlines));
  editor.on("history", recall);
  const search = reverseSearch(editor, recalled);
  keyboard.takeKey = (text, key) => !screen.muted && search(text, key);
  const modes = terminalModes(io, editor, screen);
  let stop: (() => void) | undefined;
  let ended = false;
  editor.on("line", (text: string) => {
    // Keys that come before the next prompt must not draw into what is written until then.
    screen.muted = true;
    give({ kind: "line", text: unmarkNewlines(text) });
  });
  editor.on("SIGINT", () => stop ? stop() : give({ kind: "interrupt", empty: discard(editor) }));
  editor.on("close", () => {
    ended = true;
    modes[Symbol.dispose]();
    give({ kind: "end" });
  });
  io.signal.addEventListener("abort", () => editor.close());
  return {
    next(prompt) {
      const early = waiting.lines.shift();
      if (early !== undefined) {
        if (early.kind === "line") io.stderr.write(`${prompt}${early.text}\n`);
        return Promise.resolve(early);
      }
      if (ended) return Promise.resolve({ kind: "end" });
      screen.muted = false;
      editor.setPrompt(prompt);
      draw(editor, { prevRows: 0 });
      return new Promise((resolve) => waiting.wake = resolve);
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
    remember(text) {
      history.add(text);
      recall();
    },
    [Symbol.dispose]() {
      editor.close();
    },
  };
}

/** Throws the typed line away; true when there was none. */
function discard(editor: readline.Interface): boolean {
  const empty = editor.line === "";
  // The cursor may be anywhere: move to the end, then delete to the start.
  editor.write(null, { ctrl: true, name: "e" });
  editor.write(null, { ctrl: true, name: "u" });
  return empty;
}
