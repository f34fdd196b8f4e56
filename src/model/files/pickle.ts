/**
 * Reads the opcodes of Python's pickle format that tensor files use, to plain values, and runs no code.
 * Python's own loader calls whatever function a pickle names; this one asks `rules` for every name
 * and stops at the first name that they do not know.
 * Source: https://github.com/python/cpython/blob/main/Lib/pickletools.py
 */
import { reason } from "../../errors.ts";
import { quote } from "./fields.ts";

/**
 * A value of a pickle. `None` is null, a list an array, a tuple a frozen array, a dict a Map (keys
 * compare by identity, so tuples as keys stay apart), and a global what the rules made of it.
 */
export type PickleValue = unknown;

/** What a global stands for: a function that a pickle may call, or an inert value. */
export type PickleGlobal =
  | { readonly call: (args: readonly PickleValue[]) => PickleValue }
  | { readonly value: PickleValue };

/** What a pickle may refer to. */
export interface PickleRules {
  /** The global `module.name`; undefined = forbidden. */
  global(module: string, name: string): PickleGlobal | undefined;
  /** The object with this persistent id. @throws Error if the id is not valid. */
  persistent(id: PickleValue): PickleValue;
}

/** Newest protocol whose opcodes are read; torch writes protocol 2. */
const NEWEST_PROTOCOL = 5;

/**
 * Returns the value of a pickle. Memory and time are proportional to its bytes; nothing recurses.
 * @throws Error with one line that names the byte, and the opcode or global that is not allowed.
 */
export function unpickle(bytes: Uint8Array, rules: PickleRules): PickleValue {
  const machine: Machine = {
    bytes,
    view: new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength),
    at: 0,
    stack: [],
    marks: [],
    memo: new Map(),
    rules,
  };
  for (;;) {
    const start = machine.at;
    try {
      const code = u8(machine);
      if (code === STOP) return pop(machine);
      const run = OPCODES[code];
      if (run === undefined) throw new Error(`opcode ${opcodeName(code)} is not allowed`);
      run(machine);
    } catch (error) {
      throw new Error(`${reason(error)} (byte ${start} of the pickle)`, { cause: error });
    }
  }
}

/** The state between two opcodes. */
interface Machine {
  readonly bytes: Uint8Array;
  readonly view: DataView;
  /** Next byte. */
  at: number;
  readonly stack: PickleValue[];
  /** Heights of the stack at each open MARK; nothing below the last one may be popped. */
  readonly marks: number[];
  readonly memo: Map<number, PickleValue>;
  readonly rules: PickleRules;
}

const STOP = code(".");

/** Handlers by opcode. Opcodes that are missing here (INST, OBJ, NEWOBJ, EXT, NEXT_BUFFER...) are not allowed. */
const OPCODES: Readonly<Record<number, (machine: Machine) => void>> = {
  [0x80]: (m) => {
    const protocol = u8(m);
    if (protocol > NEWEST_PROTOCOL) throw new Error(`protocol ${protocol} is not known`);
  },
  [0x95]: (m) => void skip(m, 8), // FRAME: how much to read ahead
  [code("(")]: (m) => void m.marks.push(m.stack.length),
  [code("N")]: (m) => push(m, null),
  [0x88]: (m) => push(m, true),
  [0x89]: (m) => push(m, false),
  [code("K")]: (m) => push(m, u8(m)),
  [code("M")]: (m) => push(m, m.view.getUint16(skip(m, 2), true)),
  [code("J")]: (m) => push(m, m.view.getInt32(skip(m, 4), true)),
  [0x8a]: (m) => push(m, long(take(m, u8(m)))),
  [code("G")]: (m) => push(m, m.view.getFloat64(skip(m, 8))),
  [code("X")]: (m) => push(m, text(take(m, u32(m)))),
  [0x8c]: (m) => push(m, text(take(m, u8(m)))),
  [0x8d]: (m) => push(m, text(take(m, u64(m)))),
  [code("U")]: (m) => push(m, text(take(m, u8(m)))),
  [code("T")]: (m) => push(m, text(take(m, u32(m)))),
  [code("]")]: (m) => push(m, []),
  [code("a")]: (m) => append(m, [pop(m)]),
  [code("e")]: (m) => append(m, popToMark(m)),
  [code(")")]: (m) => push(m, Object.freeze([])),
  [code("t")]: (m) => push(m, Object.freeze(popToMark(m))),
  [0x85]: (m) => push(m, Object.freeze([pop(m)])),
  [0x86]: (m) => push(m, Object.freeze([pop(m), pop(m)].reverse())),
  [0x87]: (m) => push(m, Object.freeze([pop(m), pop(m), pop(m)].reverse())),
  [code("}")]: (m) => push(m, new Map()),
  [code("s")]: (m) => setItems(m, [pop(m), pop(m)].reverse()),
  [code("u")]: (m) => setItems(m, popToMark(m)),
  [code("q")]: (m) => memoize(m, u8(m)),
  [code("r")]: (m) => memoize(m, u32(m)),
  [0x94]: (m) => memoize(m, m.memo.size),
  [code("h")]: (m) => push(m, recall(m, u8(m))),
  [code("j")]: (m) => push(m, recall(m, u32(m))),
  [code("0")]: (m) => void pop(m),
  [code("c")]: (m) => push(m, findGlobal(m, line(m), line(m))),
  [0x93]: (m) => {
    const [module, name] = [pop(m), pop(m)].reverse();
    if (typeof module !== "string" || typeof name !== "string") {
      throw new Error("a global's name is not a text");
    }
    push(m, findGlobal(m, module, name));
  },
  [code("Q")]: (m) => push(m, m.rules.persistent(pop(m))),
  [code("R")]: (m) => {
    const args = pop(m);
    const callee = pop(m);
    if (!(callee instanceof Callable)) throw new Error("calls what is not a function");
    if (!isTuple(args)) throw new Error(`calls ${callee.name} without a tuple of arguments`);
    push(m, callee.call(args));
  },
  // Attributes of the object: a state dict has its _metadata there, which is not needed.
  [code("b")]: (m) => {
    pop(m);
    if (!(m.stack.at(-1) instanceof Map)) throw new Error("gives state to what is not a dict");
  },
};

