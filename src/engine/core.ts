import type { Gpu } from "../gpu/device.ts";
import { compiler, type Created, encode, type Program } from "../gpu/program.ts";
import { openReadback, type Readback } from "../gpu/readback.ts";
import {
  NO_SLOT,
  PAGE,
  RESULT_CHOICES,
  RESULT_DRAFTS,
  RESULT_WORDS,
  ROW_WORDS,
  SLOT_WORDS,
} from "../model/rows_layout.ts";
import type { Sampling } from "../speculate/sampling.ts";
import { type Capacity, type RoundBuffers, roundBuffers } from "./buffers.ts";
import { type LoadedWeights, type Models, prepareModels } from "./models.ts";
import { type PagePool, pagePool } from "./pages.ts";
import { promptPlans, roundPlan } from "./tier.ts";

/** One sequence's place on the device. `tokens` are those whose keys and values are stored. */
export interface Slot extends Disposable {
  readonly id: number;
  readonly tokens: number[];
  /** The newest token, generated but not stored yet. */
  root: number;
  /** Tokens whose draft keys and values are stored too. */
  draftLength: number;
  readonly pages: number[];
}

/** What one lane of a round did. */
export interface LaneResult {
  /** Drafts accepted. */
  readonly accepted: number;
  /** Tokens emitted: the accepted drafts and the bonus. NOT_A_TOKEN where logits were NaN. */
  readonly ids: number[];
  readonly drafts: number[];
}

/** Prefill programs are made for these row counts; a chunk takes the smallest that holds it. */
const BUCKETS = [8, 16, 32, 64, 128, 256];

/** The device side of decoding: slots, prefill and rounds. It knows nothing of text or requests. */
export interface Core {
  readonly gpu: Gpu;
  readonly models: Models;
  readonly capacity: Capacity;
  readonly created: Readonly<Created>;
  openSlot(): Slot;
  /** Makes the programs of a tier; after that its rounds create nothing. */
  prepare(tier: { readonly batch: number; readonly numSteps: number }): Promise<Program>;
  /** Makes sure that the slot has KV pages for `cells` tokens. */
  reserve(slot: Slot, cells: number): void;
  /** Sets how the slot's tokens are chosen. */
  setSampling(slot: Slot, sampling: Sampling): void;
  /**
   * Runs one chunk of a prompt: cells `from` to `to` of `ids`. The chunk that ends the prompt
   * returns its first token; the others return undefined.
   */
  prefill(
    slot: Slot,
    ids: readonly number[],
    from: number,
    to: number,
  ): Promise<number | undefined>;
  /** One round of these slots (at most `capacity.batch`). */
  round(slots: readonly Slot[], numSteps: number): Promise<LaneResult[]>;
}

interface PromptPrograms {
  readonly body: Program;
  readonly head: Program;
  readonly draft: Program;
  readonly draftHead: Program;
}

export async function openCore(
  gpu: Gpu,
  loaded: LoadedWeights,
  capacity: Capacity,
): Promise<Core> {
  const buffers = roundBuffers(gpu, capacity);
  const headRows = Math.ceil(capacity.batch * (capacity.maxSteps + 1) / 8) * 8;
  const models = prepareModels(gpu, loaded, capacity, buffers, headRows);
  const readback = await openReadback(gpu, capacity.batch * RESULT_WORDS);
  return new DeviceCore(gpu, models, capacity, buffers, readback);
}

class DeviceCore implements Core {
  readonly gpu: Gpu;
  readonly models: Models;
  readonly capacity: Capacity;
  readonly #buffers: RoundBuffers;
  readonly #readback: Readback;
  readonly #compiler: ReturnType<typeof compiler>;
  readonly #pool: PagePool;
  readonly #freeSlots: number[];
  readonly #tiers = new Map<string, Program>();
  readonly #prompts = new Map<number, PromptPrograms>();
  /** What `lanes` holds now: written only when the batch changes. */
  #lanes = "";

  constructor(
    gpu: Gpu,
    models: Models,
    capacity: Capacity,
    buffers: RoundBuffers,
    readback: Readback,
  ) {
    this.gpu = gpu;
    this.models = models;
    this.capacity = capacity;
    this.#buffers = buffers;
    this.#readback = readback;
    this.#compiler = compiler(gpu);
    this.#pool = pagePool(capacity.slots * capacity.tablePages);
    this.#freeSlots = Array.from({ length: capacity.slots }, (_, i) => capacity.slots - 1 - i);
  }

  get created(): Readonly<Created> {
    return this.#compiler.created;
  }

  openSlot(): Slot {
    const id = this.#freeSlots.pop();
    if (id === undefined) throw new Error(`all ${this.capacity.slots} slots are taken`);
    const slot: Slot = {
      id,
      tokens: [],
      root: 0,
      draftLength: 0,
      pages: [],
      [Symbol.dispose]: () => {
        this.#pool.give(slot.pages.splice(0));
        slot.tokens.length = 0;
        this.#freeSlots.push(id);
      },
    };
    return slot;
  }

  async prepare(tier: { readonly batch: number; readonly numSteps: number }): Promise<Program> {
    const key = `${tier.batch}x${tier.numSteps}`;
    const made = this.#tiers.get(key) ??
      await this.#compiler.compile(roundPlan(this.models, this.#buffers, tier));
    this.#tiers.set(key, made);
    return made;
  }

