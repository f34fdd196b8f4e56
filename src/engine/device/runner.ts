import type { CompileProgress } from "./first_runs.ts";
import type { Gpu } from "../../gpu/device.ts";
import type { CreationCounts } from "../../gpu/program.ts";
import type { VerifyBudget } from "../../speculate/policy.ts";
import type { Sampling } from "../../speculate/sampling.ts";
import type { DraftShape } from "../../speculate/round_shape.ts";
import type { Proposal } from "../../speculate/trees.ts";
import type { EngineSizes } from "./buffers.ts";
import type { KeptStates } from "./kept_states.ts";
import type { TokenLogprobs } from "./choice/logprobs.ts";
import type { Models } from "./models.ts";
import type { PagePool } from "./pages.ts";
import type { Programs } from "./programs.ts";
import type { ElasticMemory } from "./elastic/elastic_memory.ts";
import type { RoundResult } from "./round_result.ts";
import type { Sequence } from "./sequence.ts";

/**
 * The device side of decoding: slots, prefill and rounds. It knows nothing of text or requests. Results that take time
 * are promises on a device, and plain values in simulated time.
 */
export interface Runner {
  readonly gpu: Gpu;
  readonly models: Models;
  readonly capacity: EngineSizes;
  readonly created: Readonly<CreationCounts>;
  /** Milliseconds in which programs of prompts were made, and kernels ran for the first time, with no sequence. */
  readonly compileMs: number;
  /** What rounds and prefill run, for the profile. */
  readonly programs: Programs;
  /** The KV pages of all sequences. */
  readonly pool: PagePool;
  readonly draft: DraftKind;
  /** Whether the draft reports its confidence, which `Decision.verify` of policies needs. */
  readonly ranks: boolean;
  /**
   * Whether kernels of their own store prompts, so that the same token has other bits in a prompt than in an answer;
   * default false.
   */
  readonly promptKernels?: boolean;
  /** Whether layers have a state of fixed size, which no page holds; default false. */
  readonly recurrent?: boolean;
  /** Where states of prefixes may be kept, if layers have such. */
  readonly states?: KeptStates | undefined;
  /**
   * Whether a group of rounds may begin while the results of the group or of the forward of prompts before it are still
   * to be read.
   */
  readonly overlaps?: boolean;
  /** Where the draft may leave the GPU. */
  readonly elastic?: ElasticMemory | undefined;
  /** Gives the sequence a batch slot that has the pages it holds; false when all are taken. */
  openSlot(sequence: Sequence): boolean;
  /** Takes the slot back and releases the sequence's pages: nothing of it is stored any more. */
  closeSlot(sequence: Sequence): void;
  /**
   * Makes the programs of these tiers at every batch bucket, and runs them once with no sequence: adapters
   * compile at the first run.
   *
   * @param proposed rounds that the host drafts for; default false.
   * @param beside tiers of the device: in such rounds, sequences without a proposal have device-drafted chains of these
   * depths.
   */
  warmUp(
    shapes: readonly DraftShape[],
    proposed?: boolean,
    beside?: readonly DraftShape[],
  ): Promise<void>;
  /**
   * Like `warmUp`, for these tiers' rounds that verify only a part of the drafts (`RoundRequest.depths`, and `verify`
   * if the runner ranks). Rounds that need no pipelines of their own are not run.
   */
  warmUpPacked(shapes: readonly DraftShape[]): Promise<void>;
  /**
   * Makes the programs of prompts of every length, and runs those of the shortest forwards, with one and with two
   * prompts.
   */
  warmUpPrompts(): Promise<void>;
  /** Gives the sequence KV pages for `cells` tokens; false when there are not enough left. */
  reserve(sequence: Sequence, cells: number): boolean;
  /** Replaces the sequence's first pages by others that hold the same. */
  setPages(sequence: Sequence, pages: readonly number[]): void;
  /**
   * Sets how the sequence's tokens are chosen and where the device stops it. Holds until it is called again.
   *
   * @param promptTokens leading ids that penalties take for the prompt; absent: all that the next
   * prefill stores.
   */
  setSampling(
    sequence: Sequence,
    sampling: Sampling,
    ends?: TextEnds,
    promptTokens?: number,
  ): void;
  /**
   * Stores the next chunks of these sequences' ids in one forward of at most `prefillRows` rows, see `promptRows`;
   * their pages are reserved. A chunk that stores the last of its sequence's ids adds the first token to them.
   *
   * @param chunks at least one, each of another sequence. If the runner has `promptKernels`, either all of them are of
   * prompts, or all of answers that were stored before and have lost their pages (preemption).
   * @param onCompile called if kernels of the forward have not run yet: they first run with no lane.
   * @param whileRunning called and awaited once the forward is submitted, if the runner `overlaps`:
   * a group of rounds may begin in it, also of sequences whose first token this forward chooses. Its
   * results are read after `prefill` has returned.
   * @returns of each chunk the first token; undefined where ids are left to be stored.
   */
  prefill(
    chunks: readonly PromptChunk[],
    onCompile?: (progress: CompileProgress) => void,
    whileRunning?: () => Promise<void>,
  ): Promise<(FirstToken | undefined)[]> | (FirstToken | undefined)[];
  /**
   * Brings the draft's keys and values of these sequences up to what is stored.
   *
   * @param chunks of `prefillRows` rows at most; default: all.
   */
  catchUp(sequences: readonly Sequence[], chunks?: number): Promise<void> | void;
  /**
   * Runs rounds of these sequences without the host between them; pages must be reserved for all of them. Results are
   * in the order of the rounds. All tokens are added to `ids`, even those that the host will not take as output.
   */
  rounds(sequences: readonly Sequence[], asked: RoundRequest): Promise<RoundResult[]>;
  /** Submits the same rounds, so that the host may do something else before it waits for them. */
  begin(
    sequences: readonly Sequence[],
    asked: RoundRequest,
  ): Promise<SubmittedRounds> | SubmittedRounds;
}

