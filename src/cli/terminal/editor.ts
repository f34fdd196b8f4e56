import { PassThrough, Writable } from "node:stream";
import readline from "node:readline";
import type { Io } from "./io.ts";
import type { Line, LineSource } from "./lines.ts";
import { PASTE_OFF, PASTE_ON, pasteFilter, unmarkNewlines } from "./paste.ts";

const HISTORY = 500;

/** Lines that were read before they were asked for, and the pending request for one. */
interface Waiting {
  readonly lines: Line[];
  wake: ((line: Line) => void) | undefined;
}

/**
 * Lines edited on a terminal, with history and bracketed paste. The editing is node:readline's;
 * it draws on stderr, so stdout has the answers only.
 */
export function terminalLines(io: Io): LineSource {
  const waiting: Waiting = { lines: [], wake: undefined };
  const give = (line: Line) => {
    const { wake } = waiting;
    waiting.wake = undefined;
    if (wake === undefined) waiting.lines.push(line);
    else wake(line);
  };
  const screen = new Screen(io);
  const editor = readline.createInterface({
    input: keyboard(io),
    output: screen,
    terminal: true,
    historySize: HISTORY,
    removeHistoryDuplicates: true,
  });
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
    give({ kind: "end" });
  });
  io.signal.addEventListener("abort", () => editor.close());
  io.stderr.write(PASTE_ON);
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
      editor.prompt(true);
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
    [Symbol.dispose]() {
      editor.close();
      io.stderr.write(PASTE_OFF);
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

/** Keys for readline, with pastes made harmless. */
function keyboard(io: Io): PassThrough {
  const keys = new PassThrough();
  // readline reads these two properties of its input.
  Object.assign(keys, { isTTY: true, setRawMode: io.stdin.setRaw });
  const filter = pasteFilter();
  const decoder = new TextDecoder();
  const pump = async () => {
    for await (const chunk of io.stdin.bytes) {
      keys.write(filter(decoder.decode(chunk, { stream: true })));
    }
    keys.end();
  };
  pump().catch((error) => keys.destroy(error));
  return keys;
}

/** stderr as readline sees it; muted between a line and the next prompt. */
class Screen extends Writable {
  readonly isTTY: boolean = true;
  muted: boolean = false;
  readonly #io: Io;

  constructor(io: Io) {
    super({ decodeStrings: false });
    this.#io = io;
  }

  get columns(): number {
    return this.#io.stderr.columns();
  }

  override _write(chunk: unknown, _encoding: string, done: (error?: Error) => void): void {
    if (!this.muted) this.#io.stderr.write(String(chunk));
    done();
  }
}
