import type { TensorInfo } from "./safetensors.ts";

/** A folder in the Hugging Face layout, opened: headers checked, no weights read yet. */
export interface Checkpoint extends Disposable {
  /** For messages: the folder as given, or `fledgling/eagle3` for an embedded one. */
  readonly name: string;
  readonly tensors: ReadonlyMap<string, TensorInfo>;
  /** Problems of its files that do not prevent using it; absent: none. */
  readonly warnings?: readonly string[];
  /** Parsed JSON file of the folder, undefined when absent. UsageError when it does not parse. */
  json(file: string): unknown;
  /** Text file of the folder, undefined when absent. UsageError when it is not UTF-8. */
  text(file: string): string | undefined;
  /** Reads `into.length` bytes of the tensor from byte `offset` on (synchronous: fastest in Deno). */
  read(tensor: TensorInfo, offset: number, into: Uint8Array): void;
}
