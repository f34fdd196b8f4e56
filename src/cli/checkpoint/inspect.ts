/** `eyrie inspect`: what a checkpoint is and whether draft and target fit. Needs no GPU. */
import type { KvDtype } from "../../gpu/kv.ts";
import type { Quantization } from "../../gpu/weight_format.ts";
import { bytesText as bytes } from "../../text/numbers.ts";
import { openCheckpoint } from "../../model/checkpoint/checkpoint.ts";
import type { Checkpoint } from "../../model/files/checkpoint_type.ts";
import { parseModelConfig } from "../../model/config/config.ts";
import {
  type GenerationDefaults,
  generationDefaults,
  generationText,
} from "../../model/config/generation_config.ts";
import type { ModelConfig } from "../../model/config/types.ts";
import { parseAnyDraft } from "../../model/weights/any_draft.ts";
import { openEmbedded } from "../../model/checkpoint/embedded.ts";
import { checkQuantize } from "../../model/config/quantize_choice.ts";
import {
  type DraftReport,
  type Inspected,
  type InspectedDraft,
  inspectReport,
  type ModelReport,
  type PartReport,
  type QuantizeReport,
  type TensorTotal,
} from "../../model/report/report.ts";
import type {
  ExpertReport,
  LayerKind,
  LayerSet,
  NextnReport,
  RopeReport,
} from "../../model/report/layer_report.ts";
import { openOwn } from "../../engine/load/load.ts";
import { allMemory } from "../../engine/load/memory_report.ts";
import { tokenMisfit } from "../../model/checkpoint/same_tokens.ts";
import { checkDraft, checkTarget, refuseHead } from "../../model/weights/tensors.ts";

/** The command's options. */
export interface InspectOptions {
  /** Folder of the target; without it the embedded one. */
  readonly model?: string | undefined;
  /** Folder whose tensors are read where the target's lacks them. */
  readonly donor?: string | undefined;
  /** Folder of the draft, or `none`; without it EAGLE-3 for the embedded target, else none. */
  readonly draft?: string | undefined;
  /** Instead of what the draft's config.json says. */
  readonly draftRopeTheta?: number | undefined;
  /** What the target's matrices become at load. */
  readonly quantize?: Quantization | undefined;
  /** The draft's too. */
  readonly quantizeDraft?: boolean;
  /** How keys and values are kept; absent = f32. */
  readonly kvDtype?: KvDtype | undefined;
  readonly json: boolean;
}

const LABEL_WIDTH = 14;

const KINDS: Readonly<Record<LayerKind["kind"], string>> = {
  attention: "attention",
  latent_attention: "latent attention (MLA)",
  gated_deltanet: "Gated DeltaNet",
  short_convolution: "short convolution",
};

/**
 * Reads headers, configs and what `withHeadOfFile` compares, and writes the report to `out`, each
 * text with its line end.
 * @throws UsageError when a checkpoint cannot be used; a misfit of the two is part of the report.
 */
export function runInspect(options: InspectOptions, out: (text: string) => void): void {
  checkQuantize(options);
  const { quantize, quantizeDraft } = options;
  using targetFiles = options.model === undefined
    ? openEmbedded("target")
    : openOwn(options.model, options.donor);
  using draftFiles = openDraft(options);
  const target = inspectTarget(targetFiles);
  const draft = draftFiles && inspectDraft(draftFiles, target, options.draftRopeTheta);
  const report = inspectReport(
    { ...target, quantize },
    draft && { ...draft, quantize: quantizeDraft ? quantize : undefined },
    allMemory({ target, draft: draft ?? undefined }, options),
  );
  const generation = generationDefaults(targetFiles.json("generation_config.json"));
  out(
    options.json
      ? `${JSON.stringify(inspectJson(report, generation), null, 2)}\n`
      : renderInspect(report, generation),
  );
}

