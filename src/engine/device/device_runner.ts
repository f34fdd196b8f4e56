import type { Gpu } from "../../gpu/device.ts";
import { type CreationCounts, submit } from "../../gpu/program.ts";
import { hasState } from "../../model/config/layer_config.ts";
import { MAX_STOPS, PAGE } from "../../model/device_layout.ts";
import type { AcceptThresholds } from "../../speculate/accept_thresholds.ts";
import type { Sampling } from "../../speculate/sampling.ts";
import type { DraftShape } from "../../speculate/round_shape.ts";
import {
  type EngineSizes,
  maxResultWords,
  type RoundBuffers,
  roundBuffers,
  tablePages,
} from "./buffers.ts";
import {
  kindFor,
  openSamplingKinds,
  PLAIN_SAMPLING,
  type SamplingKind,
  type SamplingKinds,
} from "./choice/choice.ts";
import { type Inputs, openInputs } from "./inputs.ts";
import { lagGroups } from "./draft_lag.ts";
import { maxLogprobs } from "./choice/logprobs.ts";
import { openRelaxed } from "./choice/relax.ts";
import { maskedRound } from "./choice/masked_round.ts";
import type { KeptStates } from "./kept_states.ts";
import { type LoadedWeights, type Models, prepareModels, type PromptTarget } from "./models.ts";
import { type PagePool, pagePool } from "./pages.ts";
import { packing } from "./packed/packing.ts";
import { batchBucket } from "./buckets.ts";
import { promptResults } from "./prompt_results.ts";
import { promptRows, promptRun } from "./prompt_rows.ts";
import {
  enginePrograms,
  type Programs,
  type PromptPrograms,
  type PromptSpec,
  withoutDraft,
} from "./programs.ts";
import { type ElasticMemory, elasticMemory } from "./elastic/elastic_memory.ts";
import { type RoundLayout, type RoundResult, roundResult } from "./round_result.ts";
import { maxCells, rewind, type Sequence, slotOf, storesAnswer } from "./sequence.ts";
import { throwDeviceErrors } from "./event_loop.ts";
import { promptWorks } from "./submit/prompt_work.ts";
import { type WindowPages, windowPages } from "./window_pages.ts";
import { openSubmitter, type RunResult, type Submitter } from "./submit/submit.ts";
import { type CompileProgress, type FirstRuns, firstRuns } from "./first_runs.ts";
import { runPacked, runPrompts, runTiers, type WarmUp } from "./warm_up.ts";
import type {
  DraftKind,
  FirstToken,
  PromptChunk,
  RoundRequest,
  Runner,
  SubmittedRounds,
  TextEnds,
} from "./runner.ts";

export async function openRunner(
  gpu: Gpu,
  loaded: LoadedWeights,
  capacity: EngineSizes,
  {
    profile = false,
    acceptance,
    thresholds,
    messageWaits,
    meanwhile,
    promptTarget,
    onCompile = () => {},
  }: {
    readonly profile?: boolean;
    readonly messageWaits?: () => boolean;
    /** What the host does while the device works. */
    readonly meanwhile?: (() => void) | undefined;
    /** Probabilities to draw accepted counts with, instead of verifying: for timing. */
    readonly acceptance?: readonly number[];
    /** Thresholds of relaxed acceptance; absent: acceptance is lossless. */
    readonly thresholds?: AcceptThresholds | undefined;
    readonly promptTarget?: PromptTarget | undefined;
    /** Called while `warmUp` and `warmUpPacked` run kernels for the first time. */
    readonly onCompile?: (progress: CompileProgress) => void;
  } = {},
): Promise<Runner> {
  const buffers = roundBuffers(gpu, capacity);
  const models = prepareModels(gpu, loaded, capacity, buffers, promptTarget);
  // Reports a failed allocation before the buffer is used.
  await throwDeviceErrors(gpu);
  const choice = openSamplingKinds(gpu, models.target, capacity);
  const relaxed = thresholds && openRelaxed(gpu, thresholds, capacity);
  const programs = enginePrograms(gpu, {
    models,
    buffers,
    choice,
    capacity,
    acceptance,
    relaxed,
  });
  const words = maxResultWords(capacity);
  const submitter = await openSubmitter(gpu, buffers.results.buffer, {
    words,
    profile,
    meanwhile,
    ...messageWaits ? { messageWaits } : {},
  });
  return new DeviceRunner({
    gpu,
    models,
    capacity,
    buffers,
    choice,
    programs,
    submitter,
    profile,
    onCompile,
  });
}

