/**
 * Tensors of a file that torch.save wrote (pytorch_model.bin, .pt, .pth): views of the storages of
 * its archive, by the names of the pickled state dict. The pickle is not run (see pickle.ts); what
 * is neither a tensor nor plain data is refused by name.
 * Source: https://github.com/pytorch/pytorch/blob/main/torch/_utils.py
 */
import { reason, UsageError } from "../../errors.ts";
import { quote } from "./fields.ts";
import type { ByteSource } from "./folder.ts";
import {
  isTuple,
  type PickleGlobal,
  type PickleRules,
  type PickleValue,
  unpickle,
} from "./pickle.ts";
import { DTYPE_BYTES, namedDType, type TensorInfo } from "./safetensors.ts";
import { openTorchArchive, type TorchArchive } from "./torch_archive.ts";

/** safetensors' name for the elements of a storage class of torch. */
const STORAGES: Readonly<Record<string, string>> = {
  FloatStorage: "F32",
  HalfStorage: "F16",
  BFloat16Storage: "BF16",
  DoubleStorage: "F64",
  LongStorage: "I64",
  IntStorage: "I32",
  ShortStorage: "I16",
  CharStorage: "I8",
  ByteStorage: "U8",
  BoolStorage: "BOOL",
  ComplexFloatStorage: "C64",
  UntypedStorage: "U8",
};

/** safetensors' name for a torch.dtype, for tensors whose elements have no storage class. */
const DTYPE_NAMES: Readonly<Record<string, string>> = {
  float32: "F32",
  float16: "F16",
  bfloat16: "BF16",
  float64: "F64",
  int64: "I64",
  int32: "I32",
  int16: "I16",
  int8: "I8",
  uint8: "U8",
  uint16: "U16",
  uint32: "U32",
  uint64: "U64",
  bool: "BOOL",
  float8_e4m3fn: "F8_E4M3",
  float8_e5m2: "F8_E5M2",
};

/** NumPy's limit; tensors of models have up to 4. */
const MAX_DIMENSIONS = 64;

/** A file of a checkpoint, as for safetensors. */
export interface TorchFile {
  /** For messages: folder and file. */
  readonly path: string;
  /** File within the checkpoint folder. */
  readonly file: string;
}

/**
 * The tensors of the file. Reads the zip's directory, the pickle and 30 bytes a storage.
 * @throws UsageError naming the file and what is wrong with it.
 */
export function readTorchFile(source: ByteSource, { path, file }: TorchFile): TensorInfo[] {
  try {
    const archive = openTorchArchive(source);
    const found = unpickle(archive.pickle, torchRules(archive));
    return [...namedTensors(found)].map(([name, tensor]) => tensorInfo(name, tensor, file));
  } catch (cause) {
    if (cause instanceof UsageError) throw cause;
    throw new UsageError(`Cannot read ${quote(path)}: ${reason(cause)}`, { cause });
  }
}

/**
 * Token ids that torch.save wrote: a list of integers, or a tensor of them with one dimension.
 * @throws UsageError naming the file and what is wrong with it.
 */
export function readTorchIds(source: ByteSource, path: string): Iterable<number> {
  try {
    const archive = openTorchArchive(source);
    const found = unpickle(archive.pickle, torchRules(archive));
    if (Array.isArray(found)) {
      if (found.every((id) => typeof id === "number")) return found;
      throw new Error("it holds a list of something else than integers");
    }
    const whole = found instanceof Tensor && found.fault === undefined && found.shape.length === 1;
    if (!whole || !["I64", "I32"].includes(found.dtype)) {
      throw new Error("it holds no list of integers and no tensor of them with one dimension");
    }
    const bytes = new Uint8Array(found.size);
    source.read(found.begin, bytes);
    return found.dtype === "I32"
      ? new Int32Array(bytes.buffer)
      : Array.from(new BigInt64Array(bytes.buffer), Number);
  } catch (cause) {
    if (cause instanceof UsageError) throw cause;
    throw new UsageError(`Cannot read ${quote(path)}: ${reason(cause)}`, { cause });
  }
}

/** A run of elements in the file. */
class Storage {
  readonly dtype: string;
  readonly begin: number;
  /** Bytes. */
  readonly size: number;

  constructor(dtype: string, { begin, size }: { begin: number; size: number }) {
    this.dtype = dtype;
    this.begin = begin;
    this.size = size;
  }
}

/** A view of a storage whose elements are stored row after row. */
class Tensor {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly begin: number;
  readonly size: number;
  /** Why it cannot be read, reported with its name once that is known. */
  readonly fault: string | undefined;

