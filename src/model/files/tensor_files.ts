import { UsageError } from "../../errors.ts";
import { isObject } from "../../objects.ts";
import { quote } from "./fields.ts";
import { type ByteSource, type Folder, openDiskFile, readJson } from "./folder.ts";
import { HEADER_START, headerSize, parseHeader, type TensorInfo } from "./safetensors.ts";
import { readTorchFile } from "./torch_file.ts";

/** The tensors of a checkpoint and the open files that hold them. */
export interface TensorFiles extends Disposable {
  readonly tensors: ReadonlyMap<string, TensorInfo>;
  /** Problems of the files that do not prevent reading them; absent: none. */
  readonly warnings?: readonly string[];
  /** Reads `into.length` bytes of the tensor from byte `offset` on. */
  read(tensor: TensorInfo, offset: number, into: Uint8Array): void;
}

const SINGLE = "model.safetensors";
const INDEX = "model.safetensors.index.json";
/** Files with all weights, or indexes of their shards. The first of them that exists is used. */
const WEIGHTS = [
  SINGLE,
  INDEX,
  "pytorch_model.bin",
  "pytorch_model.bin.index.json",
  ...["pytorch_model", "model"].flatMap((name) => [`${name}.pt`, `${name}.pth`]),
];
/** Names of files that torch.save wrote. */
const TORCH = /\.(bin|pt|pth)$/;

/**
 * Opens the weights of a folder, safetensors or torch's, in one file or the shards of an index,
 * and reads their headers.
 * @throws UsageError when there are none or one of them is broken.
 */
export function openTensors(folder: Folder): TensorFiles {
  using stack = new DisposableStack();
  const sources = new Map<string, ByteSource>();
  const tensors = new Map<string, TensorInfo>();
  const include = (file: string, source: ByteSource): void => {
    sources.set(file, stack.use(source));
    for (const tensor of readWhole(folder, file, source)) {
      const before = tensors.get(tensor.name);
      if (before !== undefined) {
        throw unreadable(folder, `tensor ${quote(tensor.name)} is in ${before.file} and ${file}`);
      }
      tensors.set(tensor.name, tensor);
    }
  };
  const warnings: string[] = [];
  const file = findWeights(folder);
  if (file.endsWith(".json")) {
    warnings.push(...includeShards(folder, file, { tensors, include }));
  } else include(file, folder.open(file) as ByteSource);
  const read = (tensor: TensorInfo, offset: number, into: Uint8Array): void =>
    readTensor(folder, sources.get(tensor.file), { tensor, offset, into });
  const owned = stack.move();
  return { tensors, warnings, read, [Symbol.dispose]: () => owned.dispose() };
}

/**
 * The first of WEIGHTS that exists, or the index that counts it among its shards: quantizers put the tensors that
 * transformers drops (NextN layers, images) into a second file beside model.safetensors.
 */
function findWeights(folder: Folder): string {
  for (const file of WEIGHTS) {
    using source = folder.open(file);
    if (source === undefined) continue;
    const index = `${file}.index.json`;
    const json = readJson(folder, index);
    const map = isObject(json) ? json["weight_map"] : undefined;
    return isObject(map) && Object.values(map).includes(file) ? index : file;
  }
  const name = quote(folder.name);
  throw new UsageError(
    `Cannot open ${name}: not a checkpoint (no ${SINGLE}, ${INDEX} or pytorch_model.bin)`,
  );
}

/** Opens a single file of tensors that is no checkpoint, such as expected values. @throws UsageError as above. */
export function openTensorFile(path: string): TensorFiles {
  const { folder, file, source } = openDiskFile(path);
  using stack = new DisposableStack();
  stack.use(source);
  const tensors = new Map(readTensors(path, file, source).map((each) => [each.name, each]));
  const owned = stack.move();
  return {
    tensors,
    read: (tensor, offset, into) => readTensor(folder, source, { tensor, offset, into }),
    [Symbol.dispose]: () => owned.dispose(),
  };
}