interface Parts {
  readonly gpu: Gpu;
  readonly models: Models;
  readonly capacity: EngineSizes;
  readonly buffers: RoundBuffers;
  readonly choice: SamplingKinds;
  readonly programs: Programs;
  readonly submitter: Submitter;
  readonly profile: boolean;
  readonly onCompile: (progress: CompileProgress) => void;
}

/**
 * Whether chunks are of answers, which the kernels of rounds store.
 *
 * @throws Error where other chunks or parts of chunks are of prompts.
 */
function areOfAnswers(chunks: readonly PromptChunk[]): boolean {
  const answers = chunks.filter(({ sequence }) => storesAnswer(sequence));
  const isCut = ({ sequence: { promptTokens = Infinity }, to }: PromptChunk) => to > promptTokens;
  if (answers.length !== chunks.filter(isCut).length) {
    throw new Error("a chunk has tokens of a prompt and of an answer");
  }
  if (answers.length === 0) return false;
  if (answers.length < chunks.length) throw new Error("a forward of prompts and of answers");
  return true;
}

class DeviceRunner implements Runner {
  readonly gpu: Gpu;
  readonly models: Models;
  readonly capacity: EngineSizes;
  readonly programs: Programs;
  readonly ranks: boolean;
  readonly overlaps: boolean;
  readonly elastic: ElasticMemory | undefined;
  readonly #withoutDraft = withoutDraft();
  readonly #prompts = promptWorks();
  readonly #device: Pick<Parts, "gpu" | "submitter" | "profile" | "buffers" | "capacity">;
  readonly #submitter: Submitter;
  readonly #firsts: FirstRuns;
  readonly #onCompile: (progress: CompileProgress) => void;
  /** Milliseconds in which programs of prompts were made. */
  #makingMs = 0;
  readonly pool: PagePool;
  /** Slots that no sequence has; the last is given next. */
  readonly #free: number[];
  readonly #inputs: Inputs;
  readonly #choice: SamplingKinds;
  /** Pages of the layers with windows, if these have rings of pages. */
  readonly #windows: WindowPages | undefined;
  /** By slot: the tokens after which the device stops the sequence. */
  readonly #ends: TextEnds[] = [];
  constructor(parts: Parts) {
    const { gpu, models, capacity, buffers, choice, programs, submitter, profile } = parts;
    this.gpu = gpu;
    this.models = models;
    this.capacity = capacity;
    this.programs = programs;
    this.ranks = programs.ranks;
    // In Deno's own WebGPU, reading any buffer waits for everything that was submitted.
    this.overlaps = gpu.info.webgpu === "dawn";
    this.#submitter = submitter;
    this.#firsts = firstRuns(submitter);
    this.#onCompile = parts.onCompile;
    this.pool = pagePool(capacity.pages);
    this.#free = Array.from({ length: capacity.batch }, (_, i) => capacity.batch - 1 - i);
    this.#inputs = openInputs(gpu, buffers, capacity);
    this.#device = { gpu, submitter, profile, buffers, capacity };
    this.#choice = choice;
    const { windows } = models;
    this.#windows = windows.length > 0 ? windowPages(gpu, windows, capacity) : undefined;
    this.elastic = models.elastic && elasticMemory(gpu, models.elastic, {
      pages: capacity.pages,
      replace: (from, to) => {
        submitter.forget();
        programs.replace(from, to);
      },
    });
  }

