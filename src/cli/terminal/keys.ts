/** What the keyboard sent: a run of typed characters, a paste, or a key by its name. */
export type Key =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "paste"; readonly text: string }
  /** `C-a` is Ctrl+A, `M-b` is Alt+B; the others are words. */
  | { readonly kind: "key"; readonly name: string };

const BEGIN = "\x1b[200~";
const END = "\x1b[201~";

/** Make a terminal mark pastes with `BEGIN` and `END`, and stop it. */
export const PASTE_ON = "\x1b[?2004h";
export const PASTE_OFF = "\x1b[?2004l";

/** The sequences of xterm, rxvt, the Linux console and the kitty protocol, without their ESC. */
const SEQUENCES: Readonly<Record<string, string>> = {
  ...named("up", "[A", "OA"),
  ...named("down", "[B", "OB"),
  ...named("right", "[C", "OC"),
  ...named("left", "[D", "OD"),
  ...named("home", "[H", "OH", "[1~", "[7~"),
  ...named("end", "[F", "OF", "[4~", "[8~"),
  ...named("delete", "[3~"),
  ...named("newline", "\r", "\n", "OM", "[13;2u", "[13;3u", "[13;5u", "[27;2;13~", "[27;5;13~"),
  ...named("M-f", "[1;5C", "[1;3C", "[5C", "Oc", "\x1b[C"),
  ...named("M-b", "[1;5D", "[1;3D", "[5D", "Od", "\x1b[D"),
  ...named("M-d", "[3;5~", "[3;3~"),
  ...named("M-backspace", "\x7f", "\b"),
};

const CONTROLS: Readonly<Record<string, string>> = {
  "\r": "enter",
  "\n": "newline",
  "\t": "tab",
  "\b": "backspace",
  "\x7f": "backspace",
  "\x1f": "C-_",
};

// deno-lint-ignore no-control-regex
const SEQUENCE = /^\x1b(\x1b?\[[0-?]*[ -/]*[@-~]|O[ -~]|[^\x1b[O])/u;
/** The beginning of a sequence whose end has not arrived. */
// deno-lint-ignore no-control-regex
const UNFINISHED = /^\x1b\x1b?(\[[0-?]*[ -/]*|O)?$/;
// deno-lint-ignore no-control-regex
const TYPED = /^[^\x00-\x1f\x7f-\x9f]+/;

/** Reads a terminal's input, whose chunks may be cut anywhere. */
export class KeyReader {
  /** The unread end of the input; outside a paste the beginning of an escape sequence. */
  #rest = "";
  /** Parts of the paste that is arriving. */
  #paste: string[] | undefined;

  /** An ESC waits for what follows it. */
  get waits(): boolean {
    return this.#rest !== "" && this.#paste === undefined;
  }

  push(chunk: string): Key[] {
    // Where the end mark was lost, Ctrl+C still ends the paste.
    if (this.#paste !== undefined && chunk === "\x03") this.#paste = undefined;
    const keys: Key[] = [];
    let input = this.#rest + chunk;
    this.#rest = "";
    while (input !== "") {
      if (this.#paste !== undefined) {
        input = this.#readPaste(input, keys);
        continue;
      }
      if (input.startsWith(BEGIN)) {
        this.#paste = [];
        input = input.slice(BEGIN.length);
        continue;
      }
      if (UNFINISHED.test(input)) {
        this.#rest = input;
        return keys;
      }
      input = input.slice(readKey(input, keys));
    }
    return keys;
  }

  /** Nothing follows the ESC: it was the Escape key. */
  flush(): Key[] {
    if (!this.waits) return [];
    this.#rest = "";
    return [{ kind: "key", name: "escape" }];
  }

  /** Returns what follows the paste; keeps back what may be the beginning of its end mark. */
  #readPaste(input: string, keys: Key[]): string {
    const at = input.indexOf(END);
    const parts = this.#paste ?? [];
    if (at >= 0) {
      keys.push({ kind: "paste", text: [...parts, input.slice(0, at)].join("") });
      this.#paste = undefined;
      return input.slice(at + END.length);
    }
    const mark = input.lastIndexOf("\x1b", input.length);
    const held = mark >= 0 && END.startsWith(input.slice(mark)) ? mark : input.length;
    parts.push(input.slice(0, held));
    this.#rest = input.slice(held);
    return "";
  }
}

/** Reads one key or a run of characters; returns its length. */
function readKey(input: string, keys: Key[]): number {
  const [typed] = TYPED.exec(input) ?? [];
  if (typed !== undefined) {
    keys.push({ kind: "text", text: typed });
    return typed.length;
  }
  const [whole, sequence] = SEQUENCE.exec(input) ?? [];
  if (whole !== undefined && sequence !== undefined) {
    const name = SEQUENCES[sequence] ??
      (/^[a-z]$/i.test(sequence) ? `M-${sequence.toLowerCase()}` : "");
    if (name !== "") keys.push({ kind: "key", name });
    return whole.length;
  }
  const [control = ""] = input;
  const letter = String.fromCharCode(control.charCodeAt(0) + 0x60);
  const name = CONTROLS[control] ?? (control === "\x1b" ? "escape" : `C-${letter}`);
  keys.push({ kind: "key", name });
  return control.length;
}

function named(name: string, ...sequences: string[]): Record<string, string> {
  return Object.fromEntries(sequences.map((sequence) => [sequence, name]));
}
