import { type Policy, PolicyError, type PolicySetup } from "../policy.ts";
import { ADA_BINGREEDY } from "./bandit/ada_bingreedy.ts";
import { BEG_MAB } from "./bandit/beg_mab.ts";
import { EXP3 } from "./bandit/exp3.ts";
import { LIN_TS } from "./bandit/lin_ts.ts";
import { LINUCB } from "./bandit/linucb.ts";
import { NIGHTJAR } from "./bandit/nightjar.ts";
import { NIGHTJAR_PRINTED } from "./bandit/nightjar_printed.ts";
import { UCB } from "./bandit/ucb.ts";
import { EMA } from "./ema.ts";
import { ADAPTIVE_VERIFY } from "./goodput/adaptive_verify.ts";
import { DSD } from "./goodput/dsd.ts";
import { EMA_CENSORED } from "./goodput/ema_censored.ts";
import { HYBRID } from "./goodput/hybrid.ts";
import { P_MIN } from "./goodput/p_min.ts";
import { TETRIS } from "./goodput/tetris.ts";
import { THROUGHPUT_AWARE } from "./goodput/throughput_aware.ts";
import { HF_HEURISTIC } from "./hf_heuristic.ts";
import type { PolicyKind } from "./kind.ts";
import { OFF } from "./off.ts";
import { STATIC } from "./static.ts";

/** Every policy by its name: a new one takes its file, its test and a line here. */
export const POLICIES: Readonly<Record<string, PolicyKind<unknown>>> = {
  static: STATIC,
  off: OFF,
  ema: EMA,
  "hf-heuristic": HF_HEURISTIC,

  // They learn by trial.
  "ada-bingreedy": ADA_BINGREEDY,
  "beg-mab": BEG_MAB,
  exp3: EXP3,
  "lin-ts": LIN_TS,
  linucb: LINUCB,
  nightjar: NIGHTJAR,
  "nightjar-printed": NIGHTJAR_PRINTED,
  ucb: UCB,

  // They price rounds by what is accepted, or watch the draft.
  "throughput-aware": THROUGHPUT_AWARE,
  dsd: DSD,
  tetris: TETRIS,
  "adaptive-verify": ADAPTIVE_VERIFY,
  "p-min": P_MIN,
  "ema-censored": EMA_CENSORED,
  hybrid: HYBRID,
  auto: HYBRID,
};

/**
 * A registered policy.
 *
 * @param options as a user wrote them.
 * @throws PolicyError for a name that is not registered or options that the policy does not take.
 */
export function policyNamed(name: string, options: unknown, setup: PolicySetup): Policy {
  const kind = Object.hasOwn(POLICIES, name) ? POLICIES[name] : undefined;
  const fail = (why: string) => new PolicyError(`Cannot use policy "${name}": ${why}`);
  if (kind === undefined) throw fail(`there are ${Object.keys(POLICIES).join(", ")}`);
  try {
    return kind.open(options, setup);
  } catch (error) {
    throw error instanceof PolicyError ? fail(error.message) : error;
  }
}
