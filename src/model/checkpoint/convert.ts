/** Converts a checkpoint to safetensors, in a new folder that is complete or absent. */
import { reason, UsageError } from "../../errors.ts";
import { storedCheckpoint } from "./checkpoint.ts";
import { expertStacks } from "./quantized/expert_stacks.ts";
import type { Checkpoint } from "../files/checkpoint_type.ts";
import type { TensorInfo } from "../files/safetensors.ts";
import { quote } from "../files/fields.ts";
import { diskFolder } from "../files/folder.ts";
import { widen } from "../files/widen.ts";
import type { Quantization } from "../../gpu/weight_format.ts";
import { blocksConfig, packBlocks, storedShape } from "./quantized/blocks.ts";
import { planShards, type ShardFile } from "../files/safetensors_file.ts";
import { makeTemporary } from "./temporary_folder.ts";

/** What was written. */
export interface Converted {
  readonly tensors: number;
  /** Bytes of the tensors. */
  readonly bytes: number;
  /** Names within the folder, weights first. */
  readonly files: readonly string[];
}

/** The tensors that `--quantize` would quantize at every start. */
export interface QuantizedTensors {
  readonly to: Quantization;
  /** Names of the tensors that are quantized. @throws UsageError where the checkpoint cannot be */
  readonly names: (checkpoint: Checkpoint) => ReadonlySet<string>;
}

export interface ConvertOptions {
  /** Folder of the checkpoint. */
  readonly from: string;
  /** Folder to be made. */
  readonly to: string;
  /** Replace the checkpoint that is at `to`. */
  readonly force: boolean;
  /** Most bytes of tensors in a file. */
  readonly shardBytes: number;
  /** Which matrices become what; absent: they stay as they are. */
  readonly quantize?: QuantizedTensors | undefined;
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: { label: string; done: number; total: number }) => void;
}

/** The dtype in safetensors of matrices stored in blocks. */
const BLOCKS_DTYPE = "U8";
/** Bytes read and written at a time. */
const BLOCK = 8 << 20;
/** Largest ratio of tensor bytes to file bytes. Tensors may share storages; more would fill a disk and is no model. */
const MAX_SHARED = 4;
/** Files without weights that go along: configs, tokenizer, template, licence. */
const COMPANION = /^[^.].*\.(json|jinja|txt|model|tiktoken|md)$|^(LICENSE|NOTICE)[^/]*$/;
const INDEX = "model.safetensors.index.json";
const WEIGHT_INDEX = /\.index\.json$/;

/**
 * Writes the checkpoint's tensors as they are, in their own dtypes, or its matrices quantized, and copies
 * the other files along. All is written to a temporary folder that is renamed at the end.
 * @returns undefined when `signal` aborted: then nothing is left behind.
 * @throws UsageError when there is no checkpoint at `from`, or `to` is taken or cannot be written.
 */
export async function convertCheckpoint(options: ConvertOptions): Promise<Converted | undefined> {
  const { from, to } = options;
  using stored = storedCheckpoint(diskFolder(from));
  const checkpoint = options.quantize ? expertStacks(stored) : stored;
  checkSharing(checkpoint);
  checkPlace(options);
  const { quantize } = options;
  const quantized = quantize?.names(checkpoint);
  await using temporary = await orUsage(to, () => makeTemporary(to));
  const tensors = [...checkpoint.tensors.values()].map((tensor) =>
    quantize && quantized?.has(tensor.name) ? inBlocks(tensor, quantize.to) : tensor
  );
  const files = await orUsage(
    to,
    () => writeAll({ checkpoint, tensors }, temporary.path, options),
  );
  if (files === undefined) return undefined;
  await orUsage(to, temporary.moveIn);
  return { tensors: tensors.length, bytes: totalBytes(tensors), files };
}

/** The header entry of a matrix stored in blocks; its `dtype` stays that of the checkpoint. */
function inBlocks(tensor: TensorInfo, format: Quantization): TensorInfo {
  const shape = storedShape(format, tensor.shape);
  return { ...tensor, dtypeName: BLOCKS_DTYPE, shape, size: shape[0] * shape[1] };
}

function totalBytes(tensors: readonly TensorInfo[]): number {
  return tensors.reduce((sum, { size }) => sum + size, 0);
}

function checkSharing({ name, tensors }: Checkpoint): void {
  const ends = new Map<string, number>();
  for (const { file, begin, size } of tensors.values()) {
    ends.set(file, Math.max(ends.get(file) ?? 0, begin + size));
  }
  const there = ends.values().reduce((sum, end) => sum + end, 0);
  const total = totalBytes([...tensors.values()]);
  if (total <= MAX_SHARED * there) return;
  const why = `its tensors share storages: written separately they take ${total} bytes of ${there}`;
  throw new UsageError(`Cannot convert ${quote(name)}: ${why}`);
}

