/** `eyrie token-map`: the tokens that a corpus has most often, for --token-map. */
import { openModels } from "../../engine/load/load.ts";
import { openText } from "../../engine/load/text.ts";
import { reason, UsageError } from "../../errors.ts";
import { countTokens } from "../../model/checkpoint/frequent_tokens.ts";
import { planShards } from "../../model/files/safetensors_file.ts";
import type { TensorInfo } from "../../model/files/safetensors.ts";
import { percentText } from "../../text/numbers.ts";
import type { TokenMapOptions } from "../options/options.ts";
import type { Io } from "../terminal/io.ts";
import { outputFile } from "../terminal/output_file.ts";
import { warn } from "../terminal/warn.ts";

/** Characters that are encoded at once. */
const PIECE = 1 << 16;

/** Returns the exit code. @param corpus files of text. */
export function runTokenMap(corpus: readonly string[], options: TokenMapOptions, io: Io): number {
  const { model, size, mapFile: output, force, quiet } = options;
  if (output === undefined) {
    throw new UsageError('Cannot run "token-map": --output is missing; a .json or .safetensors');
  }
  if (!/\.(json|safetensors)$/.test(output)) {
    throw new UsageError(`Cannot write "${output}": allowed is .json or .safetensors`);
  }
  const file = outputFile(output, { force, from: corpus });
  using models = openModels({ ...model === undefined ? {} : { model }, draft: "none" });
  const { checkpoint, config: { vocabSize, eosTokenIds } } = models.target;
  if (size > vocabSize) {
    throw new UsageError(
      `Cannot use "--size ${size}": "${checkpoint.name}" has ${vocabSize} tokens; give a smaller --size`,
    );
  }
  const onWarning = (line: string) => warn(line, { io, quiet });
  const { tokenizer } = openText(checkpoint, { vocabSize, onWarning });
  const counts = countTokens(vocabSize);
  let total = 0;
  for (const name of corpus) {
    for (const text of textsOf(name)) {
      for (const piece of pieces(text)) {
        const ids = tokenizer.encode(piece, { addSpecialTokens: false });
        counts.add(ids);
        total += ids.length;
      }
    }
  }
  if (total === 0) {
    throw new UsageError(`Cannot count the tokens of "${corpus.join(", ")}": there is no text`);
  }
  const ids = counts.mostFrequent(size, eosTokenIds);
  file.write(output.endsWith(".json") ? `${JSON.stringify(ids)}\n` : safetensors(ids));
  const covered = percentText(counts.coverage(ids));
  if (!quiet) io.stderr.write(`${output}: ${ids.length} tokens, ${covered} of the corpus\n`);
  return 0;
}

/** The texts of a file: all of it, or every text in the objects of a .jsonl. */
function* textsOf(file: string): Generator<string> {
  const text = readText(file);
  if (!file.endsWith(".jsonl")) return yield text;
  for (const [at, line] of text.split("\n").entries()) {
    if (line.trim() === "") continue;
    try {
      yield* textsIn(JSON.parse(line));
    } catch (error) {
      throw new UsageError(`Cannot read "${file}": line ${at + 1}: ${reason(error)}`, {
        cause: error,
      });
    }
  }
}

function* textsIn(value: unknown): Generator<string> {
  if (typeof value === "string") yield value;
  else if (typeof value === "object" && value !== null) {
    for (const part of Object.values(value)) yield* textsIn(part);
  }
}

function readText(file: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(Deno.readFileSync(file));
  } catch (error) {
    const why = error instanceof TypeError ? "it is not UTF-8" : reason(error);
    throw new UsageError(`Cannot read "${file}": ${why}`, { cause: error });
  }
}

/** Splits a text at line ends, because a tokenizer's time may grow faster than the text. */
function* pieces(text: string): Generator<string> {
  for (let at = 0; at < text.length;) {
    const newline = text.indexOf("\n", at + PIECE);
    const end = newline < 0 ? text.length : newline + 1;
    yield text.slice(at, end);
    at = end;
  }
}

function safetensors(ids: readonly number[]): Uint8Array {
  const data = new Uint8Array(Int32Array.from(ids).buffer);
  const tensor: TensorInfo = {
    name: "token_map",
    dtype: "I32" as const,
    dtypeName: "I32",
    shape: [ids.length],
    file: "",
    begin: 0,
    size: data.length,
  };
  const head = planShards([tensor], Infinity).files[0]?.head ?? new Uint8Array();
  const file = new Uint8Array(head.length + data.length);
  file.set(head);
  file.set(data, head.length);
  return file;
}