  setSampling(slot: Slot, sampling: Sampling): void {
    const words = new Uint32Array(6);
    words.set([sampling.seed, sampling.topK]);
    new Float32Array(words.buffer).set([sampling.temperature, sampling.topP, sampling.minP], 2);
    this.#write(this.#buffers.slots.buffer, (slot.id * SLOT_WORDS + 2) * 4, words);
  }

  async prefill(
    slot: Slot,
    ids: readonly number[],
    from: number,
    to: number,
  ): Promise<number | undefined> {
    const count = to - from;
    const bucket = BUCKETS.find((rows) => rows >= count) as number;
    const { body, head, draft, draftHead } = await this.#promptPrograms(bucket);
    const done = to === ids.length;
    this.reserve(slot, to);
    this.#writePrompt(slot, ids, from, to, bucket);
    const words = await this.#submit(done ? [body, head, draft, draftHead] : [body, draft], 1);
    slot.tokens.splice(from, Infinity, ...ids.slice(from, to));
    if (this.models.draft) slot.draftLength = to;
    if (!done) return undefined;
    slot.root = words[RESULT_CHOICES] ?? 0;
    return slot.root;
  }

  async round(slots: readonly Slot[], numSteps: number): Promise<LaneResult[]> {
    const batch = slots.length;
    const program = await this.prepare({ batch, numSteps });
    for (const slot of slots) this.reserve(slot, slot.tokens.length + numSteps + 1);
    this.#setLanes(slots.map(({ id }) => id));
    const words = await this.#submit([program], batch);
    return slots.map((slot, lane) => {
      const result = words.subarray(lane * RESULT_WORDS, (lane + 1) * RESULT_WORDS);
      const accepted = result[0] ?? 0;
      const ids = [...result.subarray(RESULT_CHOICES, RESULT_CHOICES + accepted + 1)];
      const drafts = [...result.subarray(RESULT_DRAFTS, RESULT_DRAFTS + numSteps)];
      slot.tokens.push(slot.root, ...ids.slice(0, accepted));
      slot.root = ids[accepted] ?? 0;
      if (numSteps > 0) slot.draftLength = slot.tokens.length;
      return { accepted, ids, drafts };
    });
  }

  async #promptPrograms(bucket: number): Promise<PromptPrograms> {
    const made = this.#prompts.get(bucket);
    if (made) return made;
    const plans = promptPlans(this.models, this.#buffers, bucket);
    const programs = {
      body: await this.#compiler.compile(plans.body),
      head: await this.#compiler.compile(plans.head),
      draft: await this.#compiler.compile(plans.draft),
      draftHead: await this.#compiler.compile(plans.draftHead),
    };
    this.#prompts.set(bucket, programs);
    return programs;
  }

  /** Rows of the chunk and of its draft-extend, whose tokens are one ahead. */
  #writePrompt(slot: Slot, ids: readonly number[], from: number, to: number, bucket: number) {
    const rows = new Uint32Array(bucket * ROW_WORDS);
    const extend = new Uint32Array(bucket * ROW_WORDS);
    for (let cell = from; cell < to; cell++) {
      const rest = [cell, slot.id, cell, cell + 1, 0, 0, 1];
      rows.set([ids[cell] ?? 0, ...rest], (cell - from) * ROW_WORDS);
      extend.set([ids[cell + 1] ?? 0, ...rest], (cell - from) * ROW_WORDS);
    }
    const last = to - from - 1;
    const buffers = this.#buffers;
    this.#write(buffers.rows.buffer, 0, rows);
    this.#write(buffers.extendRows.buffer, 0, extend);
    // choose reads the row it chooses for: the prompt's last.
    this.#write(buffers.draftRows.buffer, 0, rows.slice(last * ROW_WORDS, (last + 1) * ROW_WORDS));
    this.#write(buffers.last.buffer, 0, Uint32Array.of(last));
    this.#setLanes([slot.id]);
  }

  reserve(slot: Slot, cells: number): void {
    while (slot.pages.length * PAGE < cells) {
      const page = this.#pool.take();
      if (page === undefined) throw new Error("no KV page is left");
      const at = slot.id * this.capacity.tablePages + slot.pages.length;
      this.#write(this.#buffers.pages.buffer, at * 4, Uint32Array.of(page));
      slot.pages.push(page);
    }
  }

  #setLanes(ids: readonly number[]): void {
    const key = ids.join();
    if (key === this.#lanes) return;
    this.#lanes = key;
    const lanes = new Uint32Array(this.capacity.batch).fill(NO_SLOT);
    lanes.set(ids);
    this.#write(this.#buffers.lanes.buffer, 0, lanes);
  }

  #write(buffer: GPUBuffer, offset: number, words: Uint32Array): void {
    this.gpu.device.queue.writeBuffer(buffer, offset, words as Uint32Array<ArrayBuffer>);
  }

  /** One submission, one read: the results of `lanes` lanes. */
  async #submit(programs: readonly Program[], lanes: number): Promise<Uint32Array> {
    const encoder = this.gpu.device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    for (const program of programs) encode(pass, program);
    pass.end();
    const size = lanes * RESULT_WORDS * 4;
    encoder.copyBufferToBuffer(this.#buffers.results.buffer, 0, this.#readback.buffer, 0, size);
    this.gpu.device.queue.submit([encoder.finish()]);
    return await this.#readback.read();
  }
}
