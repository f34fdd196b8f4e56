import type { LoadProgress } from "../engine/load/load.ts";
import type { RoundsPerSync } from "../engine/schedule/sync_interval.ts";
import type { NamedPolicy } from "../engine/schedule/speculation_choice.ts";
import type { CostTable } from "../speculate/costs/table.ts";
import type { DraftShape } from "../speculate/round_shape.ts";
import type { Workload } from "./workload/workload.ts";

/** How a cell decodes. */
export type Setting =
  | { readonly kind: "plain" }
  | { readonly kind: "static"; readonly numSteps: number }
  | { readonly kind: "tree"; readonly tier: DraftShape }
  /** A preset's name, or the file of an adaptive config. */
  | { readonly kind: "preset"; readonly name: string }
  /** What it draws by chance depends on the cell's seed. */
  | { readonly kind: "policy"; readonly policy: NamedPolicy };

/** One combination of the axes; every setting is measured in it. */
export interface Case {
  readonly workload: string;
  /** Requests in flight. */
  readonly batch: number;
  /** Tokens of each prompt; absent where the workload's texts decide. */
  readonly promptTokens?: number;
  /** Most tokens of each answer. */
  readonly outputTokens: number;
  readonly temperature: number;
  /** Tokens whose keys and values are in the cache before the prompt. */
  readonly depth: number;
  /** Rounds submitted without the host between; absent = auto. */
  readonly roundsPerSync?: RoundsPerSync;
}

/** One measurement: a case, a setting, a block. */
export interface CellSpec extends Case {
  readonly setting: Setting;
  /** Number of the block, from 0; -1 is the warm-up, which is not counted. */
  readonly repeat: number;
  /** Key of prompts and noise, u32; the same for all settings of a block. */
  readonly seed: number;
}

/** What one round of a cell did. Milliseconds of device work where it can be timed. */
export interface RoundSample {
  /** Draft levels; 0 = plain decoding. */
  readonly numSteps: number;
  /** Drafts verified of each sequence, where that is not numSteps. */
  readonly drafted?: number;
  /** Sequences in the round. */
  readonly batch: number;
  /** Drafts accepted, a number for each sequence; the bonus is not counted. */
  readonly accepted: readonly number[];
  readonly draftMs: number;
  readonly verifyMs: number;
  readonly extendMs: number;
  /** Rounds that were submitted at once, this one among them. */
  readonly together: number;
  /** What is left of `ms`: the host's work and waiting. */
  readonly hostMs: number;
  readonly ms: number;
  /** When the round began, from the start of the cell. */
  readonly tMs: number;
}

/** What a request of a cell saw. */
export interface RequestSample {
  /** Time to the first token. */
  readonly ttftMs: number;
  /** Time per output token after the first. */
  readonly tpotMs: number;
  /** Times between tokens; 0 within an accepted run. */
  readonly itlMs: readonly number[];
  /** Prompt tokens that no cache had, and milliseconds until the first token of the answer. */
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

export interface CellResult {
  /** Output tokens of all requests. */
  readonly tokens: number;
  /** From the first request's start to the last one's end. */
  readonly seconds: number;
  readonly rounds: readonly RoundSample[];
  /** In the order of the workload's prompts. */
  readonly requests: readonly RequestSample[];
  readonly switches: readonly Switch[];
  /** Share of the time of rounds by number of steps. */
  readonly tierShare: Readonly<Record<number, number>>;
}

/** Measures one cell. Where the signal aborts it may reject or give part of a result. */
export type RunCell = (spec: CellSpec, signal: AbortSignal) => Promise<CellResult>;

/** What is measured, for the rows and the page. */
export interface Subject {
  readonly model: string;
  /** Undefined: only plain decoding can be measured. */
  readonly draft: string | undefined;
  /** Adapter and backend in words. */
  readonly device: string;
  /** Accepted counts are drawn, not verified. */
  readonly simulated: boolean;
  /** Default: Deno's own. */
  readonly webgpu?: "builtin" | "dawn";
}

/** An engine opened for a sweep. */
export interface BenchSession extends Disposable {
  readonly subject: Subject;
  /** Of the target's weights. */
  readonly size?: { readonly bytes: number; readonly parameters: number };
  readonly runCell: RunCell;
  /** What rounds cost here, where that is known from before. */
  readonly costs?: CostTable | undefined;
}

/** Which models on which adapter, and who is notified of the loading. */
export interface ModelRequest {
  readonly model?: string;
  readonly draft?: string;
  readonly draftRopeTheta?: number;
  readonly quantize?: "q8" | "q4";
  readonly quantizeDraft?: boolean;
  readonly kvDtype?: "f32" | "f16" | "bf16";
  readonly algorithm?: "EAGLE" | "EAGLE3" | "NEXTN" | "STANDALONE" | "NONE";
  readonly adapter?: "high-performance" | "low-power" | "software";
  readonly webgpu?: "builtin" | "dawn";
  readonly precision?: "f32" | "f16";
  readonly autotune?: "on" | "off" | "again";
  /** As in DeviceOptions. */
  readonly costs?: string;
  /** Config files of a checkpoint that is built of random weights. */
  readonly randomWeights?: string;
  readonly randomDraft?: string;
  /** Probability that a draft is accepted after those before it: one for all, or by position. */
  readonly simulateAcceptance?: readonly number[];
  readonly onProgress?: (progress: LoadProgress) => void;
  readonly onWarning?: (line: string) => void;
}

/** All that opening needs to know of the sweep to come. */
export interface BenchRequest extends ModelRequest {
  readonly workload: Workload;
  readonly cases: readonly Case[];
  readonly settings: readonly Setting[];
}

/** Opens model and device and builds all tiers of the settings at all batch sizes of the cases. */
export type OpenBench = (request: BenchRequest) => Promise<BenchSession>;