/** Opcodes that files with more than tensors use, for messages. */
const NAMES: Readonly<Record<number, string>> = {
  [code("i")]: "INST",
  [code("o")]: "OBJ",
  [code("P")]: "PERSID",
  [code("I")]: "INT",
  [code("L")]: "LONG",
  [code("F")]: "FLOAT",
  [code("S")]: "STRING",
  [code("V")]: "UNICODE",
  [code("B")]: "BINBYTES",
  [code("C")]: "SHORT_BINBYTES",
  [code("d")]: "DICT",
  [code("l")]: "LIST",
  [code("p")]: "PUT",
  [code("g")]: "GET",
  [0x81]: "NEWOBJ",
  [0x82]: "EXT1",
  [0x83]: "EXT2",
  [0x84]: "EXT4",
  [0x8b]: "LONG4",
  [0x8f]: "EMPTY_SET",
  [0x92]: "NEWOBJ_EX",
  [0x96]: "BYTEARRAY8",
  [0x97]: "NEXT_BUFFER",
};

/** A global that REDUCE may call. */
class Callable {
  readonly name: string;
  readonly call: (args: readonly PickleValue[]) => PickleValue;

  constructor(name: string, call: (args: readonly PickleValue[]) => PickleValue) {
    this.name = name;
    this.call = call;
  }
}

/** Whether a value was a tuple in Python. */
export function isTuple(value: PickleValue): value is readonly PickleValue[] {
  return Array.isArray(value) && Object.isFrozen(value);
}

function findGlobal(m: Machine, module: string, name: string): PickleValue {
  const full = `${module}.${name}`;
  const found = m.rules.global(module, name);
  if (found === undefined) throw new Error(`global ${quote(full)} is not allowed`);
  return "call" in found ? new Callable(full, found.call) : found.value;
}

function push(m: Machine, value: PickleValue): void {
  m.stack.push(value);
}

function pop(m: Machine): PickleValue {
  if (m.stack.length <= (m.marks.at(-1) ?? 0)) throw new Error("takes from an empty stack");
  return m.stack.pop();
}

function popToMark(m: Machine): PickleValue[] {
  const mark = m.marks.pop();
  if (mark === undefined) throw new Error("there is no mark");
  return m.stack.splice(mark);
}

/** The value an opcode adds to, left on the stack. */
function top(m: Machine): PickleValue {
  const value = pop(m);
  push(m, value);
  return value;
}

function append(m: Machine, values: readonly PickleValue[]): void {
  const list = top(m);
  if (!Array.isArray(list) || Object.isFrozen(list)) {
    throw new Error("appends to what is not a list");
  }
  for (const value of values) list.push(value);
}

function setItems(m: Machine, flat: readonly PickleValue[]): void {
  const dict = top(m);
  if (!(dict instanceof Map)) throw new Error("sets items of what is not a dict");
  if (flat.length % 2 !== 0) throw new Error("has a key without a value");
  for (let i = 0; i < flat.length; i += 2) dict.set(flat[i], flat[i + 1]);
}

function memoize(m: Machine, index: number): void {
  m.memo.set(index, top(m));
}

function recall(m: Machine, index: number): PickleValue {
  if (!m.memo.has(index)) throw new Error(`memo ${index} was never set`);
  return m.memo.get(index);
}

/** Steps over `count` bytes and returns where they began. */
function skip(m: Machine, count: number): number {
  const start = m.at;
  if (count > m.bytes.length - start) throw new Error("it ends early");
  m.at += count;
  return start;
}

function take(m: Machine, count: number): Uint8Array {
  const start = skip(m, count);
  return m.bytes.subarray(start, start + count);
}

function u8(m: Machine): number {
  return m.view.getUint8(skip(m, 1));
}

function u32(m: Machine): number {
  return m.view.getUint32(skip(m, 4), true);
}

function u64(m: Machine): number {
  return Number(m.view.getBigUint64(skip(m, 8), true));
}

/** Bytes up to a line end, which is stepped over. */
function line(m: Machine): string {
  const end = m.bytes.indexOf(10, m.at);
  if (end < 0) throw new Error("it ends early");
  const found = text(take(m, end - m.at));
  m.at++;
  return found;
}

/** A little-endian two's complement integer that a number holds exactly. */
function long(bytes: Uint8Array): number {
  const value = bytes.reduceRight((sum, byte) => sum * 256n + BigInt(byte), 0n);
  const signed = Number(BigInt.asIntN(8 * bytes.length, value));
  if (!Number.isSafeInteger(signed)) throw new Error("an integer is too large");
  return signed;
}

function text(bytes: Uint8Array): string {
  return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
}

function code(letter: string): number {
  return letter.charCodeAt(0);
}

function opcodeName(opcode: number): string {
  const hex = `0x${opcode.toString(16).padStart(2, "0")}`;
  const name = NAMES[opcode];
  return name === undefined ? hex : `${name} (${hex})`;
}
