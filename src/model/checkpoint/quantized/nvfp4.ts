/**
 * Presents NVFP4 modules as matrices of the dtype GROUPED_NVFP4. Their tensors identify them, not config.json. 16
 * weights along k share an e4m3 scale, and all weights of a module share another scale:
 *
 *     compressed-tensors  weight_packed u8 [N, K / 2], weight_scale [N, K / 16], weight_global_scale f32:
 *                         w = e2m1 scale / global
 *     ModelOpt            weight u8 [N, K / 2], weight_scale [N, K / 16], weight_scale_2 f32: w = e2m1 scale scale_2
 */
import { GROUP } from "../../../gpu/weight_format.ts";
import type { Checkpoint } from "../../files/checkpoint_type.ts";
import type { TensorInfo } from "../../files/safetensors.ts";
import { NVFP4_UNIT } from "./dequantize.ts";
import { ACTIVATIONS, badTensor, readScales, withoutGroups } from "./groups.ts";
import { checkShape, type ReadRows, rowWords } from "./modules.ts";
import { e4m3 } from "./e4m3.ts";

/** Weights that share a scale. */
const SHARED = 16;

/** Other tensors of a module. */
const PARTS = ["weight_scale", "weight_scale_2", "weight_global_scale"];

interface Module {
  readonly tensor: TensorInfo;
  readonly open: () => ReadRows;
}

/** The checkpoint with its NVFP4 modules as matrices. @throws UsageError if a module's tensors do not fit together. */
export function nvfp4View(checkpoint: Checkpoint): Checkpoint {
  const modules = new Map<string, Module>();
  const unusable = new Map<string, TensorInfo>();
  const parts = new Set<string>();
  for (const tensor of checkpoint.tensors.values()) {
    const [, prefix, suffix] = /^(.*)\.(weight|weight_packed)$/.exec(tensor.name) ?? [];
    if (prefix === undefined || tensor.dtypeName !== "U8") continue;
    const scale = suffix === "weight" ? "weight_scale_2" : "weight_global_scale";
    const global = checkpoint.tensors.get(`${prefix}.${scale}`);
    if (global === undefined) continue;
    const name = `${prefix}.weight`;
    const [rows = 0, bytes = 0] = tensor.shape;
    const size = { name, method: "NVFP4", rows, cols: 2 * bytes };
    if (tensor.shape.length !== 2 || size.cols % GROUP !== 0) {
      unusable.set(name, withoutGroups(tensor, size));
    } else modules.set(name, moduleOf(checkpoint, prefix, tensor, global));
    for (const part of [suffix, ...PARTS]) parts.add(`${prefix}.${part}`);
  }
  if (parts.size === 0) return checkpoint;
  let last: { readonly name: string; readonly read: ReadRows } | undefined;
  const rest = [...checkpoint.tensors].filter(([name]) =>
    !parts.has(name) && !ACTIVATIONS.test(name)
  );
  const views = [...modules].map(([name, { tensor }]) => [name, tensor] as const);
  return {
    ...checkpoint,
    tensors: new Map([...rest, ...unusable, ...views]),
    read(tensor, offset, into) {
      const { name } = tensor;
      const module = modules.get(name);
      if (module === undefined) return checkpoint.read(tensor, offset, into);
      if (last?.name !== name) last = { name, read: module.open() };
      const words = new Uint32Array(into.length / 4);
      const rowBytes = 4 * rowWords({ format: "nvfp4", cols: tensor.shape[1] ?? 0 }).all;
      last.read((tensor.begin + offset) / rowBytes, words);
      into.set(new Uint8Array(words.buffer));
    },
    [Symbol.dispose]: () => checkpoint[Symbol.dispose](),
  };
}

function moduleOf(
  from: Checkpoint,
  prefix: string,
  packed: TensorInfo,
  global: TensorInfo,
): Module {
  const [rows = 0, bytes = 0] = packed.shape;
  const cols = 2 * bytes;
  const scales = from.tensors.get(`${prefix}.weight_scale`);
  if (scales?.dtypeName !== "F8_E4M3") {
    throw badTensor(from, packed, "has no weight_scale of F8_E4M3");
  }
  checkShape(from, scales, [rows, cols / SHARED]);
  const { weights, all } = rowWords({ format: "nvfp4", cols });
  const { file } = packed;
  const size = 4 * rows * all;
  return {
    tensor: {
      name: `${prefix}.weight`,
      dtype: "GROUPED_NVFP4",
      dtypeName: "NVFP4",
      shape: [rows, cols],
      file,
      begin: 0,
      size,
    },
    open() {
      const halves = halfScales(from, scales, factorOf(from, global));
      return (first, into) => {
        const count = into.length / all;
        const numbers = new Uint32Array(count * weights);
        from.read(packed, first * weights * 4, new Uint8Array(numbers.buffer));
        const stored = new Uint8Array(count * cols / SHARED);
        from.read(scales, first * cols / SHARED, stored);
        if (stored.some(isNan)) throw badTensor(from, scales, "has a scale that is no number");
        const groups = new Uint32Array(
          Uint16Array.from(stored, (byte) => halves[byte] ?? 0).buffer,
        );
        for (let row = 0; row < count; row++) {
          const at = row * all;
          into.set(numbers.subarray(row * weights, (row + 1) * weights), at);
          into.set(groups.subarray(row * cols / GROUP, (row + 1) * cols / GROUP), at + weights);
        }
      };
    },
  };
}

/** The factor of all scales of a module. compressed-tensors stores its inverse. */
function factorOf(from: Checkpoint, global: TensorInfo): number {
  const [value = NaN, ...others] = new Float32Array(readScales(from, global).buffer);
  const factor = global.name.endsWith("weight_global_scale") ? 1 / value : value;
  if (others.length === 0 && factor > 0 && Number.isFinite(factor)) return factor;
  throw badTensor(from, global, "is not one number above 0");
}

/** Whether an e4m3 byte is NaN, which has all bits set except perhaps the sign. */
function isNan(byte: number): boolean {
  return (byte & 127) === 127;
}

/**
 * f16 bits of each e4m3 scale times `factor` / NVFP4_UNIT: the product of both scales is rounded to 11 bits. Those of
 * NaN are never used.
 */
function halfScales(from: Checkpoint, scales: TensorInfo, factor: number): Uint16Array {
  const halves = Float16Array.from(
    { length: 256 },
    (_, byte) => isNan(byte) ? 0 : e4m3(byte) * factor / NVFP4_UNIT,
  );
  if (halves.every(Number.isFinite)) return new Uint16Array(halves.buffer);
  throw badTensor(from, scales, `has scales times ${factor}, which are too large`);
}
