/** Presents a quantized checkpoint as one in which each matrix is a single tensor named `weight`. */
import { GROUP, type Prequantized } from "../../../gpu/weight_format.ts";
import type { Checkpoint } from "../../files/checkpoint_type.ts";
import type { TensorInfo } from "../../files/safetensors.ts";
import { fieldsOf, quote } from "../../files/fields.ts";
import { blocksFormat, blocksView } from "./blocks.ts";
import { ACTIVATIONS, badTensor, readBytes, readWords, withoutGroups } from "./groups.ts";
import {
  blocks,
  checkShape,
  openModule,
  type QuantizedModule,
  type ReadRows,
  rowWords,
} from "./modules.ts";
import {
  FP8_OF_TENSORS,
  quantizationOf,
  readScheme,
  type Scheme,
  type StoredLayout,
} from "./scheme.ts";

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

/** Tensors of a quantized module. */
const PARTS =
  /\.(qweight|qzeros|scales|g_idx|weight_(packed|scale|scale_inv|shape|zero_point|g_idx)|weight_scale_2|experts\.(gate_up|down)_proj_scale_inv)$/;

/** Names of tensors of all experts. */
const STACK = /\.experts\.(gate_up_proj|down_proj)$/;

/** How many matrices a view keeps in memory: the two of a pair are read in turns. */
const KEPT = 2;

/**
 * The checkpoint, or a view of it where config.json says that it is quantized: each module's
 * tensors are one of the dtype GROUPED_*, read row by row.
 *
 * @throws UsageError when its method is not supported or its tensors do not fit together.
 */
