/** safetensors files taken apart and put together again. */

/** A tensor by its bytes. */
export interface StoredTensor {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly bytes: Uint8Array;
}

interface Entry {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly data_offsets: readonly [number, number];
}

/** The tensors of a file by name. */
export function tensorsOf(path: string): Map<string, StoredTensor> {
  const file = Deno.readFileSync(path);
  const size = Number(new DataView(file.buffer).getBigUint64(0, true));
  const text = new TextDecoder().decode(file.subarray(8, 8 + size));
  const { __metadata__: _, ...header }: Record<string, Entry> = JSON.parse(text);
  return new Map(
    Object.entries(header).map(([name, { dtype, shape, data_offsets: [begin, end] }]) => [
      name,
      { dtype, shape, bytes: file.subarray(8 + size + begin, 8 + size + end) },
    ]),
  );
}

/** A file with these tensors, one after the other. */
export function fileOf(tensors: ReadonlyMap<string, StoredTensor>): Uint8Array<ArrayBuffer> {
  let at = 0;
  const header = Object.fromEntries(
    [...tensors].map(([name, { dtype, shape, bytes }]) => {
      const entry: Entry = { dtype, shape, data_offsets: [at, at += bytes.length] };
      return [name, entry];
    }),
  );
  const text = new TextEncoder().encode(JSON.stringify(header));
  const file = new Uint8Array(8 + text.length + at);
  new DataView(file.buffer).setBigUint64(0, BigInt(text.length), true);
  file.set(text, 8);
  let end = 8 + text.length;
  for (const { bytes } of tensors.values()) {
    file.set(bytes, end);
    end += bytes.length;
  }
  return file;
}