/** Checks that `to` does not exist, or is a checkpoint that may be replaced and is not the one being read. */
function checkPlace({ from, to, force }: ConvertOptions): void {
  const found = statOf(to);
  if (found === undefined) return;
  if (!force) throw taken(to, "it exists already; --force replaces it");
  if (!found.isDirectory) throw taken(to, "it is not a folder");
  const [source, target] = [Deno.realPathSync(from), Deno.realPathSync(to)];
  if (`${source}/`.startsWith(`${target}/`)) throw taken(to, "it holds what is to be converted");
  const isEmpty = Deno.readDirSync(to).next().done === true;
  if (!isEmpty && statOf(`${to}/config.json`) === undefined) {
    throw taken(to, "it holds other files than a checkpoint (no config.json)");
  }
}

function taken(to: string, why: string): UsageError {
  return new UsageError(`Cannot write ${quote(to)}: ${why}`);
}

function statOf(path: string): Deno.FileInfo | undefined {
  try {
    return Deno.statSync(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw taken(path, reason(error));
  }
}

/** All files of the new folder; undefined when aborted. */
async function writeAll(
  { checkpoint, tensors }: { readonly checkpoint: Checkpoint; readonly tensors: TensorInfo[] },
  folder: string,
  { from, shardBytes, quantize, signal, onProgress }: ConvertOptions,
): Promise<string[] | undefined> {
  const { files, index } = planShards(tensors, shardBytes);
  const total = totalBytes(tensors);
  let done = 0;
  const onBytes = (bytes: number): void => {
    done += bytes;
    onProgress?.({ label: checkpoint.name, done, total });
  };
  for (const shard of files) {
    const how = { quantize: quantize?.to, signal, onBytes };
    if (!await writeShard(checkpoint, folder, shard, how)) return undefined;
  }
  const names = files.map(({ file }) => file);
  if (index !== undefined) {
    await Deno.writeTextFile(`${folder}/${INDEX}`, `${JSON.stringify(index, null, 2)}\n`);
    names.push(INDEX);
  }
  for await (const { name } of Deno.readDir(from)) {
    if (!COMPANION.test(name) || WEIGHT_INDEX.test(name)) continue;
    const source = `${from}/${name}`;
    if (!(await orUsage(source, () => Deno.stat(source), "read")).isFile) continue;
    if (name === "config.json" && quantize !== undefined) {
      const json = checkpoint.json(name) as Record<string, unknown>;
      const config = { ...json, quantization_config: blocksConfig(quantize.to) };
      await Deno.writeTextFile(`${folder}/${name}`, `${JSON.stringify(config, null, 2)}\n`);
    } else {
      const bytes = await orUsage(source, () => Deno.readFile(source), "read");
      await Deno.writeFile(`${folder}/${name}`, bytes);
    }
    names.push(name);
  }
  return names;
}

/** Whether the file was written; false when aborted. */
async function writeShard(
  checkpoint: Checkpoint,
  folder: string,
  { file, head, tensors }: ShardFile,
  { quantize, signal, onBytes }: {
    readonly quantize: Quantization | undefined;
    readonly signal: AbortSignal | undefined;
    readonly onBytes: (bytes: number) => void;
  },
): Promise<boolean> {
  using out = await Deno.create(`${folder}/${file}`);
  await writeBytes(out, head);
  const block = new Uint8Array(BLOCK);
  for (const tensor of tensors) {
    const stored = checkpoint.tensors.get(tensor.name) as TensorInfo;
    const packs = quantize !== undefined && stored.size !== tensor.size;
    for (let done = 0; done < stored.size; done += BLOCK) {
      if (signal?.aborted) return false;
      const part = block.subarray(0, Math.min(BLOCK, stored.size - done));
      checkpoint.read(stored, done, part);
      // BLOCK is a multiple of a group's bytes in every dtype.
      const written = packs ? packBlocks(widen(part, stored.dtype), quantize) : part;
      await writeBytes(out, written);
      onBytes(written.length);
      // Packing keeps this thread busy, so it yields here to let Ctrl+C be handled.
      if (packs) await new Promise((resolve) => setTimeout(resolve, 0));
    }
  }
  await out.sync();
  return true;
}

async function writeBytes(out: Deno.FsFile, bytes: Uint8Array): Promise<void> {
  for (let done = 0; done < bytes.length;) done += await out.write(bytes.subarray(done));
}

/** Turns errors of the operating system (a full disk, no permission) into a UsageError about `path`. */
async function orUsage<T>(
  path: string,
  run: () => Promise<T>,
  what: "read" | "write" = "write",
): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (!(error instanceof Error && "code" in error)) throw error;
    throw new UsageError(`Cannot ${what} ${quote(path)}: ${reason(error)}`, { cause: error });
  }
}
