/** Element types a safetensors header may name and Eyrie reads. */
export type DType = "F32" | "F16" | "BF16" | "I64" | "I32" | "BOOL";

/** One tensor of a checkpoint: where its bytes lie. */
export interface TensorInfo {
  readonly name: string;
  readonly dtype: DType;
  readonly shape: readonly number[];
  /** File within the checkpoint folder. */
  readonly file: string;
  /** First byte, absolute within the file. */
  readonly begin: number;
  /** Bytes. */
  readonly size: number;
}

/** A folder in the Hugging Face layout, opened: headers checked, no weights read yet. */
export interface Checkpoint extends Disposable {
  /** For messages: the folder as given, or `fledgling/eagle3` for an embedded one. */
  readonly name: string;
  readonly tensors: ReadonlyMap<string, TensorInfo>;
  /** Parsed JSON file of the folder, undefined when absent. UsageError when it does not parse. */
  json(file: string): unknown;
  /** Text file of the folder, undefined when absent. */
  text(file: string): string | undefined;
  /** Reads `into.length` bytes of the tensor from byte `offset` on (synchronous: fastest in Deno). */
  read(tensor: TensorInfo, offset: number, into: Uint8Array): void;
}
