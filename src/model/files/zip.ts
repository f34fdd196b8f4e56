/**
 * The directory of a zip archive whose entries are stored, not compressed: an entry's bytes are then in
 * the file as they are, and any part of them can be read alone.
 * Source: https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT (sections 4.3.7 to 4.3.16)
 */
import { quote } from "./fields.ts";
import type { ByteSource } from "./folder.ts";

/** One file of an archive. */
export interface ZipEntry {
  readonly name: string;
  /** Bytes. */
  readonly size: number;
  /** Where its local header is; see `entryStart`. */
  readonly headerAt: number;
  /** Its bytes are stored in the file as they are: neither compressed nor encrypted. */
  readonly stored: boolean;
}

/** First bytes of a zip archive that is not empty. */
export const ZIP_START: Uint8Array = Uint8Array.of(0x50, 0x4b, 3, 4);

const LOCAL = { signature: 0x04034b50, size: 30 };
const CENTRAL = { signature: 0x02014b50, size: 46 };
const END = { signature: 0x06054b50, size: 22 };
const END64 = { signature: 0x06064b50, size: 56 };
const LOCATOR64 = { signature: 0x07064b50, size: 20 };
/** Longest comment after the end record. */
const MAX_COMMENT = 0xffff;
/** Most bytes of a directory: a million tensors. An archive that claims more is no checkpoint. */
const MAX_DIRECTORY = 100_000_000;
/** The value of a 32-bit field whose number is in the zip64 part. */
const IN_ZIP64 = 0xffffffff;
const ZIP64_EXTRA = 1;
const STORED = 0;
const ENCRYPTED = 1;

/**
 * The entries of an archive, by name. Reads the end of the file and the directory only.
 * @throws Error with one line when the archive is broken.
 */
export function readZip(source: ByteSource): Map<string, ZipEntry> {
  const directory = findDirectory(source);
  const view = readView(source, directory.at, directory.size);
  const entries = new Map<string, ZipEntry>();
  let at = 0;
  for (let i = 0; i < directory.count; i++) {
    const { entry, next } = readEntry(view, at, source.size);
    if (entries.has(entry.name)) throw new Error(`${quote(entry.name)} is in the zip twice`);
    entries.set(entry.name, entry);
    at = next;
  }
  return entries;
}

/** Where an entry's bytes begin in the file. @throws Error when they are not there to be read. */
export function entryStart(source: ByteSource, entry: ZipEntry): number {
  const { name, size, headerAt, stored } = entry;
  if (!stored) throw new Error(`${quote(name)} is compressed, expected it stored`);
  const view = readView(source, headerAt, LOCAL.size);
  if (view.getUint32(0, true) !== LOCAL.signature) throw new Error(`${quote(name)} is not there`);
  const start = headerAt + LOCAL.size + view.getUint16(26, true) + view.getUint16(28, true);
  if (start + size > source.size) throw new Error(`${quote(name)} is truncated`);
  return start;
}

interface Directory {
  readonly at: number;
  readonly size: number;
  readonly count: number;
}

function findDirectory(source: ByteSource): Directory {
  const tailSize = Math.min(source.size, END.size + MAX_COMMENT);
  const tailAt = source.size - tailSize;
  const tail = readView(source, tailAt, tailSize);
  let end = tailSize - END.size;
  while (end >= 0 && !isEnd(tail, end)) end--;
  if (end < 0) throw new Error("it is truncated: a zip without its directory");
  const directory = findDirectory64(source, tailAt + end) ?? {
    count: tail.getUint16(end + 10, true),
    size: tail.getUint32(end + 12, true),
    at: tail.getUint32(end + 16, true),
  };
  const { at, size, count } = directory;
  if (size > MAX_DIRECTORY || at + size > source.size || count * CENTRAL.size > size) {
    throw new Error(`the zip's directory cannot be (${count} entries, ${size} bytes at ${at})`);
  }
  return directory;
}

/** Whether the end record at `at` is one, with its comment up to the end of the file. */
function isEnd(tail: DataView, at: number): boolean {
  return tail.getUint32(at, true) === END.signature &&
    at + END.size + tail.getUint16(at + 20, true) === tail.byteLength;
}

/** The directory by the zip64 records before the end record, undefined where there are none. */
function findDirectory64(source: ByteSource, endAt: number): Directory | undefined {
  const locatorAt = endAt - LOCATOR64.size;
  if (locatorAt < 0) return undefined;
  const locator = readView(source, locatorAt, LOCATOR64.size);
  if (locator.getUint32(0, true) !== LOCATOR64.signature) return undefined;
  const end = readView(source, whole(locator, 8), END64.size);
  if (end.getUint32(0, true) !== END64.signature) throw new Error("its zip64 end record is gone");
  return { count: whole(end, 32), size: whole(end, 40), at: whole(end, 48) };
}

function readEntry(
  view: DataView,
  at: number,
  fileSize: number,
): { readonly entry: ZipEntry; readonly next: number } {
  if (at + CENTRAL.size > view.byteLength || view.getUint32(at, true) !== CENTRAL.signature) {
    throw new Error("the zip's directory is broken");
  }
  const [nameSize, extraSize, commentSize] = [28, 30, 32].map((o) => view.getUint16(at + o, true));
  const extraAt = at + CENTRAL.size + (nameSize ?? 0);
  const next = extraAt + (extraSize ?? 0) + (commentSize ?? 0);
  if (next > view.byteLength) throw new Error("the zip's directory is broken");
  const name = decode(view, at + CENTRAL.size, nameSize ?? 0);
  const packed = view.getUint32(at + 20, true);
  const wide = wideNumbers(view, extraAt, extraSize ?? 0);
  // The zip64 field holds only the numbers that do not fit, in this order.
  const [size, packedSize, headerAt] = [
    view.getUint32(at + 24, true),
    packed,
    view.getUint32(at + 42, true),
  ]
    .map((number) => number === IN_ZIP64 ? wide.shift() ?? number : number) as [
      number,
      number,
      number,
    ];
  const encrypted = (view.getUint16(at + 8, true) & ENCRYPTED) !== 0;
  const stored = view.getUint16(at + 10, true) === STORED && packedSize === size && !encrypted;
  if (headerAt + packedSize > fileSize) {
    throw new Error(`${quote(name)} is truncated: ${packedSize} bytes of a file of ${fileSize}`);
  }
  return { entry: { name, size, headerAt, stored }, next };
}

/** The numbers of an entry's zip64 field, none where it has none. */
function wideNumbers(view: DataView, start: number, size: number): number[] {
  for (let at = start; at + 4 <= start + size;) {
    const bytes = view.getUint16(at + 2, true);
    const end = at + 4 + bytes;
    if (end > start + size) break;
    if (view.getUint16(at, true) === ZIP64_EXTRA) {
      return Array.from({ length: Math.min(3, bytes >> 3) }, (_, i) => whole(view, at + 4 + i * 8));
    }
    at = end;
  }
  return [];
}

function whole(view: DataView, at: number): number {
  return Number(view.getBigUint64(at, true));
}

function readView(source: ByteSource, at: number, size: number): DataView {
  if (at + size > source.size) throw new Error("it is truncated");
  const bytes = new Uint8Array(size);
  if (source.read(at, bytes) !== size) throw new Error("it is truncated");
  return new DataView(bytes.buffer);
}

function decode(view: DataView, at: number, size: number): string {
  return new TextDecoder().decode(new Uint8Array(view.buffer, view.byteOffset + at, size));
}