/** Returns a warning if the index is wrong about a tensor; the content of the shards is used. */
function includeShards(folder: Folder, index: string, { tensors, include }: {
  readonly tensors: ReadonlyMap<string, TensorInfo>;
  readonly include: (file: string, source: ByteSource) => void;
}): string[] {
  const weightMap = readIndex(folder, index);
  for (const file of new Set(weightMap.values())) {
    const source = folder.open(file);
    if (source === undefined) {
      const why = `${index} names ${quote(file)}, and there is no such file`;
      throw unreadable(folder, folder.remedy === undefined ? why : `${why}; ${folder.remedy}`);
    }
    include(file, source);
  }
  const [wrong, ...others] = [...weightMap].filter(([name, file]) =>
    tensors.get(name)?.file !== file
  );
  if (wrong === undefined) return [];
  const [name, file] = wrong;
  const where = tensors.get(name)?.file ?? "none of the shards";
  const more = others.length === 0 ? "" : `; it is wrong about ${others.length} more`;
  const says = `${index} puts tensor ${quote(name)} in ${quote(file)}, but it is in ${where}`;
  return [`${folder.name}: ${says}${more}`];
}

/** Tensor name -> shard file. */
function readIndex(folder: Folder, index: string): ReadonlyMap<string, string> {
  const json = readJson(folder, index);
  const weightMap = isObject(json) ? json["weight_map"] : undefined;
  if (!isObject(weightMap)) throw unreadable(folder, `${index} has no weight_map`);
  const files = new Map<string, string>();
  for (const [name, file] of Object.entries(weightMap)) {
    if (typeof file !== "string" || !staysInside(file)) {
      const why = `${index} puts tensor ${quote(name)} in ${quote(file)}`;
      throw unreadable(folder, `${why}, expected a file of the folder`);
    }
    files.set(name, file);
  }
  return files;
}

/** Whether a name is that of a file within the folder; with control characters it could not be printed. */
function staysInside(file: string): boolean {
  const parts = file.split("/");
  return !/[\\:\p{Cc}]/u.test(file) && parts.every((part) => !["", ".", ".."].includes(part));
}

/** Like `readTensors`, but the error for a truncated file says how to restore it. */
function readWhole(folder: Folder, file: string, source: ByteSource): TensorInfo[] {
  try {
    return readTensors(`${folder.name}/${file}`, file, source);
  } catch (error) {
    if (!(error instanceof UsageError) || !/truncated/.test(error.message)) throw error;
    throw new UsageError(`${error.message}; ${folder.remedy ?? "it is not whole"}`, {
      cause: error,
    });
  }
}

/** The tensors of one file of either format, by its name. */
function readTensors(path: string, file: string, source: ByteSource): TensorInfo[] {
  if (TORCH.test(file)) return readTorchFile(source, { path, file });
  return readHeader(path, file, source);
}

function readHeader(path: string, file: string, source: ByteSource): TensorInfo[] {
  const where = { path, file, size: source.size };
  const first = new Uint8Array(HEADER_START);
  const size = headerSize(first.subarray(0, source.read(0, first)), where);
  const header = new Uint8Array(size);
  if (source.read(HEADER_START, header) !== size) {
    throw new UsageError(`Cannot read ${quote(path)}: truncated: the header ends early`);
  }
  return parseHeader(header, where);
}

function readTensor(
  folder: Folder,
  source: ByteSource | undefined,
  part: { tensor: TensorInfo; offset: number; into: Uint8Array },
): void {
  const { tensor, offset, into } = part;
  if (source === undefined || offset < 0 || offset + into.length > tensor.size) {
    const asked = `${into.length} bytes at ${offset} of ${tensor.name} (${tensor.size} bytes)`;
    throw new RangeError(`Cannot read ${asked}: out of range`);
  }
  if (source.read(tensor.begin + offset, into) !== into.length) {
    const path = `${folder.name}/${tensor.file}`;
    const why = `tensor ${quote(tensor.name)} ends early; the file changed while it was read`;
    throw new UsageError(`Cannot read ${quote(path)}: ${why}`);
  }
}

function unreadable(folder: Folder, why: string): UsageError {
  return new UsageError(`Cannot open ${quote(folder.name)}: ${why}`);
}
