/** GGUF files, which Eyrie does not read: which model they were made from. */
import { reason, UsageError } from "../../errors.ts";
import { readText } from "../../hub/cache.ts";
import { namedRepo } from "../../hub/names.ts";
import { quote } from "../../model/files/fields.ts";
import { GGUF_BEGINNING, ggufTexts } from "../../model/files/gguf.ts";

/** Where a file says what it was made from, and then what that was made from. */
const SOURCES = [
  "general.source.huggingface.repository",
  "general.source.repo_url",
  "general.source.url",
  "general.repo_url",
  "general.url",
];

/** @throws UsageError for a GGUF file, and for a folder of such files and no other weights. */
export function refuseGguf(path: string): void {
  const isDirectory = statOf(path)?.isDirectory ?? false;
  const file = isDirectory ? ggufIn(path) : statOf(path)?.isFile ? path : undefined;
  const texts = file === undefined ? undefined : ggufTexts(beginningOf(file));
  if (texts === undefined) return;
  const found =
    SOURCES.map((key) => namedRepo(texts.get(key))).find((repo) => repo !== undefined) ??
      (isDirectory ? baseModel(readText(`${path}/README.md`)) : undefined);
  const name = texts.get("general.name");
  const which = found !== undefined
    ? `use what it was made from: ${found}`
    : `use the original in safetensors${name ? ` (it is called ${quote(name)})` : ""}`;
  throw new UsageError(`Cannot open "${file}": a GGUF file, which is not read; ${which}`);
}

/** What a model card's front matter names as `base_model`, one or the first of a list. */
function baseModel(card: string | undefined): string | undefined {
  const front = /^---\r?\n(.*?)\r?\n---/s.exec(card ?? "")?.[1];
  return namedRepo(/^base_model:\s*(?:-\s*)?["']?([^\s"']+)/m.exec(front ?? "")?.[1]);
}

/** A GGUF file of a folder without weights that are read. */
function ggufIn(folder: string): string | undefined {
  const files = namesIn(folder).toSorted();
  if (files.some((name) => /\.(safetensors|bin|pth?)$/.test(name))) return undefined;
  const found = files.find((name) => /\.gguf$/i.test(name));
  return found === undefined ? undefined : `${folder}/${found}`;
}

/** @throws UsageError for a folder that may not be read. */
function namesIn(folder: string): string[] {
  try {
    return [...Deno.readDirSync(folder)].map(({ name }) => name);
  } catch (error) {
    throw new UsageError(`Cannot open "${folder}": ${reason(error)}`, { cause: error });
  }
}

function statOf(path: string): Deno.FileInfo | undefined {
  try {
    return Deno.statSync(path);
  } catch {
    return undefined; // a link to nothing: opening it says so
  }
}

function beginningOf(path: string): Uint8Array {
  using file = Deno.openSync(path);
  const bytes = new Uint8Array(GGUF_BEGINNING);
  return bytes.subarray(0, file.readSync(bytes) ?? 0);
}
