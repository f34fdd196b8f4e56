/** Which files of a repository a model or a draft needs. Pure. */
import { UsageError } from "../errors.ts";

/** A file as the hub lists it. */
export interface RemoteFile {
  readonly path: string;
  readonly size: number;
  /** What it is called among the blobs: its hash. */
  readonly etag: string;
  /** Which hash that is: of the content (LFS, Xet), or git's of a small file. */
  readonly hash: "sha256" | "git-sha1";
}

/** Everything but weights that some part of Eyrie reads. */
const TEXTS = new Set([
  "config.json",
  "generation_config.json",
  "tokenizer.json",
  "tokenizer_config.json",
  "special_tokens_map.json",
  "chat_template.jinja",
  "chat_template.json",
]);

/** Formats of weights in the order they are preferred: a single file, or shards by an index. */
const WEIGHTS = ["model.safetensors", "pytorch_model.bin"].map((single) => ({
  single,
  index: `${single}.index.json`,
}));

/** Texts, and the index of the weights where there is one: what to fetch first. */
export function textFiles(files: readonly RemoteFile[]): RemoteFile[] {
  const index = weightsOf(hasPath(files))?.index;
  return files.filter(({ path }) => TEXTS.has(path) || path === index);
}

/**
 * The weights: one file, or the shards that the index names.
 * @param readIndex the parsed index, fetched by then.
 * @param madeFrom the model that the card names as its base, for advice.
 * @throws UsageError where there are none in a known format, or the index names what is not there.
 */
export function weightFiles(
  name: string,
  files: readonly RemoteFile[],
  readIndex: (file: string) => unknown,
  madeFrom?: string,
): RemoteFile[] {
  const has = hasPath(files);
  const weights = weightsOf(has);
  if (weights === undefined) throw noWeights(name, files, madeFrom);
  const wanted = wantedOf(weights, has, readIndex);
  if (wanted.length === 0) {
    throw new UsageError(`Cannot get "${name}": ${weights.index} has no weight_map`);
  }
  return wanted.map((path) => {
    const file = files.find((each) => each.path === path);
    if (file !== undefined) return file;
    throw new UsageError(`Cannot get "${name}": ${weights.index} names "${path}", which it lacks`);
  });
}

/** The distinct shards that the `weight_map` of an index names. */
function shardsOf(index: unknown): string[] {
  const map = (index as { weight_map?: unknown } | null | undefined)?.weight_map;
  const values: unknown[] = typeof map === "object" && map !== null ? Object.values(map) : [];
  return [...new Set(values.filter((value) => typeof value === "string"))];
}

/** Names the files that a snapshot lacks to be run; undefined where it has them all. */
export function missingOf(
  has: (file: string) => boolean,
  readIndex: (file: string) => unknown,
): string | undefined {
  if (!has("config.json")) return "config.json";
  const weights = weightsOf(has);
  if (weights === undefined) return "model.safetensors";
  const wanted = wantedOf(weights, has, readIndex);
  const [first, ...others] = wanted.filter((file) => !has(file));
  if (wanted.length === 0) return `shards that ${weights.index} names`;
  return others.length === 0 ? first : `${first} and ${others.length} more`;
}

type Has = (path: string) => boolean;

function hasPath(files: readonly RemoteFile[]): Has {
  return (path) => files.some((file) => file.path === path);
}

/** The preferred format that there is. */
function weightsOf(has: Has) {
  return WEIGHTS.find(({ single, index }) => has(single) || has(index));
}

/** The single file, or the shards if there is none or the index counts it among them, as `openTensors` has it. */
function wantedOf(
  { single, index }: (typeof WEIGHTS)[number],
  has: Has,
  readIndex: (file: string) => unknown,
): string[] {
  const shards = has(index) ? shardsOf(readIndex(index)) : [];
  return has(single) && !shards.includes(single) ? [single] : shards;
}

function noWeights(
  name: string,
  files: readonly RemoteFile[],
  madeFrom: string | undefined,
): UsageError {
  const others = files.map(({ path }) => path)
    .filter((path) => /\.(safetensors|bin|pth?|gguf|h5|onnx|msgpack)$/.test(path));
  const has = others.length === 0 ? "" : `; it has ${others.slice(0, 3).join(", ")}`;
  const more = others.length > 3 ? ` and ${others.length - 3} more` : "";
  const advice = madeFrom === undefined ? "" : `; it was made from ${madeFrom}`;
  return new UsageError(
    `Cannot get "${name}": no weights that Eyrie reads ` +
      `(model.safetensors or pytorch_model.bin)${has}${more}${advice}`,
  );
}