  constructor(storage: Storage, view: View, dtype: string) {
    const bytes = DTYPE_BYTES[dtype] ?? 0;
    const count = view.shape.reduce((product, n) => product * n, 1);
    this.dtype = dtype;
    this.shape = view.shape;
    this.begin = storage.begin + view.offset * bytes;
    this.size = count * bytes;
    const end = view.offset * bytes + this.size;
    if (!Number.isSafeInteger(end) || end > storage.size) {
      this.fault = `takes ${end} bytes of a storage of ${storage.size}`;
    } else if (count > 1 && !isRowMajor(view)) {
      this.fault = `has shape ${quote(view.shape)} and strides ${quote(view.strides)}, ` +
        "expected rows one after the other (.contiguous() in torch)";
    }
  }
}

interface View {
  /** First element. */
  readonly offset: number;
  readonly shape: readonly number[];
  /** Elements from one index to the next, of each dimension. */
  readonly strides: readonly number[];
}

function isRowMajor({ shape, strides }: View): boolean {
  let step = 1;
  for (let i = shape.length - 1; i >= 0; i--) {
    const size = shape[i] ?? 0;
    if (size !== 1 && strides[i] !== step) return false;
    step *= size;
  }
  return true;
}

/** The globals that a state dict may name, and the lookup of storages by their persistent ids. */
function torchRules({ storage }: TorchArchive): PickleRules {
  const globals = new Map<string, PickleGlobal>([
    ["collections.OrderedDict", { call: orderedDict }],
    ["torch.Size", { call: ([sizes = Object.freeze([])]) => sizes }],
    ["torch._utils._rebuild_tensor_v2", { call: (args) => rebuildTensor(args) }],
    ["torch._utils._rebuild_tensor_v3", { call: (args) => rebuildTensor(args, args[6]) }],
    ["torch._utils._rebuild_parameter", { call: ([data]) => data }],
    ...Object.entries(STORAGES).flatMap(([name, dtype]) => {
      const value = new ElementType(dtype);
      return ["torch", "torch.storage"].map((module) => [`${module}.${name}`, { value }] as const);
    }),
    ...Object.entries(DTYPE_NAMES).map(([name, dtype]) =>
      [`torch.${name}`, { value: new ElementType(dtype) }] as const
    ),
  ]);
  const storages = new Map<string, ReturnType<typeof storage>>();
  return {
    global: (module, name) => globals.get(`${module}.${name}`),
    // ("storage", class, key, device, elements)
    persistent(id) {
      const [kind, type, key] = isTuple(id) ? id : [];
      if (kind !== "storage" || !(type instanceof ElementType) || typeof key !== "string") {
        throw new Error("a persistent id is not that of a storage");
      }
      return new Storage(type.dtype, storages.getOrInsertComputed(key, storage));
    },
  };
}

/** A storage class or a torch.dtype. */
class ElementType {
  /** safetensors' name. */
  readonly dtype: string;

  constructor(dtype: string) {
    this.dtype = dtype;
  }
}

function orderedDict([items]: readonly PickleValue[]): Map<PickleValue, PickleValue> {
  if (items === undefined) return new Map();
  throw new Error("collections.OrderedDict is called with items, expected none");
}

/** (storage, offset, shape, strides, requires_grad, hooks, ...) */
function rebuildTensor(args: readonly PickleValue[], type?: PickleValue): Tensor {
  const [storage, offset, shape, strides] = args;
  const isView = storage instanceof Storage && isCount(offset) && isCounts(shape) &&
    isCounts(strides) && shape.length === strides.length;
  if (!isView) throw new Error("a tensor is described by something else than numbers");
  const dtype = type instanceof ElementType ? type.dtype : storage.dtype;
  return new Tensor(storage, { offset, shape, strides }, dtype);
}

function isCount(value: PickleValue): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

/** Sizes or strides. A pickle may name one tuple for every tensor, so what is walked here is bounded. */
function isCounts(value: PickleValue): value is readonly number[] {
  return isTuple(value) && value.length <= MAX_DIMENSIONS && value.every(isCount);
}

/** The tensors of a state dict, or of `state_dict` in it. */
function namedTensors(value: PickleValue): Map<string, Tensor> {
  const dict = value instanceof Map ? value.get("state_dict") ?? value : value;
  if (!(dict instanceof Map)) throw new Error("it holds no dict of tensors");
  const tensors = new Map<string, Tensor>();
  for (const [name, tensor] of dict) {
    if (!(tensor instanceof Tensor)) continue; // a number or a text among the tensors
    if (typeof name !== "string") throw new Error("a tensor's name is not a text");
    if (tensor.fault !== undefined) throw new Error(`tensor ${quote(name)} ${tensor.fault}`);
    tensors.set(name, tensor);
  }
  if (tensors.size === 0) throw new Error("it holds no dict of tensors");
  return tensors;
}

function tensorInfo(name: string, { dtype, shape, begin, size }: Tensor, file: string): TensorInfo {
  return { name, ...namedDType(dtype), shape, file, begin, size };
}