/** Where the device stops a sequence: its rows in later rounds are padding. */
export interface TextEnds {
  /** Token ids, of which MAX_STOPS count; default none. */
  readonly stopIds?: readonly number[];
  /** Number of tokens that the text may have, prompt included; default: any. */
  readonly maxTokens?: number;
}

/** Rounds that the device has still to do. */
export interface SubmittedRounds {
  /**
   * The rounds' results, in order. It must be called before the next `prefill`, `catchUp` or
   * `openSlot`. Sequences whose slot was closed meanwhile have no tokens in them.
   */
  results(): Promise<RoundResult[]> | RoundResult[];
}

/** Which rounds. */
export interface RoundRequest {
  /** One of the capacity's. */
  readonly shape: DraftShape;
  /** 1 to MAX_ROUNDS. */
  readonly count: number;
  /**
   * Draft tokens to verify of each sequence that the device drafts for, 0 to the shape's depth, at most
   * this many if `verify` decides; default: all. Chains only.
   */
  readonly depths?: readonly number[];
  /**
   * Budget by which the device decides how many, if the runner `ranks`. Rounds with proposals, masks, penalties or
   * log-probabilities ignore it and verify all of `depths`.
   */
  readonly verify?: VerifyBudget;
  /**
   * What the host drafted for each sequence, which fits the shape (`proposalFault`); absent: the
   * device drafts. For one round: `count` is 1.
   */
  readonly proposals?: readonly (Proposal | undefined)[];
  /**
   * Tokens that the device drafts for each sequence whose proposal is undefined, 0 to the shape's
   * depth. Such a round's shape is a chain.
   */
  readonly deviceDepth?: number;
  /**
   * Makes the masks once the drafts to be verified of each sequence are known, whoever drafted them: the tokens that
   * may be chosen at each verify row, u32 [sequences, shape.rows, ceil(vocabSize / 32)]. Bit t % 32 of word t / 32 is 1
   * where token t is allowed. Rows of a sequence are those of its proposal: the pending token's, then token i's. Every
   * row that is reached has at least one bit that is 1. For one round: `count` is 1.
   */
  readonly maskFor?: (proposals: readonly Proposal[]) => Uint32Array | Promise<Uint32Array>;
  /**
   * How many of the likeliest tokens are reported at each emitted token with their log-probabilities, besides the
   * token's own: 0 to MAX_LOGPROBS; at least as many are reported. Absent: no log-probabilities.
   */
  readonly logprobs?: number | undefined;
}

/** A part of a prompt. */
export interface PromptChunk {
  readonly sequence: Sequence;
  /** Number of ids that are stored after it: more than are stored now. */
  readonly to: number;
  /** Tokens that are allowed as the first token, as a row of `RoundRequest.maskFor`'s masks; absent: all. */
  readonly mask?: Uint32Array | undefined;
  /** See `RoundRequest.logprobs`. */
  readonly logprobs?: number | undefined;
}

/** What a prefill chose. */
export interface FirstToken {
  readonly id: number;
  /** Where they were asked for. */
  readonly logprobs: TokenLogprobs | undefined;
}

/**
 * Whether there is a draft, and whether it can catch up on tokens that were decoded without it: the target's features
 * are kept only where a tier decodes without the draft. A standalone draft needs only the tokens.
 */
export type DraftKind = "none" | "always" | "catches up";
