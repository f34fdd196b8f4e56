/** Writes what torch.save writes, for tests: a pickle of protocol 2 and a zip of stored entries. */

/** A tensor to be written; its storage holds `elements` from `key`'s bytes. */
export interface TorchTensor {
  /** Storage class of torch: `FloatStorage`. */
  readonly storage: string;
  readonly key: string;
  readonly elements: number;
  readonly offset?: number;
  readonly shape: readonly number[];
  readonly strides?: readonly number[];
}

const encoder = new TextEncoder();

/** Bytes of pickles, an opcode or a few at a time. */
export const op = {
  proto: [0x80, 2],
  mark: [0x28],
  stop: [0x2e],
  none: [0x4e],
  false: [0x89],
  emptyDict: [0x7d],
  emptyTuple: [0x29],
  emptyList: [0x5d],
  tuple: [0x74],
  setItems: [0x75],
  append: [0x61],
  reduce: [0x52],
  build: [0x62],
  persistent: [0x51],
  global: (module: string, name: string): number[] => [
    0x63,
    ...encoder.encode(`${module}\n${name}\n`),
  ],
  text: (text: string): number[] => {
    const bytes = encoder.encode(text);
    return [0x58, ...u32(bytes.length), ...bytes];
  },
  int: (n: number): number[] => {
    if (n >= 0 && n < 256) return [0x4b, n];
    if (n >= -(2 ** 31) && n < 2 ** 31) return [0x4a, ...u32(n)];
    const bytes = new Uint8Array(8);
    new DataView(bytes.buffer).setBigInt64(0, BigInt(n), true);
    return [0x8a, 8, ...bytes];
  },
  put: (index: number): number[] => [0x71, index],
  get: (index: number): number[] => [0x68, index],
} as const;

export function tensorOps(tensor: TorchTensor): number[] {
  const { storage, key, elements, offset = 0, shape, strides = rowMajor(shape) } = tensor;
  const tuple = (
    numbers: readonly number[],
  ) => [...op.mark, ...numbers.flatMap(op.int), ...op.tuple];
  return [
    ...op.global("torch._utils", "_rebuild_tensor_v2"),
    ...op.mark,
    ...op.mark,
    ...op.text("storage"),
    ...op.global("torch", storage),
    ...op.text(key),
    ...op.text("cpu"),
    ...op.int(elements),
    ...op.tuple,
    ...op.persistent,
    ...op.int(offset),
    ...tuple(shape),
    ...tuple(strides),
    ...op.false,
    ...op.global("collections", "OrderedDict"),
    ...op.emptyTuple,
    ...op.reduce,
    ...op.tuple,
    ...op.reduce,
  ];
}

export function rowMajor(shape: readonly number[]): number[] {
  return shape.map((_, i) => shape.slice(i + 1).reduce((product, n) => product * n, 1));
}

/** data.pkl of a state dict. */
export function statePickle(tensors: Readonly<Record<string, TorchTensor>>): Uint8Array {
  return Uint8Array.from([
    ...op.proto,
    ...op.emptyDict,
    ...op.mark,
    ...Object.entries(tensors).flatMap((
      [name, tensor],
    ) => [...op.text(name), ...tensorOps(tensor)]),
    ...op.setItems,
    ...op.stop,
  ]);
}

/** A zip entry as it is to be written. */
export interface Entry {
  readonly bytes: Uint8Array;
  readonly method?: number;
  /** What the directory says instead of the truth. */
  readonly claim?: { readonly size?: number; readonly headerAt?: number };
}

const ALIGNMENT = 64;

/** A zip of stored entries, each 64-byte aligned; `zip64` says all numbers in the wide fields. */
export function zip(
  entries: Readonly<Record<string, Entry>>,
  { zip64 = false }: { readonly zip64?: boolean } = {},
): Uint8Array<ArrayBuffer> {
  const out: number[] = [];
  const directory: number[] = [];
  for (const [name, { bytes, method = 0, claim = {} }] of Object.entries(entries)) {
    const label = encoder.encode(name);
    const headerAt = claim.headerAt ?? out.length;
    const size = claim.size ?? bytes.length;
    const pad = (ALIGNMENT - (out.length + 30 + label.length + 4) % ALIGNMENT) % ALIGNMENT;
    const head = [...u16(0), ...u16(0), ...u16(method), ...u32(0), ...u32(0)];
    const extra = [...u16(0x4246), ...u16(pad), ...new Array(pad).fill(0x5a)];
    const sizes = [...u32(size), ...u32(size), ...u16(label.length)];
    out.push(...u32(0x04034b50), ...head, ...sizes, ...u16(extra.length), ...label, ...extra);
    for (const byte of bytes) out.push(byte);
    const wide = zip64 ? [...u16(1), ...u16(24), ...u64(size), ...u64(size), ...u64(headerAt)] : [];
    const narrow = (n: number) => zip64 ? u32(0xffffffff) : u32(n);
    directory.push(...u32(0x02014b50), ...u16(0), ...head, ...narrow(size), ...narrow(size));
    directory.push(...u16(label.length), ...u16(wide.length), ...u16(0), ...u16(0), ...u16(0));
    directory.push(...u32(0), ...narrow(headerAt), ...label, ...wide);
  }
  return Uint8Array.from([...out, ...directory, ...zipEnd(entries, out.length, directory, zip64)]);
}

function zipEnd(entries: object, at: number, directory: readonly number[], zip64: boolean) {
  const count = Object.keys(entries).length;
  const size = directory.length;
  const end64 = [
    ...u32(0x06064b50),
    ...u64(44),
    ...u16(45),
    ...u16(45),
    ...u32(0),
    ...u32(0),
    ...u64(count),
    ...u64(count),
    ...u64(size),
    ...u64(at),
  ];
  const locator = [...u32(0x07064b50), ...u32(0), ...u64(at + size), ...u32(1)];
  const [few, small, low] = zip64 ? [0xffff, 0xffffffff, 0xffffffff] : [count, size, at];
  const end = [...u32(0x06054b50), ...u32(0), ...u16(few), ...u16(few), ...u32(small), ...u32(low)];
  return [...zip64 ? [...end64, ...locator] : [], ...end, ...u16(0)];
}

/** A file of torch.save: tensors and the bytes of their storages. */
export function torchFile(
  tensors: Readonly<Record<string, TorchTensor>>,
  storages: Readonly<Record<string, Uint8Array>>,
  { prefix = "archive/", ...options }: { prefix?: string; zip64?: boolean } = {},
): Uint8Array<ArrayBuffer> {
  const data = Object.entries(storages).map(([key, bytes]) => [`${prefix}data/${key}`, { bytes }]);
  return zip({
    [`${prefix}data.pkl`]: { bytes: statePickle(tensors) },
    [`${prefix}byteorder`]: { bytes: encoder.encode("little") },
    ...Object.fromEntries(data),
    [`${prefix}version`]: { bytes: encoder.encode("3\n") },
  }, options);
}

function u16(n: number): number[] {
  return [n & 255, n >> 8 & 255];
}

function u32(n: number): number[] {
  return [...u16(n & 0xffff), ...u16(n >>> 16)];
}

function u64(n: number): number[] {
  return [...u32(n >>> 0), ...u32(Math.floor(n / 2 ** 32))];
}
