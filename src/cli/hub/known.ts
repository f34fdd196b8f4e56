/** `eyrie models --known`: models of the hub that run, and the memory that they need. */
import { markdownTable } from "markdown-table";
import models from "../../../presets/models.json" with { type: "json" };
import type { Quantization } from "../../gpu/matrix.ts";
import { fieldsOf, parseModelConfig } from "../../model/config/config.ts";
import { sequenceMemory } from "../../engine/load/memory_report.ts";
import type { PaperModels } from "../../engine/load/paper.ts";
import { parameterCount } from "../../model/report/parameters.ts";
import { publishedHead, tensorsAlone } from "../../model/weights/random_checkpoint.ts";
import { draftTensors, targetTensors } from "../../model/weights/tensors.ts";
import { bytesText } from "../../text/numbers.ts";
import { knownPair } from "../open/drafts.ts";
import type { ModelsOptions } from "../options/options.ts";
import type { Machine } from "./verdict.ts";

/** One model of presets/models.json: the fields of its config.json that shapes follow from. */
interface Listed {
  readonly name: string;
  /** Parameters as the hub counts them; the printed sizes are computed from `config`. */
  readonly parameters: number;
  /** The files hold the lm_head of a tied model once more. */
  readonly storesTiedHead?: boolean;
  readonly config: Readonly<Record<string, unknown>>;
}

/** How the target's matrices are kept on the GPU. */
type WeightFormat = "bf16" | Quantization;
const KEPT: readonly WeightFormat[] = ["bf16", "q8", "q4"];

/** Bytes by how matrices are kept. */
type Sizes = Readonly<Record<WeightFormat, number>>;

/** A model, and what it takes. */
export interface KnownModel {
  readonly name: string;
  readonly parameters: number;
  /** Bytes of the tensors in its files. */
  readonly downloadBytes: number;
  /** The draft that `--draft auto` takes. */
  readonly draft: string | undefined;
  /** What that draft is, `EAGLE3`. */
  readonly algorithm: string | undefined;
  /**
   * Bytes on the GPU: weights, keys and values of one sequence of the default context, and working
   * memory; with a known draft its share too.
   */
  readonly memory: Sizes;
}

/** Tokens that published EAGLE-3 heads score. */
const HEAD_TOKENS = 32_000;
const GB = 1e9;
/** Memory of cards that people have, in GB. */
const CARDS = [8, 12, 16, 24, 80];
const LISTED: readonly Listed[] = models;

/** Every model of presets/models.json, from few parameters to many. */
export function knownModels(): KnownModel[] {
  return LISTED.map(knownModel);
}

function knownModel({ name, storesTiedHead = false, config: json }: Listed): KnownModel {
  const config = parseModelConfig(name, json, undefined);
  const specs = targetTensors(config);
  const checkpoint = { name, tensors: tensorsAlone(specs) };
  const pair = knownPair(name, {});
  const draft = pair && headLike({ name, json, algorithm: pair.algorithm });
  const memory = (quantize: Quantization | undefined) =>
    sequenceMemory({ target: { checkpoint, config }, draft }, { quantize }).total;
  const stored = checkpoint.tensors.values().reduce((sum, { size }) => sum + size, 0);
  return {
    name,
    parameters: parameterCount(specs),
    downloadBytes: stored + (storesTiedHead ? 2 * config.vocabSize * config.hiddenSize : 0),
    draft: pair?.draft,
    algorithm: pair?.algorithm,
    memory: { bf16: memory(undefined), q8: memory("q8"), q4: memory("q4") },
  };
}

/** A head of the target's width: a layer as the target's, of Llama's kind, in bf16. */
function headLike(
  { name, json, algorithm }: {
    readonly name: string;
    readonly json: Listed["config"];
    readonly algorithm: string;
  },
): NonNullable<PaperModels["draft"]> {
  const eagle3 = algorithm === "EAGLE3";
  const config = publishedHead(fieldsOf(name, "config.json", {
    ...json,
    model_type: "llama",
    architectures: [eagle3 ? "LlamaForCausalLMEagle3" : "LlamaForCausalLMEagle"],
    ...eagle3 ? { draft_vocab_size: HEAD_TOKENS } : {},
  }));
  const tensors = tensorsAlone(draftTensors(config));
  return { checkpoint: { name, tensors }, config };
}

