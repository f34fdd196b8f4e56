/**
 * Reads strings from the beginning of a GGUF file, only to print one line of advice.
 * Source: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
 */

/** Bytes of the scalar types by number; 8 is a text, 9 an array. */
const WIDTHS: Readonly<Record<number, number>> = {
  0: 1,
  1: 1,
  2: 2,
  3: 2,
  4: 4,
  5: 4,
  6: 4,
  7: 1,
  10: 8,
  11: 8,
  12: 8,
};
const [TEXT, ARRAY] = [8, 9];
const MAGIC = "GGUF";
/** Magic, version, number of tensors, number of keys. */
const HEAD_BYTES = 24;

/** Bytes of a file's beginning that are worth reading: what describes the model comes first. */
export const GGUF_BEGINNING: number = 64 << 10;

/** The strings, by key, of the given beginning of a file; undefined if it is no GGUF file. */
export function ggufTexts(beginning: Uint8Array): ReadonlyMap<string, string> | undefined {
  const decoder = new TextDecoder();
  if (decoder.decode(beginning.subarray(0, MAGIC.length)) !== MAGIC) return undefined;
  const view = new DataView(beginning.buffer, beginning.byteOffset, beginning.byteLength);
  const texts = new Map<string, string>();
  let at = HEAD_BYTES;
  const text = (): string => {
    const size = Number(view.getBigUint64(at, true));
    at += 8 + size;
    if (at > view.byteLength) throw new RangeError("the beginning ends here");
    return decoder.decode(beginning.subarray(at - size, at));
  };
  try {
    while (at < view.byteLength) {
      const key = text();
      const type = view.getUint32(at, true);
      at += 4;
      if (type === TEXT) texts.set(key, text());
      else if (type !== ARRAY) at += WIDTHS[type] ?? Infinity;
      else {
        const of = view.getUint32(at, true);
        const count = Number(view.getBigUint64(at + 4, true));
        at += 12;
        if (of !== TEXT) at += count * (WIDTHS[of] ?? Infinity);
        else for (let i = 0; i < count; i++) text();
      }
    }
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
  }
  return texts;
}
