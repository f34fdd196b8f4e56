import { PassThrough, Writable } from "node:stream";
import type { Interface, Key } from "node:readline";
import { type Io, isHungUp } from "./io.ts";
import { pasteFilter } from "./paste.ts";

/** Takes a key before the line editor does; true where it is not for the editor. */
export type TakeKey = (text: string | undefined, key: Key) => boolean;

/** Keys for readline, with pastes made harmless. */
export class Keyboard extends PassThrough {
  // readline reads these two properties of its input.
  readonly isTTY: boolean = true;
  readonly setRawMode: (on: boolean) => void;
  takeKey: TakeKey = () => false;

  constructor({ stdin }: Io) {
    super();
    this.setRawMode = stdin.setRaw;
    this.#pump(stdin.bytes).catch((error) => isHungUp(error) ? this.end() : this.destroy(error));
  }

  /** readline decodes the bytes of this stream and has it emit a "keypress" for each key. */
  override emit(event: string | symbol, ...values: unknown[]): boolean {
    if (event === "keypress" && this.takeKey(...values as Parameters<TakeKey>)) return true;
    return super.emit(event, ...values);
  }

  async #pump(bytes: ReadableStream<Uint8Array>): Promise<void> {
    const filter = pasteFilter();
    const decoder = new TextDecoder();
    for await (const chunk of bytes) this.write(filter(decoder.decode(chunk, { stream: true })));
    this.end();
  }
}

/** stderr as readline sees it; muted between a line and the next prompt. */
export class Screen extends Writable {
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

/** What of a line editor may be set from outside, though its types do not say so. */
interface Drawn {
  readonly line?: string;
  /** In UTF-16 units. */
  readonly cursor?: number;
  /** Rows between the prompt's first and the cursor's, as the screen has them. */
  readonly prevRows?: number;
}

/** Draws prompt and line, after changing them. */
export function draw(editor: Interface, changed: Drawn = {}): void {
  Object.assign(editor, changed);
  editor.prompt(true);
}