export function quantizedView(checkpoint: Checkpoint): Checkpoint {
  const config = fieldsOf(checkpoint.name, "config.json", checkpoint.json("config.json"));
  const own = blocksFormat(config);
  if (own !== undefined) return blocksView(checkpoint, own);
  const scheme = readScheme(config) ?? schemeOfTensors(checkpoint);
  if (scheme === undefined && quantizationOf(config) === undefined) return checkpoint;
  const weights = [...checkpoint.tensors].filter(([name]) => !ACTIVATIONS.test(name));
  if (scheme === undefined) return withTensors(checkpoint, weights);
  const { modules, unusable } = findModules(checkpoint, scheme);
  const plain = weights.filter(([name]) => !modules.has(name) && !PARTS.test(name));
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
    tensors: new Map([...plain, ...unusable, ...views]),
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

/** ModelOpt's early exports, and modules beside those in NVFP4 or MXFP4, which config.json may not mention. */
function schemeOfTensors({ tensors }: Checkpoint): Scheme | undefined {
  const isFp8 = ({ name, dtypeName }: TensorInfo) =>
    dtypeName === STORED.fp8 && name.endsWith(".weight") && tensors.has(`${name}_scale`);
  return tensors.values().some(isFp8) ? FP8_OF_TENSORS : undefined;
}

function withTensors(
  checkpoint: Checkpoint,
  tensors: Iterable<readonly [string, TensorInfo]>,
): Checkpoint {
  return {
    ...checkpoint,
    tensors: new Map(tensors),
    [Symbol.dispose]: () => checkpoint[Symbol.dispose](),
  };
}

function viewOf(name: string, module: QuantizedModule, method: string): TensorInfo {
  const { rows, cols, format, values: { file } } = module;
  const size = 4 * rows * rowWords(module).all;
  const dtype = DTYPE[format];
  return { name, dtype, dtypeName: method, shape: [rows, cols], file, begin: 0, size };
}

/**
 * Modules by the name their `weight` would have. Those whose rows are not whole groups have tensors that no model
 * accepts: towers for images, which are not read, have such widths.
 */
function findModules(from: Checkpoint, scheme: Scheme): {
  readonly modules: ReadonlyMap<string, QuantizedModule>;
  readonly unusable: ReadonlyMap<string, TensorInfo>;
} {
  const suffix = `.${VALUES[scheme.layout]}`;
  const modules = new Map<string, QuantizedModule>();
  const unusable = new Map<string, TensorInfo>();
  for (const tensor of from.tensors.values()) {
    const stack = scheme.layout === "fp8" ? stackOf(from, tensor, scheme) : undefined;
    if (stack) modules.set(tensor.name, stack);
    if (!tensor.name.endsWith(suffix) || tensor.dtypeName !== STORED[scheme.layout]) continue;
    const prefix = tensor.name.slice(0, -suffix.length);
    if (scheme.kept.includes(prefix)) {
      throw badTensor(from, tensor, `is quantized, but config.json says that it is not`);
    }
    const name = `${prefix}.weight`;
    const size = sizeOf(tensor, scheme);
    if (tensor.shape.length !== 2 || size.cols % GROUP !== 0) {
      unusable.set(name, withoutGroups(tensor, { name, method: scheme.method, ...size }));
    } else modules.set(name, moduleOf(from, tensor, prefix, { ...scheme, ...size }));
  }
  return { modules, unusable };
}

/** FP8 of all experts in one tensor, [experts, out, in] with scales [experts, blocks, blocks]: Mistral Small 4. */
function stackOf(
  from: Checkpoint,
  values: TensorInfo,
  { block }: Scheme,
): QuantizedModule | undefined {
  const scales = from.tensors.get(`${values.name}_scale_inv`);
  const [experts = 0, out = 0, cols = 0] = values.shape;
  if (!STACK.test(values.name) || values.dtypeName !== STORED.fp8) return undefined;
  if (values.shape.length !== 3 || scales === undefined) return undefined;
  // Without blocks in config.json, or with one scale an expert, the scales divide it, as in transformers: gate_up_proj
  // may have one for gate and one for up.
  const [, high = 1, wide = 1] = scales.shape;
  const found = block !== undefined && high * wide > 1
    ? block
    : { rows: out / high, cols: wide === 1 ? Infinity : cols / wide };
  const whole = Number.isInteger(found.rows) && out % found.rows === 0 && cols % GROUP === 0 &&
    (found.cols === Infinity || found.cols % GROUP === 0);
  if (!whole) {
    const why = `has shape ${quote(values.shape)}, which its scales ${
      quote(scales.shape)
    } do not divide`;
    throw badTensor(from, values, why);
  }
  const rows = experts * out;
  const none = { order: undefined, zeros: undefined };
  return { format: "f8", rows, cols, values, scales, block: found, ...none };
}

function moduleOf(
  from: Checkpoint,
  values: TensorInfo,
  prefix: string,
  scheme: Scheme & Pick<QuantizedModule, "rows" | "cols">,
): QuantizedModule {
  const part = (...names: string[]): TensorInfo | undefined =>
    names.flatMap((name) => from.tensors.get(`${prefix}.${name}`) ?? [])[0];
  const scales = part("scales", "weight_scale", "weight_scale_inv");
  if (scales === undefined) throw badTensor(from, values, "has no scales");
  const stored = part("qzeros", "weight_zero_point");
  const transposed = scheme.layout === "gptq" || scheme.layout === "awq";
  if (transposed && stored === undefined) throw badTensor(from, values, "has no qzeros");
  const order = part("g_idx", "weight_g_idx");
  if (order && !transposed) throw badTensor(from, order, "is not supported (actorder)");
  const { rows, cols } = scheme;
  // Configs may have rules for single modules (`dynamic`, `extra_config`): what one has changed shows here.
  if (transposed) checkShape(from, scales, [blocks(cols, scheme.block?.cols ?? Infinity), rows]);
  checkPackedShape(from, part("weight_shape"), [rows, cols]);
  const format = formatOf(scheme);
  const zeros = format === "u4" ? stored : undefined;
  if (stored && !zeros && readBytes(from, stored).some((byte) => byte !== 0)) {
    throw badTensor(from, stored, "is not supported with 8 bits");
  }
  return { format, rows, cols, values, order, scales, zeros };
}

function formatOf({ layout, bits }: Scheme): Prequantized {
  if (bits === 4) return "u4";
  return layout === "fp8" ? "f8" : "i8";
}

function sizeOf(values: TensorInfo, { layout, bits }: Scheme) {
  const [a = 0, b = 0] = values.shape;
  const [rows, cols] = ({
    gptq: [b, 8 * a],
    awq: [8 * b, a],
    packed: [a, 32 / bits * b],
    integers: [a, b],
    fp8: [a, b],
  } as const)[layout];
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
