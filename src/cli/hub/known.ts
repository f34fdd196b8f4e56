/** `eyrie models --known`: models of the hub that run, and the memory that they need. */
import { markdownTable } from "markdown-table";
import sizes from "../../../presets/model_sizes.json" with { type: "json" };
import models from "../../../presets/models.json" with { type: "json" };
import type { Quantization } from "../../gpu/weight_format.ts";
import { type Column, fittedTable, words, wrapped } from "../../measure/table.ts";
import { bytesText } from "../../text/numbers.ts";
import { knownPair } from "../open/drafts.ts";
import type { ModelsOptions } from "../options/options.ts";
import { aligned } from "../terminal/aligned.ts";
import type { Machine } from "./verdict.ts";

/** What the list says of a model in presets/models.json. */
interface Listed {
  readonly name: string;
  /** A later model of about its size does more. */
  readonly earlier?: boolean;
  /** Its files have a layer that `--drafter NEXTN` drafts with. */
  readonly nextn?: boolean;
}

/** How the target's matrices are kept on the GPU; `bf16` is as they are in the file. */
type WeightFormat = "bf16" | Quantization;
const KEPT: readonly WeightFormat[] = ["bf16", "q8", "q4"];

/** Bytes by how matrices are kept. */
type Sizes = Readonly<Record<WeightFormat, number>>;

/**
 * What tools/model_sizes.ts computes for a model. `download` is the bytes of the tensors in its files. The formats'
 * sizes are bytes on the GPU: weights, keys and values of one sequence of the default context, and working memory,
 * including those of a known draft.
 */
export interface ModelSizes extends Sizes {
  readonly parameters: number;
  readonly download: number;
}

/** A model, and what it takes. */
export interface KnownModel extends Listed {
  readonly sizes: ModelSizes;
  /** The draft that `--draft auto` takes. */
  readonly draft: string | undefined;
  /** What that draft is, `EAGLE3`. */
  readonly algorithm: string | undefined;
}

const GB = 1e9;
/** A model that `--quantize` makes no smaller than this is published in 4 bits. */
const LESS = 0.75;
/** Memory of cards that people have, in GB. */
const CARDS = [8, 12, 16, 24, 80];
const LISTED: readonly Listed[] = models;
const SIZES: Readonly<Record<string, ModelSizes>> = sizes;

/** Every model of presets/models.json, current ones first, each part from few parameters to many. */
export function knownModels(): KnownModel[] {
  return LISTED.map(({ name, earlier = false, nextn = false }) => {
    const own = SIZES[name];
    if (own === undefined) throw new Error(`presets/model_sizes.json lacks ${name}`);
    const pair = knownPair(name, {});
    return { name, earlier, nextn, sizes: own, draft: pair?.draft, algorithm: pair?.algorithm };
  });
}

/** What drafts for the model: a known head, else the text itself, or its own NextN layer. */
function drafts({ draft, nextn }: KnownModel, code = (text: string) => text): string {
  const first = draft === undefined ? "from the text" : code(draft);
  return nextn ? `${first}, or ${code("--drafter NEXTN")}` : first;
}

/** Writes the tables, or with `--json` an object. */
export function runKnownModels(
  { json }: Pick<ModelsOptions, "json">,
  { machine, known, out, columns = Infinity }: {
    readonly machine: Machine;
    readonly known: readonly KnownModel[];
    readonly out: (text: string) => void;
    /** The terminal's width; absent: it is no terminal. */
    readonly columns?: number;
  },
): void {
  if (!json) return out(knownText(known, machine, columns));
  const listed = known.map((model) => ({
    name: model.name,
    parameters: model.sizes.parameters,
    download_bytes: model.sizes.download,
    memory_bytes: Object.fromEntries(KEPT.map((kept) => [kept, model.sizes[kept]])),
    draft: model.draft ?? null,
    nextn: model.nextn,
    earlier: model.earlier,
    fits: fits(model, machine) ?? null,
  }));
  out(`${JSON.stringify({ machine_bytes: machine.bytes ?? null, models: listed }, null, 2)}\n`);
}

/**
 * The first way of keeping the matrices in which the model fits, `no` where none does; undefined where
 * the memory is not known.
 */
