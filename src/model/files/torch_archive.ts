/**
 * The zip that torch.save writes: stored entries `<archive>/data.pkl`, a pickle, and
 * `<archive>/data/<key>`, the bytes of one storage each.
 * Source: https://github.com/pytorch/pytorch/blob/main/torch/serialization.py
 */
import { quote } from "./fields.ts";
import type { ByteSource } from "./folder.ts";
import { entryStart, readZip, ZIP_START, type ZipEntry } from "./zip.ts";

const PICKLE = "data.pkl";
/** Longest pickle of a state dict, bytes: a million tensors. */
const MAX_PICKLE = 100_000_000;
/** First bytes of torch's older format: a pickle of protocol 2 that holds a magic number. */
const LEGACY_PICKLE = Uint8Array.fromHex("80028a0a6cfc9c46f9206aa85019");
/** Offset of the magic of a tar archive, which torch before 0.4 wrote. */
const TAR_MAGIC_AT = 257;

/** An opened archive. */
export interface TorchArchive {
  readonly pickle: Uint8Array;
  /** Where the storage of this key is. @throws Error when there is none. */
  storage(key: string): { readonly begin: number; readonly size: number };
}

/** Reads the zip's directory and the pickle. @throws Error if torch.save did not write the file. */
export function openTorchArchive(source: ByteSource): TorchArchive {
  checkFormat(source);
  const entries = readZip(source);
  // <archive> is the name the file had when it was saved; some have none.
  const pickles = [...entries.keys()].filter((name) => `/${name}`.endsWith(`/${PICKLE}`));
  const [first] = pickles;
  if (first === undefined || pickles.length > 1) {
    throw new Error(`the zip has ${pickles.length} entries ${PICKLE}, expected one of torch.save`);
  }
  const prefix = first.slice(0, -PICKLE.length);
  if (entries.has(`${prefix}constants.pkl`)) throw new Error("it is TorchScript, not tensors");
  const bytesOf = (entry: ZipEntry, most: number): Uint8Array => {
    if (entry.size > most) {
      throw new Error(`${quote(entry.name)} has ${entry.size} bytes, too many`);
    }
    const bytes = new Uint8Array(entry.size);
    source.read(entryStart(source, entry), bytes);
    return bytes;
  };
  const order = entries.get(`${prefix}byteorder`);
  if (order && new TextDecoder().decode(bytesOf(order, 16)) !== "little") {
    throw new Error("its numbers are not little-endian");
  }
  return {
    pickle: bytesOf(entries.get(first) as ZipEntry, MAX_PICKLE),
    storage(key) {
      const entry = entries.get(`${prefix}data/${key}`);
      if (entry === undefined) throw new Error(`storage ${quote(key)} is not in the zip`);
      return { begin: entryStart(source, entry), size: entry.size };
    },
  };
}

/** Recognizes other formats by their first bytes. @throws Error that names the format. */
function checkFormat(source: ByteSource): void {
  const first = new Uint8Array(Math.min(source.size, TAR_MAGIC_AT + 5));
  source.read(0, first);
  const begins = (bytes: Uint8Array) => bytes.every((byte, i) => first[i] === byte);
  if (begins(ZIP_START)) return;
  const latin = String.fromCharCode(...first);
  if (begins(LEGACY_PICKLE) || latin.slice(TAR_MAGIC_AT) === "ustar") {
    throw new Error(
      "it is in the format of torch before 1.6; write it again in Python: " +
        "torch.save(torch.load(name), name)",
    );
  }
  if (latin.startsWith("version https://git-lfs")) {
    throw new Error("it is a Git LFS pointer, not the file itself; run git lfs pull");
  }
  throw new Error("it is not a file that torch.save wrote (no zip)");
}