/** The report for people: one fact a line. */
function renderInspect(report: ModelReport, generation: GenerationDefaults): string {
  const { target, draft, memory } = report;
  const context = `${count(memory.context)} tokens`;
  const lines = [
    ...partLines("target", target),
    ...target.nextn ? [line("nextn", nextn(target.nextn))] : [],
    line("sampling", generationText(generation) ?? "generation_config.json says nothing"),
    "",
    ...draft ? [...partLines("draft", draft), ...draftLines(draft)] : ["draft         none"],
    "",
    line("memory", `${bytes(memory.totalBytes)} for one sequence of ${context}`),
    line("", `${bytes(memory.weightBytes)} weights`),
    line("", `${bytes(memory.kvBytesPerToken)} keys and values a token, ${memory.kvDtype}`),
    ...memory.windowBytes > 0
      ? [line("", `${bytes(memory.windowBytes)} keys and values of windows of a sequence`)]
      : [],
    ...memory.stateBytes > 0
      ? [line("", `${bytes(memory.stateBytes)} state of fixed size of a sequence, f32`)]
      : [],
    line(
      "",
      `${bytes(memory.scratchBytes)} scratch (a prefill chunk of ${memory.scratchRows} rows)`,
    ),
    ...memory.tiers.map(({ numSteps, bytes: size }, i) =>
      line(
        i === 0 ? "tiers" : "",
        `${bytes(size)} for draft steps ${numSteps} at batch ${memory.tierBatch}`,
      )
    ),
    line("fit", draft === null ? "no draft" : draft.misfit ?? "draft and target fit together"),
    ...[...target.warnings, ...draft?.warnings ?? []].map((text) => line("warning", text)),
  ];
  return `${lines.join("\n")}\n`;
}

/** The report for programs: the same facts, keys in snake_case as in every `--json` of Eyrie. */
function inspectJson(
  report: ModelReport,
  generation: GenerationDefaults,
): Record<string, unknown> {
  return snakeKeys({ ...report, generation }) as Record<string, unknown>;
}

function openDraft(options: InspectOptions): Checkpoint | null {
  if (options.draft === "none") return null;
  if (options.draft !== undefined) return openCheckpoint(options.draft);
  return options.model === undefined ? openEmbedded("eagle3") : null;
}

function inspectTarget(
  checkpoint: Checkpoint,
): Inspected<ModelConfig> & { readonly checkpoint: Checkpoint } {
  refuseHead(checkpoint);
  const generation = checkpoint.json("generation_config.json");
  const config = parseModelConfig(checkpoint.name, checkpoint.json("config.json"), generation);
  const warnings = checkTarget(checkpoint, config);
  generationDefaults(generation, (line) => warnings.push(line));
  return { checkpoint, config, warnings };
}

function inspectDraft(
  checkpoint: Checkpoint,
  target: ReturnType<typeof inspectTarget>,
  draftRopeTheta: number | undefined,
): InspectedDraft {
  const config = parseAnyDraft(checkpoint, target.config, { draftRopeTheta });
  const warnings = checkDraft(checkpoint, config);
  const vocabularyMisfit = tokenMisfit(target, { checkpoint, config });
  return { checkpoint, config, warnings, vocabularyMisfit };
}

function partLines(label: string, part: PartReport): string[] {
  const kept = part.latent
    ? `latents of ${part.latent.rank} + ${part.latent.ropeDim}`
    : `${part.kvHeads} key/value`;
  const heads = `${part.heads} query, ${kept}, ${part.headDim} wide`;
  const mlp = part.intermediateSize === null ? "" : `, mlp ${part.intermediateSize}`;
  const active = part.activeParameters < part.parameters
    ? `, ${count(part.activeParameters)} active`
    : "";
  const marks = [
    part.tied ? "tied lm_head" : "",
    part.qkNorm === "none" ? "" : "q and k normed",
    part.outputGate ? "output gate" : "",
    part.attentionSinks ? "attention sinks" : "",
  ];
  const kinds = part.layerKinds.map(({ kind, layers }) => `${layers} ${KINDS[kind]}`).join(", ");
  const allAttention = part.layerKinds.every(({ kind }) => kind === "attention");
  const windowed = { layers: part.windowLayers, indices: part.windowIndices };
  return [
    line(label, `${part.name} (${part.architecture})`),
    line("parameters", `${count(part.parameters)}${active}`),
    line("dtypes", part.dtypes.map(total).join(", ")),
    ...part.method === null ? [] : [line("checkpoint", `${part.method}, sizes as on the GPU`)],
    ...part.quantized ? [line("quantized", quantized(part.quantized))] : [],
    line("layers", `${part.layers}, hidden ${part.hiddenSize}${mlp}`),
    ...allAttention ? [] : [line("", kinds)],
    ...part.perLayerEmbeddingWidth === null
      ? []
      : [line("", `per-layer embeddings ${part.perLayerEmbeddingWidth} wide`)],
    ...part.experts ? [line("experts", experts(part.experts))] : [],
    line("heads", [heads, ...marks.filter((mark) => mark !== "")].join(", ")),
    ...part.otherHeads.map(({ layers, heads, kvHeads, headDim }) =>
      line("", `in ${layerCount(layers)} ${heads} query, ${kvHeads} key/value, ${headDim} wide`)
    ),
    ...part.sharingLayers > 0
      ? [line("", `${part.sharingLayers} layers read keys and values of others`)]
      : [],
    line("vocabulary", count(part.vocabSize)),
    line("context", `${count(part.context)} tokens`),
    ...part.window === null ? [] : [
      line("window", `${count(part.window)} tokens in ${where(windowed, part.layers)}`),
    ],
    ...part.ropes.map((each, index) => {
      const layers = part.ropes.length > 1 ? `, in ${where(each, part.layers)}` : "";
      return line(index === 0 ? "rope" : "", `${rope(each)}${layers}`);
    }),
    ...part.files.map((file, index) => line(index === 0 ? "files" : "", total(file))),
  ];
}

