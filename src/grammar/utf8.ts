/** Bytes of texts and of strings of JSON. */
export const QUOTE = 0x22;
export const BACKSLASH = 0x5c;

/** What may follow a backslash in a string, but for `u`. */
export const SHORT_ESCAPES: Uint8Array = new TextEncoder().encode('"\\/bfnrt');

/** Whether it is a byte of a character that began before. */
export function continues(byte: number): boolean {
  return (byte & 0xc0) === 0x80;
}

/** Bytes of a character that begins so. */
export function lengthOf(byte: number): number {
  return byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

/** The least code point of so many bytes, by their number. */
export const MIN_OF_LENGTH: readonly number[] = [0, 0, 0x80, 0x800, 0x10000];

/** The largest byte in UTF-8: the first of U+10FFFF. */
export const LAST_BYTE = 0xf4;
