import { Buffer } from "node:buffer";

/** Calls of functions between two checks: mostly well below a millisecond, 0.25 s where long lists are searched. */
const CALLS = 1 << 10;

/** Ids of sections. */
const IMPORTS = 2;
const GLOBALS = 6;
const CODE = 10;

/** A variable of the type i32 with the initial value 0. */
const COUNTER = Uint8Array.of(0x7f, 0x01, 0x41, 0x00, 0x0b);

/** Reads a module's bytes from a position on. */
interface Reader {
  readonly bytes: Uint8Array;
  at: number;
}

/**
 * A WebAssembly module with a check at the beginning of its functions: once in `CALLS` calls of any of them, an
 * imported function is called, which may throw. Nothing else ends what runs in a module: a worker that is terminated
 * goes on until it returns to JavaScript. The format: https://webassembly.github.io/spec/core/binary/modules.html.
 *
 * @param check name of the imported function, of the type () -> f64.
 * @throws Error for a module without that import, or that imports globals or tables.
 */
export function interruptible(module: Uint8Array, check: string): Uint8Array<ArrayBuffer> {
  const reader = { bytes: module, at: 8 };
  const parts: Uint8Array[] = [module.subarray(0, 8)];
  let imported = -1;
  let counter = 0;
  while (reader.at < module.length) {
    const from = reader.at;
    const id = module[reader.at++];
    const length = readNumber(reader);
    const end = reader.at + length;
    const count = readNumber(reader);
    if (id === IMPORTS) imported = importedNames(reader, count).indexOf(check);
    if (id === GLOBALS) {
      counter = count;
      parts.push(...section(id, count + 1, [module.subarray(reader.at, end), COUNTER]));
    } else if (id === CODE) {
      if (imported < 0) throw new Error(`the module does not import the function "${check}"`);
      const checking = checkCode(imported, counter);
      parts.push(...section(
        id,
        count,
        Array.from({ length: count }, () => functionWith(checking, reader)).flat(),
      ));
    } else parts.push(module.subarray(from, end));
    reader.at = end;
  }
  return Buffer.concat(parts);
}

/** Names of the imported functions, which have the first indices of functions. */
function importedNames(reader: Reader, count: number): string[] {
  return Array.from({ length: count }, () => {
    readName(reader);
    const name = readName(reader);
    if (reader.bytes[reader.at++] !== 0) throw new Error(`the import "${name}" is no function`);
    readNumber(reader);
    return name;
  });
}

/** `if (counter === 0) { check(); counter = CALLS; } counter += -1;` */
function checkCode(check: number, counter: number): Uint8Array {
  const [get, set] = [[0x23, ...unsigned(counter)], [0x24, ...unsigned(counter)]];
  // The highest bit of the last byte of CALLS is 0, so that unsigned and signed numbers are written alike.
  const calls = [0x10, ...unsigned(check), 0x1a, 0x41, ...unsigned(CALLS), ...set];
  return Uint8Array.of(...get, 0x45, 0x04, 0x40, ...calls, 0x0b, ...get, 0x41, 0x7f, 0x6a, ...set);
}

/** The next function's code, with more code behind the declarations of its variables. */
function functionWith(code: Uint8Array, reader: Reader): Uint8Array[] {
  const length = readNumber(reader);
  const from = reader.at;
  for (let groups = readNumber(reader); groups > 0; groups--) {
    readNumber(reader);
    reader.at++;
  }
  const variables = reader.bytes.subarray(from, reader.at);
  const body = reader.bytes.subarray(reader.at, from + length);
  reader.at = from + length;
  return [Uint8Array.from(unsigned(length + code.length)), variables, code, body];
}

function section(id: number, count: number, items: readonly Uint8Array[]): Uint8Array[] {
  const counted = unsigned(count);
  const length = items.reduce((sum, item) => sum + item.length, counted.length);
  return [Uint8Array.from([id, ...unsigned(length), ...counted]), ...items];
}

function readName(reader: Reader): string {
  const length = readNumber(reader);
  const bytes = reader.bytes.subarray(reader.at, reader.at += length);
  return new TextDecoder().decode(bytes);
}

/** Reads an unsigned number, LEB128. */
function readNumber(reader: Reader): number {
  for (let [value, shift] = [0, 0];; shift += 7) {
    const byte = reader.bytes[reader.at++] as number;
    value |= (byte & 127) << shift;
    if (byte < 128) return value >>> 0;
  }
}

/** A number as unsigned LEB128. */
function unsigned(value: number): number[] {
  return value < 128 ? [value] : [value & 127 | 128, ...unsigned(value >>> 7)];
}