/** Writes the tables, or with `--json` an object. */
export function runKnownModels(
  { json }: Pick<ModelsOptions, "json">,
  { machine, known, out }: {
    readonly machine: Machine;
    readonly known: readonly KnownModel[];
    readonly out: (text: string) => void;
  },
): void {
  if (!json) return out(knownText(known, machine));
  const listed = known.map((model) => ({
    name: model.name,
    parameters: model.parameters,
    download_bytes: model.downloadBytes,
    memory_bytes: model.memory,
    draft: model.draft ?? null,
    fits: fits(model, machine) ?? null,
  }));
  out(`${JSON.stringify({ machine_bytes: machine.bytes ?? null, models: listed }, null, 2)}\n`);
}

/**
 * The first way of keeping the matrices in which the model fits, `no` where none does; undefined where
 * the memory is not known.
 */
function fits(
  { memory }: KnownModel,
  { adapter, bytes }: Machine,
): WeightFormat | "no" | undefined {
  if (!adapter) return "no";
  if (bytes === undefined) return undefined;
  return KEPT.find((kept) => memory[kept] <= bytes) ?? "no";
}

function fitsText(model: KnownModel, machine: Machine): string {
  if (!machine.adapter) return "no adapter";
  const kept = fits(model, machine);
  if (kept === undefined) return "unknown";
  return kept === "bf16" ? "yes" : kept === "no" ? "no" : `--quantize ${kept}`;
}

function knownText(known: readonly KnownModel[], machine: Machine): string {
  const rows = known.map((model) => [
    model.name,
    ...sizesOf(model),
    fitsText(model, machine),
    model.draft ?? "from the text",
  ]);
  const header = ["NAME", "DOWNLOAD", "BF16", "Q8", "Q4", "FITS HERE", "DRAFT"];
  const has = machine.bytes === undefined
    ? "The memory of this machine's adapter is not known."
    : `The adapter here has ${bytesText(machine.bytes)}.`;
  return [
    ...columns([header, ...rows]),
    "",
    "BF16, Q8 and Q4 are the GPU memory for one sequence: weights, keys and values, the draft.",
    has,
    "",
    ...columns([["CARD", "BF16", "--quantize q8", "--quantize q4"], ...cardRows(known)]),
    "",
    "eyrie run NAME [--quantize q8|q4] downloads a model and its draft, and starts.",
    "",
  ].join("\n");
}

/** The download, and the memory by how matrices are kept. */
function sizesOf({ downloadBytes, memory }: KnownModel): string[] {
  return [downloadBytes, ...KEPT.map((kept) => memory[kept])].map(bytesText);
}

/** For each card and quantization the largest model that fits, of those with a known EAGLE-3 head. */
function cardRows(known: readonly KnownModel[]): string[][] {
  const drafted = known.filter(({ algorithm }) => algorithm === "EAGLE3");
  return CARDS.map((card) => [
    `${card} GB`,
    ...KEPT.map((kept) => drafted.findLast(({ memory }) => memory[kept] <= card * GB)?.name ?? ""),
  ]);
}

function columns(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, at) =>
    Math.max(...rows.map((row) => row[at]?.length ?? 0))
  );
  return rows.map((row) =>
    row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join("  ").trimEnd()
  );
}

/** Both tables for the pages: `<!-- models -->` to `<!-- /models -->` of README.md. */
export function knownMarkdown(known: readonly KnownModel[]): string {
  const code = (text: string) => text === "" ? "" : `\`${text}\``;
  const cards = cardRows(known).map(([card = "", ...names]) => [card, ...names.map(code)]);
  const rows = known.map((model) => [
    code(model.name),
    ...sizesOf(model),
    model.draft === undefined ? "from the text" : code(model.draft),
  ]);
  const right = { align: ["l", "r", "r", "r", "r", "l"] };
  return [
    markdownTable([["card", "as it is", "`--quantize q8`", "`--quantize q4`"], ...cards]),
    "",
    markdownTable([["model", "download", "bf16", "q8", "q4", "draft"], ...rows], right),
  ].join("\n");
}
