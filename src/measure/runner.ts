import type { EngineOptions } from "../engine/options.ts";
import type { RoundsPerSync } from "../engine/schedule/sync_interval.ts";
import type { NamedPolicy } from "../engine/schedule/speculation_choice.ts";
import type { CostTable } from "../speculate/costs/table.ts";
import type { DraftShape } from "../speculate/round_shape.ts";
import type { Prefills } from "./prefills.ts";
import type { Workload } from "./workload/workload.ts";

/** How a cell decodes. */
export type Setting =
  | { readonly kind: "plain" }
  | { readonly kind: "static"; readonly numSteps: number }
  | { readonly kind: "tree"; readonly tier: DraftShape }
  /** Random choices of the policy depend on the cell's seed. */
  | { readonly kind: "policy"; readonly policy: NamedPolicy };

/** One combination of the axes; every setting is measured in it. */
export interface Case {
  readonly workload: string;
  /** Requests in flight. */
  readonly batch: number;
  /** Tokens of each prompt; absent if the prompts are texts of the workload. */
  readonly promptTokens?: number;
  /** The most tokens of each answer. */
  readonly outputTokens: number;
  readonly temperature: number;
  /** Tokens whose keys and values are in the cache before the prompt. */
  readonly depth: number;
  /** Rounds that are submitted without a sync between them; absent for auto. */
  readonly roundsPerSync?: RoundsPerSync;
}

/** One measurement: a case, a setting, a block. */
export interface CellSpec extends Case {
  readonly setting: Setting;
  /** The number of the block from 0; -1 for the warm-up, which is not counted. */
  readonly repeat: number;
  /** The seed of prompts and noise, a u32; the same for all settings of a block. */
  readonly seed: number;
}

/** One round of a cell. Times are in milliseconds; those of the device are 0 if the adapter has no timestamps. */
export interface RoundSample {
  /** Draft steps; 0 is plain decoding. */
  readonly numSteps: number;
  /** Sequences in the round. */
  readonly batch: number;
  /** Drafts verified for each sequence, and how many of them were accepted, without the bonus token. */
  readonly drafts: readonly number[];
  readonly accepted: readonly number[];
  readonly draftMs: number;
  readonly verifyMs: number;
  readonly extendMs: number;
  /** Rounds that were submitted together, with this one. */
  readonly together: number;
  /** The part of `ms` that is not device time: the host's work and waiting. */
  readonly hostMs: number;
  readonly ms: number;
  /** When the round began, from the start of the cell in milliseconds. */
  readonly tMs: number;
}

/** The latencies and lengths of one request of a cell. */
export interface RequestSample {
  /** Time to the first token. */
  readonly ttftMs: number;
  /** Time per output token after the first; null for a single token. */
  readonly tpotMs: number | null;
  /** Times between tokens; 0 between tokens of the same round. */
  readonly itlMs: readonly number[];
  /** Prompt tokens that were not in the prefix cache, and milliseconds until the first token of the answer. */
  readonly prompt: { readonly tokens: number; readonly ms: number };
  /** Tokens of the answer, and milliseconds from its first token to its last. */
  readonly answer: { readonly tokens: number; readonly ms: number };
  /** Hash of the output ids. */
  readonly outputHash: string;
}

/** One change of tier. */
export interface Switch {
  readonly round: number;
  readonly from: number;
  readonly to: number;
  readonly reason: string;
}

/** The result of one cell. */
export interface CellResult {
  /** Output tokens of all requests. */
  readonly tokens: number;
  /** Seconds from the start of the first request to the end of the last one. */
  readonly seconds: number;
  readonly rounds: readonly RoundSample[];
  /** The prefill of all requests. */
  readonly prefills: Prefills;
  /** The requests in the order of the workload's prompts. */
  readonly requests: readonly RequestSample[];
  /** The latest of `switchCount` switches. */
  readonly switches: readonly Switch[];
  readonly switchCount: number;
  /** Share of the time of rounds by number of steps. */
  readonly tierShare: Readonly<Record<number, number>>;
}

/** Measures one cell. If the signal aborts, it may reject or return part of a result. */
export type RunCell = (spec: CellSpec, signal: AbortSignal) => Promise<CellResult>;

/** The models and the device, as rows and pages name them. */
export interface Subject {
  readonly model: string;
  /** Undefined if there is no draft model; then only plain decoding can be measured. */
  readonly draft: string | undefined;
  /** Adapter and backend, in words. */
  readonly device: string;
  /** True if accepted counts are drawn at random rather than verified. */
  readonly simulated: boolean;
  /** The probabilities that they are drawn with. */
  readonly simulateAcceptance?: readonly number[];
  /** The rope base of the draft, where it is not the one of its config. */
  readonly draftRopeTheta?: number;
  /** Absent for Deno's own. */
  readonly webgpu?: "builtin" | "dawn";
}

/** An engine opened for a sweep. */
export interface BenchSession extends Disposable {
  readonly subject: Subject;
  /** The size of the target's weights. */
  readonly size?: { readonly bytes: number; readonly parameters: number };
  readonly runCell: RunCell;
  /** The cost table of this machine, if it was measured before. */
  readonly costs?: CostTable | undefined;
}

/** What a session for a sweep is opened with. */
export interface BenchRequest extends EngineOptions {
  readonly workload: Workload;
  readonly cases: readonly Case[];
  readonly settings: readonly Setting[];
}

/** Opens model and device, and compiles all tiers of the settings at all batch sizes of the cases. */
export type OpenBench = (request: BenchRequest) => Promise<BenchSession>;
