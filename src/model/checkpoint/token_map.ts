/**
 * FR-Spec (https://arxiv.org/abs/2502.14856; SGLang `--speculative-token-map`): an EAGLE-1/2 draft
 * scores the most frequent tokens only, so its head is those rows of the target's.
 */
import { UsageError } from "../../errors.ts";
import { MAX_TOPK } from "../../speculate/round_shape.ts";
import { quote } from "../files/fields.ts";
import { openDiskFile, readJson } from "../files/folder.ts";
import { openTensorFile } from "../files/tensor_files.ts";
import { readTorchIds } from "../files/torch_file.ts";
import type { Checkpoint } from "../files/checkpoint_type.ts";
import type { TensorInfo } from "../files/safetensors.ts";
import type { DraftConfig } from "../config/types.ts";

/** The names under which a draft of a reduced vocabulary has its head and its offsets. */
const [HEAD, OFFSETS] = ["lm_head.weight", "d2t"];

/**
 * Reads token ids, most frequent first, from a file of torch.save (a list of integers or a tensor of them),
 * from the only tensor of a .safetensors file, or from a .json list.
 *
 * @throws UsageError if the file has something else, an id twice, or an id that the target does not have.
 */
export function readTokenMap(path: string, vocabSize: number): Int32Array {
  const fail = (why: string) => new UsageError(`Cannot use token map ${quote(path)}: ${why}`);
  const ids = [...idsOf(path)];
  const wrong = ids.findIndex((id) => !Number.isInteger(id) || id < 0 || id >= vocabSize);
  if (wrong >= 0) {
    throw fail(`entry ${wrong} is ${quote(ids[wrong])}, token ids are 0 to ${vocabSize - 1}`);
  }
  if (new Set(ids).size < ids.length) throw fail("a token id occurs twice");
  if (ids.length < MAX_TOPK) throw fail(`it has ${ids.length} token ids, at least ${MAX_TOPK}`);
  return Int32Array.from(ids);
}

function idsOf(path: string): Iterable<number> {
  const fail = (why: string) => new UsageError(`Cannot use token map ${quote(path)}: ${why}`);
  if (path.endsWith(".safetensors")) return tensorIds(path, fail);
  const { folder, file, source } = openDiskFile(path);
  using _open = source;
  if (!path.endsWith(".json")) return readTorchIds(source, path);
  const json = readJson(folder, file);
  if (Array.isArray(json)) return json;
  throw fail("expected a list of token ids");
}

function tensorIds(path: string, fail: (why: string) => UsageError): Iterable<number> {
  using file = openTensorFile(path);
  const [tensor, ...others] = file.tensors.values();
  const whole = tensor?.dtype === "I64" || tensor?.dtype === "I32";
  if (tensor === undefined || others.length > 0 || tensor.shape.length !== 1 || !whole) {
    throw fail("expected one tensor of I64 or I32 with one dimension");
  }
  const bytes = new Uint8Array(tensor.size);
  file.read(tensor, 0, bytes);
  return tensor.dtype === "I32"
    ? new Int32Array(bytes.buffer)
    : Array.from(new BigInt64Array(bytes.buffer), Number);
}

/**
 * The draft with a head of its own: rows `ids` of the target's head.
 *
 * @param head the target's lm_head, or its embedding if they are tied.
 */
export function withTokenMap(
  draft: { readonly checkpoint: Checkpoint; readonly config: DraftConfig },
  target: { readonly checkpoint: Checkpoint; readonly head: TensorInfo },
  ids: Int32Array,
): { readonly checkpoint: Checkpoint; readonly config: DraftConfig } {
  const { checkpoint, config } = draft;
  const { head } = target;
  const [, cols = 0] = head.shape;
  const rowBytes = head.size / (head.shape[0] ?? 1);
  const offsets = new Uint8Array(ids.map((id, i) => id - i).buffer);
  const made = { begin: 0, file: head.file };
  const headRows: TensorInfo = {
    ...head,
    ...made,
    name: HEAD as string,
    shape: [ids.length, cols],
    size: rowBytes * ids.length,
  };
  const offsetIds: TensorInfo = {
    ...made,
    name: OFFSETS as string,
    dtype: "I32",
    dtypeName: "I32",
    shape: [ids.length],
    size: offsets.length,
  };
  const tensors = new Map([...checkpoint.tensors, [HEAD, headRows], [OFFSETS, offsetIds]]) as Map<
    string,
    TensorInfo
  >;
  return {
    config: { ...config, ownHead: true, reducedVocab: true, draftVocabSize: ids.length },
    checkpoint: {
      name: checkpoint.name,
      tensors,
      json: (file) => checkpoint.json(file),
      text: (file) => checkpoint.text(file),
      read(tensor, offset, into) {
        if (tensor === offsetIds) into.set(offsets.subarray(offset, offset + into.length));
        else if (tensor !== headRows) checkpoint.read(tensor, offset, into);
        else gather(target, { ids, rowBytes, offset, into });
      },
      [Symbol.dispose]: () => checkpoint[Symbol.dispose](),
    },
  };
}

/** Reads bytes, from `offset` on, of the rows `ids` placed one after the other. */
function gather(
  { checkpoint, head }: { readonly checkpoint: Checkpoint; readonly head: TensorInfo },
  { ids, rowBytes, offset, into }: {
    readonly ids: Int32Array;
    readonly rowBytes: number;
    readonly offset: number;
    readonly into: Uint8Array;
  },
): void {
  for (let done = 0; done < into.length;) {
    const at = offset + done;
    const within = at % rowBytes;
    const count = Math.min(rowBytes - within, into.length - done);
    const row = ids[Math.floor(at / rowBytes)] as number;
    checkpoint.read(head, row * rowBytes + within, into.subarray(done, done + count));
    done += count;
  }
}