  /** Whether there is a draft and it is on the GPU. */
  get #drafts(): boolean {
    return this.draft !== "none" && !this.elastic?.away;
  }

  get promptKernels(): boolean {
    const { target, promptTarget } = this.models;
    return promptTarget !== target;
  }

  get recurrent(): boolean {
    return hasState(this.models.target.config);
  }

  get states(): KeptStates | undefined {
    return this.models.kept ?? this.#windows;
  }

  get compileMs(): number {
    return this.#firsts.ms + this.#makingMs;
  }

  get created(): Readonly<CreationCounts> {
    return this.programs.created;
  }

  get draft(): DraftKind {
    const { draft, standalone } = this.models;
    if (standalone) return "catches up";
    return draft === undefined ? "none" : draft.store === undefined ? "always" : "catches up";
  }

  openSlot(sequence: Sequence): boolean {
    const slot = this.#free.pop();
    if (slot === undefined) return false;
    sequence.slot = slot;
    this.#inputs.writePages(sequence, 0);
    this.#windows?.open(sequence);
    return true;
  }

  closeSlot(sequence: Sequence): void {
    this.#windows?.close(sequence);
    this.#free.push(slotOf(sequence));
    this.#choice.setPenalties(slotOf(sequence));
    sequence.slot = undefined;
    this.pool.release(sequence.pages.splice(0));
    rewind(sequence, 0);
  }

  async warmUp(
    shapes: readonly DraftShape[],
    proposed?: boolean,
    beside?: readonly DraftShape[],
  ): Promise<void> {
    this.#inputs.setBatch([]);
    await runTiers(this.#warm, shapes, { proposed, beside });
  }

  async warmUpPrompts(): Promise<void> {
    this.#inputs.setBatch([]);
    await runPrompts(this.#warm);
  }

  async warmUpPacked(shapes: readonly DraftShape[]): Promise<void> {
    if (!this.programs.packs) return;
    this.#inputs.setBatch([]);
    await runPacked(this.#warm, shapes);
  }

  get #warm(): WarmUp {
    const { gpu, programs, capacity: { batch } } = this;
    const [firsts, onCompile] = [this.#firsts, this.#onCompile];
    const run = promptRun(this.capacity);
    return { gpu, programs, submitter: this.#submitter, batch, run, firsts, onCompile };
  }

  reserve(sequence: Sequence, cells: number): boolean {
    const { pages } = sequence;
    const missing = Math.ceil(cells / PAGE) - pages.length;
    if (missing <= 0) return true;
    const most = tablePages(this.capacity);
    if (pages.length + missing > most) {
      throw new Error(`a sequence holds ${most * PAGE} cells, not ${cells}`);
    }
    if (missing > this.pool.free) return false;
    const first = pages.length;
    for (let i = 0; i < missing; i++) pages.push(this.pool.take() as number);
    this.#inputs.writePages(sequence, first);
    return true;
  }

  setPages(sequence: Sequence, pages: readonly number[]): void {
    if (pages.every((page, i) => page === sequence.pages[i])) return;
    sequence.pages.splice(0, pages.length, ...pages);
    this.#inputs.writePages(sequence, 0);
  }

  setSampling(
    sequence: Sequence,
    sampling: Sampling,
    ends: TextEnds = {},
    promptTokens = Infinity,
  ): void {
    this.#inputs.writeSampling(sequence, sampling, ends);
    this.#ends[slotOf(sequence)] = ends;
    this.#choice.setPenalties(slotOf(sequence), sampling, promptTokens);
    this.#choice.setDraws(slotOf(sequence), sampling.temperature > 0);
  }

  async prefill(
    chunks: readonly PromptChunk[],
    onCompile: (progress: CompileProgress) => void = () => {},
    whileRunning: () => Promise<void> = () => Promise.resolve(),
  ): Promise<(FirstToken | undefined)[]> {
    const sequences = chunks.map(({ sequence }) => sequence);
    const ending = chunks.filter(({ sequence, to }) => to === sequence.ids.length);
    const ended = ending.map(({ sequence }) => sequence);
    const heads = ended.length === 0 ? 0 : batchBucket(ended.length, this.capacity.batch);
    const tokens = chunks.map(({ sequence, to }) => to - sequence.stored);
    const rows = promptRows(tokens, promptRun(this.capacity));
    const kind = heads === 0 ? PLAIN_SAMPLING : this.#kind(ended, {
      mask: ending.find(({ mask }) => mask)?.mask,
      logprobs: maxLogprobs(ending),
    });
    const programs = await this.#promptsOf({
      rows: rows.count,
      perSlot: rows.perSlot,
      heads: Math.max(1, heads),
      choice: kind,
      answers: areOfAnswers(chunks),
      cells: maxCells(sequences),
    });
    const drafts = this.#drafts;
    const read = this.#choice.read(kind, heads);
    const work = this.#prompts(programs, { rows: rows.count, heads, drafts, ...read });
    if (this.#firsts.missing(work.programs) > 0) {
      this.#inputs.writeNoPrompts(rows.count, heads);
      await this.#firsts.run(work.programs, onCompile);
    }
    if (kind.masked) this.#choice.setRowMasks(ending.map(({ mask }) => mask));
    if (kind.penalized) {
      for (const sequence of ended) this.#choice.setCounts(slotOf(sequence), sequence.ids);
    }
    this.#windows?.store(chunks);
    this.#inputs.writePrompts(chunks, rows, heads);
    const submitted = await this.#submitter.repeat(work, 1);
    for (const { sequence, to } of chunks) {
      if (drafts && sequence.draftStored === sequence.stored) sequence.draftStored = to;
      sequence.stored = to;
    }
    if (this.overlaps) await whileRunning();
    const [ran] = await submitted.read();
    const results = promptResults(ran as RunResult, kind.logprobs);
    return chunks.map(({ sequence, to }) => {
      if (to < sequence.ids.length) return undefined;
      const token = results.next().value as FirstToken;
      sequence.ids.push(token.id);
      return token;
    });
  }

  /** The programs of a forward of prompts; the time for making them counts as compile time, not as the prompts'. */
  async #promptsOf(of: PromptSpec & { readonly cells: number }): Promise<PromptPrograms> {
    const { pipelines } = this.created;
    const began = performance.now();
    const programs = await this.programs.prompt(of);
    if (this.created.pipelines > pipelines) this.#makingMs += performance.now() - began;
    return programs;
  }

  /** The kind of sampling that these sequences need. */
  #kind(
    sequences: readonly Sequence[],
    asked: { readonly mask: unknown; readonly logprobs: number | undefined },
  ): SamplingKind {
    return kindFor(this.#choice, sequences.map(slotOf), asked);
  }

  async catchUp(sequences: readonly Sequence[], chunks = Infinity): Promise<void> {
    for (const group of lagGroups(sequences, this.capacity.prefillRows).slice(0, chunks)) {
      const rows = group.reduce((sum, { from, to }) => sum + to - from, 0);
      const most = maxCells(group.map(({ sequence }) => sequence));
      const { body, head } = await this.programs.catchUp(rows, group.length, most);
      this.#inputs.writeLags(group);
      await this.#submitter.run({ programs: [body, head], words: 0 });
      for (const { sequence, to } of group) sequence.draftStored = to;
    }
  }

  async rounds(sequences: readonly Sequence[], asked: RoundRequest): Promise<RoundResult[]> {
    return await (await this.begin(sequences, asked)).results();
  }

  async begin(sequences: readonly Sequence[], asked: RoundRequest): Promise<SubmittedRounds> {
    const { shape, count, proposals, deviceDepth = 0, maskFor, logprobs } = asked;
    const cells = maxCells(sequences);
    const proposed = proposals !== undefined;
    const choice = this.#kind(sequences, { mask: maskFor, logprobs });
    if ((proposed || choice.masked) && count !== 1) {
      throw new Error(`${count} rounds of the same proposals`);
    }
    const batch = sequences.length;
    const bucket = batchBucket(batch, this.capacity.batch);
    const packed = packing(asked, { batch, bucket, choice, rounds: this.programs });
    const whole = await this.programs.round({
      ...shape,
      batch,
      proposed,
      choice,
      cells,
      packed: packed.packed,
      allocates: packed.budget !== undefined,
    });
    const work = this.elastic?.away ? this.#withoutDraft(whole) : whole;
    const levels = deviceDepth > 1
      ? await this.programs.levels(deviceDepth, batch, cells)
      : undefined;
    const depths =
      proposals?.map((one, i) => one?.tokens.length ?? asked.depths?.[i] ?? deviceDepth) ??
        packed.depths;
    this.#windows?.begin(sequences, asked);
    this.#inputs.setBatch(sequences.map(slotOf));
    if (packed.budget) this.#inputs.setBudget(sequences, packed.budget, depths ?? []);
    else if (shape.depth > 0) this.#inputs.setDepths(sequences, depths, proposals);
    // The device drafts for all; then the host's drafts replace some.
    if (levels) submit(this.gpu, levels);
    if (proposals) this.#inputs.setProposals(sequences, proposals);
    const of = {
      shape,
      depths,
      withConfidences: work.withConfidences,
      extended: this.#drafts && shape.depth > 0,
      logprobs: choice.logprobs,
    };
    if (maskFor) {
      const ran = await maskedRound(this.#device, work, {
        sequences,
        shape,
        proposals,
        setMasks: async (verified) =>
          this.#choice.setMasks(await maskFor(verified), batch * shape.rows),
      });
      return { results: () => Promise.resolve(this.#results(sequences, of, [ran])) };
    }
    const submitted = await this.#submitter.repeat(work, count);
    const results = async () => this.#results(sequences, of, await submitted.read());
    return { results };
  }

  #results(
    sequences: readonly Sequence[],
    of: RoundLayout,
    ran: readonly RunResult[],
  ): RoundResult[] {
    const results = ran.map((one) => roundResult(sequences, of, one));
    const stopped = sequences.map(({ slot, ids }, i) => {
      const { stopIds = [], maxTokens = Infinity } = this.#ends[slot ?? -1] ?? {};
      const stops = new Set(stopIds.slice(0, MAX_STOPS));
      return ids.length >= maxTokens ||
        results.some(({ sequences }) => sequences[i]?.ids.some((id) => stops.has(id)));
    });
    this.#windows?.end(sequences, of, stopped);
    return results;
  }
}
