/**
 * Synchronous calls from one thread to another over shared memory: the caller writes a call, wakes the
 * other thread and sleeps until the answer is there. It takes some ten microseconds; a message and its
 * answer take two turns of the event loop, and a round of the engine cannot wait for those.
 */

import { UsageError } from "../../errors.ts";
import { grammarFault } from "../fault.ts";
import { MAX_ROWS } from "../../speculate/round_shape.ts";
import type { Proposal } from "../../speculate/trees.ts";

/** What is asked; see serve.ts for the answers. */
export const TAKE = 1;
export const FORCED = 2;
export const PRUNED = 3;
export const FILL = 4;
export const CLOSE = 5;
/** The thread returns to its event loop: a message follows. */
export const LEAVE = 6;

/** Words of the header. */
const STATE = 0;
const COMMAND = 1;
const HANDLE = 2;
const ARGUMENT = 3;
/** Words of the answer: whether the call failed, and its value. */
const FAILED = 4;
const VALUE = 5;
/** Tokens of the proposal in the data, of a call or of an answer; those of TAKE are a chain. */
const TOKENS = 6;
/** 1: the other thread is to end what it does. */
const INTERRUPT = 7;
/** 1: a message is to follow the answer. */
const ANNOUNCE = 8;
const HEADER = 9;

/** Values of the word STATE. */
const ANSWERED = 0;
const CALLED = 1;

/** Words for a proposal, or for the text of an error. */
const DATA = 8 * MAX_ROWS;

export interface Call {
  readonly command: number;
  readonly handle: number;
  readonly argument?: number;
  readonly proposal?: Proposal;
}

export interface Answer {
  readonly value: number;
  readonly proposal?: Proposal;
}

/** Memory of a mailbox whose masks have `words` words each. */
export function mailboxMemory(words: number): SharedArrayBuffer {
  return new SharedArrayBuffer(4 * (HEADER + DATA + MAX_ROWS * words));
}

/** Both threads have one for the same memory. */
export class Mailbox {
  /** Masks of the rows of a proposal: the answer to FILL. */
  readonly masks: Uint32Array;
  readonly #header: Int32Array;
  readonly #data: Int32Array;

  constructor(memory: SharedArrayBuffer) {
    this.#header = new Int32Array(memory, 0, HEADER);
    this.#data = new Int32Array(memory, 4 * HEADER, DATA);
    this.masks = new Uint32Array(memory, 4 * (HEADER + DATA));
  }

  /** Makes a call; the one before must be answered. */
  begin({ command, handle, argument = 0, proposal }: Call): void {
    const header = this.#header;
    header[COMMAND] = command;
    header[HANDLE] = handle;
    header[ARGUMENT] = argument;
    this.#writeProposal(proposal);
    Atomics.store(header, STATE, CALLED);
    Atomics.notify(header, STATE);
  }

  /**
   * Blocks until the call is answered.
   *
   * @returns undefined if there is no answer after `ms`.
   * @throws UsageError as the other thread reports it.
   */
  answer(ms: number): Answer | undefined {
    const header = this.#header;
    if (Atomics.wait(header, STATE, CALLED, ms) === "timed-out") return undefined;
    if (header[FAILED] === 1) throw new UsageError(this.#readText());
    return { value: header[VALUE] as number, proposal: this.#readProposal() };
  }

  /** Lets a message follow the answer, which may come twice or late; false if there is an answer already. */
  announced(): boolean {
    Atomics.store(this.#header, ANNOUNCE, 1);
    return Atomics.load(this.#header, STATE) === CALLED;
  }

  /** Lets the other thread end what it does, or continue. */
  set interrupted(interrupted: boolean) {
    Atomics.store(this.#header, INTERRUPT, Number(interrupted));
  }

  get interrupted(): boolean {
    return Atomics.load(this.#header, INTERRUPT) === 1;
  }

  /**
   * Answers calls until `answer` returns an answer with `leave` true, or until it is interrupted.
   *
   * @param announce sends the message that follows an answer.
   */
  serve(
    answer: (call: Call) => Answer & { readonly leave?: boolean },
    announce: () => void,
  ): void {
    const header = this.#header;
    for (let leave = false; !leave;) {
      const state = Atomics.load(header, STATE);
      if (state !== CALLED) {
        Atomics.wait(header, STATE, state);
        continue;
      }
      try {
        const answered = answer({
          command: header[COMMAND] as number,
          handle: header[HANDLE] as number,
          argument: header[ARGUMENT] as number,
          proposal: this.#readProposal(),
        });
        leave = answered.leave ?? false;
        header[FAILED] = 0;
        header[VALUE] = answered.value;
        this.#writeProposal(answered.proposal);
      } catch (error) {
        header[FAILED] = 1;
        this.#writeText(grammarFault(error).message);
        leave = this.interrupted;
      }
      Atomics.store(header, STATE, ANSWERED);
      Atomics.notify(header, STATE);
      if (Atomics.exchange(header, ANNOUNCE, 0) === 1) announce();
    }
  }

  #writeProposal(proposal: Proposal | undefined): void {
    const { tokens, parents } = proposal ?? { tokens: [], parents: [] };
    if (tokens.length > MAX_ROWS) {
      throw new Error(`a call has ${tokens.length} tokens, of at most ${MAX_ROWS}`);
    }
    this.#header[TOKENS] = tokens.length;
    this.#data.set(tokens);
    this.#data.set(parents, tokens.length);
  }

  #readProposal(): Proposal {
    const count = this.#header[TOKENS] as number;
    return {
      tokens: Array.from(this.#data.subarray(0, count)),
      parents: Array.from(this.#data.subarray(count, 2 * count)),
    };
  }

  #writeText(text: string): void {
    const points = [...text].slice(0, DATA).map((character) => character.codePointAt(0) as number);
    this.#header[TOKENS] = points.length;
    this.#data.set(points);
  }

  #readText(): string {
    return String.fromCodePoint(...this.#data.subarray(0, this.#header[TOKENS]));
  }
}
