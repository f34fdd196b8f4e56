/** Presents a quantized checkpoint as one in which each matrix is a single tensor named `weight`. */
import { GROUP, type Prequantized } from "../../../gpu/matrix.ts";
import type { Checkpoint } from "../../files/checkpoint_type.ts";
import type { TensorInfo } from "../../files/safetensors.ts";
import { quote } from "../../files/fields.ts";
import { blocksFormat, blocksView } from "./blocks.ts";
import { badTensor, readBytes, readWords } from "./groups.ts";
import { openModule, type QuantizedModule, type ReadRows, rowWords } from "./modules.ts";
import { configFields, readScheme, type Scheme, type StoredLayout } from "./scheme.ts";

/** Suffix of the tensor that has the numbers, by layout. */
const VALUES: Readonly<Record<StoredLayout, string>> = {
  gptq: "qweight",
  awq: "qweight",
  packed: "weight_packed",
  integers: "weight",
  fp8: "weight",
};

const STORED: Readonly<Record<StoredLayout, string>> = {
  gptq: "I32",
  awq: "I32",
  packed: "I32",
  integers: "I8",
  fp8: "F8_E4M3",
};

const DTYPE = {
  u4: "GROUPED_U4",
  i8: "GROUPED_I8",
  f8: "GROUPED_F8",
  mxfp4: "GROUPED_MXFP4",
  nvfp4: "GROUPED_NVFP4",
} as const;

/** Tensors of a quantized module, and scales of activations, which are not used as activations stay float32. */
const PARTS =
  /\.(qweight|qzeros|scales|g_idx|weight_(packed|scale|scale_inv|shape|zero_point|g_idx)|(input|output|[qkv])_(scale|zero_point)|weight_scale_2|activation_scale)$/;

/** How many matrices a view keeps in memory: the two of a pair are read in turns. */
const KEPT = 2;

/**
 * The checkpoint, or a view of it where config.json says that it is quantized: each module's
 * tensors are one of the dtype GROUPED_*, read row by row.
 *
 * @throws UsageError when its method is not supported or its tensors do not fit together.
 */
export function quantizedView(checkpoint: Checkpoint): Checkpoint {
  const config = configFields(checkpoint.name, checkpoint.json("config.json"));
  const blocks = blocksFormat(config);
  if (blocks !== undefined) return blocksView(checkpoint, blocks);
  const scheme = readScheme(config);
  if (scheme === undefined) return checkpoint;
  const modules = findModules(checkpoint, scheme);
  const plain = [...checkpoint.tensors].filter(([name]) => !modules.has(name) && !PARTS.test(name));
  const views = [...modules].map(([name, module]) =>
    [name, viewOf(name, module, scheme.method)] as const
  );
  const opened = new Map<string, ReadRows>();
  const open = (name: string, module: QuantizedModule): ReadRows => {
    const found = opened.get(name) ?? openModule(checkpoint, module, scheme);
    opened.delete(name);
    for (const old of [...opened.keys()].slice(0, Math.max(0, opened.size - KEPT + 1))) {
      opened.delete(old);
    }
    opened.set(name, found);
    return found;
  };
  return {
    ...checkpoint,
    tensors: new Map([...plain, ...views]),
    read(tensor, offset, into) {
      const module = modules.get(tensor.name);
      if (module === undefined) return checkpoint.read(tensor, offset, into);
      const rowBytes = 4 * rowWords(module).all;
      const words = new Uint32Array(into.length / 4);
      open(tensor.name, module)((tensor.begin + offset) / rowBytes, words);
      into.set(new Uint8Array(words.buffer));
    },
    [Symbol.dispose]: () => checkpoint[Symbol.dispose](),
  };
}

function viewOf(name: string, module: QuantizedModule, method: string): TensorInfo {
  const { rows, cols, format, values: { file } } = module;
  const size = 4 * rows * rowWords(module).all;
  const dtype = DTYPE[format];
  return { name, dtype, dtypeName: method, shape: [rows, cols], file, begin: 0, size };
}

/** Modules by the name their `weight` would have. */
function findModules(from: Checkpoint, scheme: Scheme): Map<string, QuantizedModule> {
  const suffix = `.${VALUES[scheme.layout]}`;
  const found = new Map<string, QuantizedModule>();
  for (const tensor of from.tensors.values()) {
    if (!tensor.name.endsWith(suffix) || tensor.dtypeName !== STORED[scheme.layout]) continue;
    const prefix = tensor.name.slice(0, -suffix.length);
    if (scheme.kept.includes(prefix)) {
      throw badTensor(from, tensor, `is quantized, but config.json says that it is not`);
    }
    found.set(`${prefix}.weight`, moduleOf(from, tensor, prefix, scheme));
  }
  return found;
}

function moduleOf(
  from: Checkpoint,
  values: TensorInfo,
  prefix: string,
  scheme: Scheme,
): QuantizedModule {
  const part = (...names: string[]): TensorInfo | undefined =>
    names.flatMap((name) => from.tensors.get(`${prefix}.${name}`) ?? [])[0];
  const scales = part("scales", "weight_scale", "weight_scale_inv");
  if (scales === undefined) throw badTensor(from, values, "has no scales");
  const zeros = part("qzeros", "weight_zero_point");
  const transposed = scheme.layout === "gptq" || scheme.layout === "awq";
  if (transposed && zeros === undefined) throw badTensor(from, values, "has no qzeros");
  const order = part("g_idx", "weight_g_idx");
  if (order && !transposed) throw badTensor(from, order, "is not supported (actorder)");
  const { rows, cols } = sizeOf(from, values, scheme);
  checkPackedShape(from, part("weight_shape"), [rows, cols]);
  const format = formatOf(scheme);
  if (zeros && format !== "u4") throw badTensor(from, zeros, "is not supported with 8 bits");
  return { format, rows, cols, values, order, scales, zeros };
}

function formatOf({ layout, bits }: Scheme): Prequantized {
  if (bits === 4) return "u4";
  return layout === "fp8" ? "f8" : "i8";
}

/** @throws UsageError where groups do not fill the rows. */
function sizeOf(from: Checkpoint, values: TensorInfo, { layout, bits }: Scheme) {
  const [a = 0, b = 0] = values.shape;
  const [rows, cols] = ({
    gptq: [b, 8 * a],
    awq: [8 * b, a],
    packed: [a, 32 / bits * b],
    integers: [a, b],
    fp8: [a, b],
  } as const)[layout];
  if (values.shape.length !== 2 || cols % GROUP !== 0) {
    const shape = quote(values.shape);
    throw badTensor(from, values, `has shape ${shape}, expected rows of a multiple of ${GROUP}`);
  }
  return { rows, cols };
}

/** compressed-tensors says the shape before packing. */
function checkPackedShape(
  from: Checkpoint,
  tensor: TensorInfo | undefined,
  shape: readonly [rows: number, cols: number],
): void {
  if (tensor === undefined) return;
  const said = tensor.dtype === "I64"
    ? Array.from(new BigInt64Array(readBytes(from, tensor).buffer), Number)
    : [...readWords(from, tensor)];
  if (said.length === 2 && said.every((size, i) => size === shape[i])) return;
  throw badTensor(from, tensor, `says ${quote(said)}, the weights are ${quote(shape)}`);
}
