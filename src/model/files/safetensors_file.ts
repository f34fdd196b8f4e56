/** How tensors are laid out in new safetensors files; see safetensors.ts for the format. */
import { DTYPE_BYTES, HEADER_START, type TensorInfo } from "./safetensors.ts";

/** One file to be written. */
export interface ShardFile {
  readonly file: string;
  /** Everything before the data: its length, the JSON header, spaces up to a multiple of 8. */
  readonly head: Uint8Array<ArrayBuffer>;
  /** Tensors in the order of their data. */
  readonly tensors: readonly TensorInfo[];
}

/** The files to be written, and the content of model.safetensors.index.json if there are several. */
export interface ShardPlan {
  readonly files: readonly ShardFile[];
  readonly index: unknown;
}

const ALIGNMENT = 8;

/**
 * Tensors in their order, in files of at most `most` bytes of data each; a larger tensor gets a
 * file of its own. Names are those of transformers: model.safetensors, or
 * model-00001-of-00003.safetensors with an index.
 */
export function planShards(tensors: readonly TensorInfo[], most: number): ShardPlan {
  const groups: TensorInfo[][] = [[]];
  let filled = 0;
  for (const tensor of tensors) {
    if (filled > 0 && filled + tensor.size > most) {
      groups.push([]);
      filled = 0;
    }
    groups.at(-1)?.push(tensor);
    filled += tensor.size;
  }
  const pad = (n: number) => String(n).padStart(5, "0");
  const files = groups.map((group, i) => ({
    file: groups.length === 1
      ? "model.safetensors"
      : `model-${pad(i + 1)}-of-${pad(groups.length)}.safetensors`,
    ...headed(group),
  }));
  if (files.length === 1) return { files, index: undefined };
  const weightMap = files.flatMap(({ file, tensors }) => tensors.map(({ name }) => [name, file]));
  const total = tensors.reduce((sum, { size }) => sum + size, 0);
  const index = { metadata: { total_size: total }, weight_map: Object.fromEntries(weightMap) };
  return { files, index };
}

/** Places tensors with wide elements first, so that every tensor begins at a multiple of its element size. */
function headed(group: readonly TensorInfo[]): Pick<ShardFile, "head" | "tensors"> {
  const width = ({ dtypeName }: TensorInfo) => DTYPE_BYTES[dtypeName] ?? 1;
  const tensors = group.toSorted((a, b) => width(b) - width(a));
  let end = 0;
  const entries = tensors.map(({ name, dtypeName, shape, size }) => {
    const offsets = [end, end += size];
    return [name, { dtype: dtypeName, shape, data_offsets: offsets }];
  });
  const header = { __metadata__: { format: "pt" }, ...Object.fromEntries(entries) };
  const json = new TextEncoder().encode(JSON.stringify(header));
  const size = Math.ceil(json.length / ALIGNMENT) * ALIGNMENT;
  const head = new Uint8Array(HEADER_START + size).fill(0x20);
  new DataView(head.buffer).setBigUint64(0, BigInt(size), true);
  head.set(json, HEADER_START);
  return { head, tensors };
}