function experts({ layers, count: all, chosen, ...sizes }: ExpertReport): string {
  const { intermediateSize, sharedIntermediateSize: shared } = sizes;
  const beside = shared === null ? "" : ` and one shared ${shared} wide`;
  return `${chosen} of ${all}, ${intermediateSize} wide,${beside} in ${layerCount(layers)}`;
}

function nextn({ layers, inCheckpoint }: NextnReport): string {
  const stored = inCheckpoint ? "in the checkpoint" : "not in the checkpoint";
  return `${layerCount(layers)} for multi-token prediction (MTP), ${stored}`;
}

function layerCount(layers: number): string {
  return `${layers} ${layers === 1 ? "layer" : "layers"}`;
}

/** How many of `all` layers, and which. Where most are in the set, the missing ones are listed: that is shorter. */
function where({ layers, indices }: LayerSet, all: number): string {
  if (layers === all) return layerCount(layers);
  const others = Array.from({ length: all }, (_, i) => i).filter((i) => !indices.includes(i));
  const noun = others.length === 1 ? "layer" : "layers";
  const which = others.length < layers ? `all but ${noun} ${listed(others)}` : listed(indices);
  return `${layerCount(layers)} (${which})`;
}

/** Numbers with commas. Of many in equal steps only the first two and the last: models have up to 100 layers. */
function listed(numbers: readonly number[]): string {
  const [first = 0, second = 0] = numbers;
  const equalSteps = numbers.every((number, i) => number === first + i * (second - first));
  return numbers.length > 4 && equalSteps
    ? `${first}, ${second}, ..., ${numbers.at(-1)}`
    : numbers.join(", ");
}

function draftLines(draft: DraftReport): string[] {
  const head = draft.ownHead
    ? `its own over ${count(draft.draftVocabSize)} tokens`
    : "the target's";
  return [
    line("algorithm", draft.algorithm),
    ...draft.auxLayers.length > 0
      ? [line("reads", `the inputs of target layers ${draft.auxLayers.join(", ")}`)]
      : [],
    line("embedding", draft.ownEmbedding ? "its own" : "the target's"),
    line("lm_head", head),
  ];
}

function line(label: string, text: string): string {
  return `${label.padEnd(LABEL_WIDTH)}${text}`;
}

function total({ name, tensors, bytes: size }: TensorTotal): string {
  return `${name} (${tensors} ${tensors === 1 ? "tensor" : "tensors"}, ${bytes(size)})`;
}

function quantized({ to, matrices, kept, already }: QuantizeReport): string {
  const narrow = kept > 0 ? `; ${kept} stay: they are no multiple of 64 wide` : "";
  const done = already > 0 ? `; ${already} stay: they are quantized already` : "";
  return `${matrices} matrices to ${to}${narrow}${done}`;
}

function rope({ theta, scaling: { kind, ...scaling } }: RopeReport): string {
  if (kind === "none") return "none";
  const words = Object.entries(scaling).filter(([, value]) => !Array.isArray(value))
    .map(([key, value]) =>
      `${key.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)} ${value}`
    );
  return [`theta ${theta}`, ...kind === "default" ? [] : [kind, ...words]].join(", ");
}

function count(number: number): string {
  return number.toLocaleString("en-US");
}

function snakeKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(snakeKeys);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      snakeKeys(inner),
    ]),
  );
}