function fits(
  { sizes }: KnownModel,
  { adapter, bytes }: Machine,
): WeightFormat | "no" | undefined {
  if (!adapter) return "no";
  if (bytes === undefined) return undefined;
  return KEPT.find((kept) => sizes[kept] <= bytes) ?? "no";
}

function fitsText(model: KnownModel, machine: Machine): string {
  if (!machine.adapter) return "no adapter";
  const kept = fits(model, machine);
  if (kept === undefined) return "unknown";
  return kept === "bf16" ? "yes" : kept === "no" ? "no" : `--quantize ${kept}`;
}

function knownText(known: readonly KnownModel[], machine: Machine, width: number): string {
  const columns: readonly Column<KnownModel>[] = [
    words("NAME", ({ name }) => name),
    words("DOWNLOAD", ({ sizes }) => bytesText(sizes.download)),
    ...KEPT.map((kept) =>
      words<KnownModel>(kept.toUpperCase(), ({ sizes }) => bytesText(sizes[kept]))
    ),
    words("FITS", (model) => fitsText(model, machine)),
    words("DRAFT", (model) => drafts(model)),
  ];
  const [, download, bf16, q8, q4, , draft] = columns;
  const dropped = [draft, q8, q4, bf16, download].filter((column) => column !== undefined);
  const table = fittedTable(columns, known, { width, dropped });
  const cards = [["CARD", "BF16", "--quantize q8", "--quantize q4"], ...cardRows(known)];
  const has = machine.bytes === undefined
    ? "The memory of this machine's adapter is not known."
    : `The adapter here has ${bytesText(machine.bytes)}.`;
  const texts = (line: string) => wrapped(line, width);
  const shown = (table[0] ?? "").split(/ +/);
  const formats = KEPT.map((kept) => kept.toUpperCase()).filter((kept) => shown.includes(kept));
  return [
    ...table,
    "",
    ...formats.length === 0 ? [] : texts(
      `${formats.join(", ")}: GPU memory for one sequence, of weights, keys and values, the draft.`,
    ),
    ...texts(has),
    ...shown.includes("DRAFT") ? [] : texts("A wider terminal, or --json, shows more columns."),
    "",
    aligned(cards),
    "",
    ...texts("eyrie run NAME [--quantize q8|q4] downloads a model and its draft, and starts."),
    "",
  ].join("\n");
}

/** The download, and the memory by how matrices are kept. */
function sizesOf({ sizes }: KnownModel): string[] {
  return [sizes.download, ...KEPT.map((kept) => sizes[kept])].map(bytesText);
}

/**
 * For each card and quantization the largest current model that fits. Models with an EAGLE-3 head or a NextN layer
 * come first; others are taken only where none of them fits.
 */
function cardRows(known: readonly KnownModel[]): string[][] {
  const current = known.filter(({ earlier }) => !earlier);
  const drafted = current.filter(isDrafted);
  return CARDS.map((card) => [
    `${card} GB`,
    ...KEPT.map((kept) => {
      const fit = ({ sizes }: KnownModel) =>
        sizes[kept] <= card * GB && (kept === "bf16" || sizes[kept] < LESS * sizes.bf16);
      return (drafted.findLast(fit) ?? current.findLast(fit))?.name ?? "";
    }),
  ]);
}

/** Is there a head or a layer that was trained to draft for it? */
function isDrafted({ algorithm, nextn }: KnownModel): boolean {
  return nextn === true || algorithm === "EAGLE3";
}

/**
 * Both tables for the pages, the second of current models with a draft: `<!-- models -->` to `<!-- /models -->` of
 * README.md.
 */
export function knownMarkdown(known: readonly KnownModel[]): string {
  const code = (text: string) => text === "" ? "" : `\`${text}\``;
  const cards = cardRows(known).map(([card = "", ...names]) => [card, ...names.map(code)]);
  const rows = known.filter((model) => !model.earlier && isDrafted(model)).map((model) => [
    code(model.name),
    ...sizesOf(model),
    drafts(model, code),
  ]);
  const right = { align: ["l", "r", "r", "r", "r", "l"] };
  return [
    markdownTable([["card", "as it is", "`--quantize q8`", "`--quantize q4`"], ...cards]),
    "",
    markdownTable([["model", "download", "bf16", "q8", "q4", "draft"], ...rows], right),
  ].join("\n");
}
