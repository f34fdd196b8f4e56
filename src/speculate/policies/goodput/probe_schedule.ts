/** Whether rounds draft, for how long they have, and when to probe drafting where they do not. */
export interface ProbeSchedule {
  /** Depth of the last round; undefined before the first. */
  readonly steps: number | undefined;
  /** Rounds since drafting last began or ended, the last one included. */
  readonly since: number;
  /** Milliseconds that rounds have gone without drafts. */
  readonly restedMs: number;
  /** Rounds without drafts until the next probe, a try of drafting. */
  readonly wait: number;
  /** Usual numbers of rounds for which drafting continues, and for which it pauses. */
  readonly stay: number;
  readonly rest: number;
  /** Usual milliseconds of the draft's catching up when drafting begins again. */
  readonly catchUp: number;
  /** Share of probes after which drafting lasted, 0 to 1, a moving average. */
  readonly returns: number;
  /** Whether drafting began as a probe. */
  readonly probed: boolean;
}

/** Rounds without drafts before the first probe, and the most before any probe. */
const FIRST_WAIT = 32;
export const LONGEST_WAIT = 1024;
/** A probe has failed if drafting ends after at most this many rounds. */
const SHORT_STAY = 20;
/** Weight of the newest. */
const NEWEST = 0.3;
/** No round or catch-up lasts longer. */
const MAX_MS = 1e6;

export const NO_PROBES: ProbeSchedule = {
  steps: undefined,
  since: 0,
  restedMs: 0,
  wait: FIRST_WAIT,
  stay: 64,
  rest: 64,
  catchUp: 0,
  returns: 0.125,
  probed: false,
};

/** Rounds in a row without drafts. */
export function resting({ steps, since }: ProbeSchedule): number {
  return steps === 0 ? since : 0;
}

/**
 * Rounds in a row without drafts after which a probe does not wait for a cheaper catch-up: LONGEST_WAIT at first. The
 * wait grows with each probe that fails, so that it is proportional to the time for which drafts have not paid.
 */
export function overdue({ returns }: ProbeSchedule): number {
  return LONGEST_WAIT * Math.max(1, NO_PROBES.returns / returns);
}

/**
 * Factor on the catch-up cost for stopping too soon: rounds pass until the next probe, and probes are rarer
 * the longer the draft needs to catch up.
 */
const TOO_SOON = 5;

/** Milliseconds that a round without drafts is expected to cost later, when drafting resumes and catches up. */
export function laterMs({ catchUp, returns, rest }: ProbeSchedule): number {
  return TOO_SOON * catchUp * returns / rest;
}

/** What a schedule records. */
export interface FollowedRound {
  readonly steps: number;
  readonly ms: number;
  readonly catchUpMs: number;
  /** Acceptance was found to have changed. */
  readonly changed: boolean;
}

/**
 * Adds a round. A probe that fails doubles the wait for the next one (exponential back-off). Drafting that
 * lasts, or a change of acceptance, resets the wait.
 */
export function followed(schedule: ProbeSchedule, round: FollowedRound): ProbeSchedule {
  const { steps, changed, ms } = round;
  const before = schedule.steps;
  const lasts = before !== undefined && before > 0 && steps > 0 && schedule.since > SHORT_STAY;
  const restedMs = steps > 0 ? 0 : schedule.restedMs + (isTime(ms) ? ms : 0);
  const now = { ...schedule, restedMs, wait: lasts || changed ? FIRST_WAIT : schedule.wait };
  if (before === undefined || steps > 0 === before > 0) {
    return { ...now, steps, since: schedule.since + 1 };
  }
  return { ...steps > 0 ? begun(now, round.catchUpMs) : ended(now), steps, since: 1 };
}

function begun(schedule: ProbeSchedule, ms: number): ProbeSchedule {
  const catchUp = isTime(ms) ? nearer(schedule.catchUp, ms) : schedule.catchUp;
  const { rest, since, wait } = schedule;
  return { ...schedule, catchUp, rest: nearer(rest, since), probed: since >= wait };
}

function ended(schedule: ProbeSchedule): ProbeSchedule {
  const { since, stay, returns, wait, probed } = schedule;
  if (!probed) return { ...schedule, stay: nearer(stay, since) };
  return since > SHORT_STAY
    ? { ...schedule, stay: nearer(stay, since), returns: nearer(returns, 1) }
    : { ...schedule, wait: Math.min(wait * 2, LONGEST_WAIT), returns: nearer(returns, 0) };
}

function isTime(ms: number): boolean {
  return ms >= 0 && ms < MAX_MS;
}

function nearer(old: number, value: number): number {
  return old + NEWEST * (value - old);
}
