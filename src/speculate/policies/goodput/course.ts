/** Whether rounds draft, for how long they have, and when to look again where they do not. */
export interface Course {
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
  readonly looked: boolean;
}

/** Rounds without drafts before the first probe, and the most before any probe. */
const FIRST_WAIT = 32;
const LONGEST_WAIT = 1024;
/** A probe has failed if drafting ends after at most this many rounds. */
const SHORT_STAY = 20;
/** Weight of the newest. */
const NEWEST = 0.3;
/** No round or catch-up lasts longer. */
const MOST_MS = 1e6;

export const NO_COURSE: Course = {
  steps: undefined,
  since: 0,
  restedMs: 0,
  wait: FIRST_WAIT,
  stay: 64,
  rest: 64,
  catchUp: 0,
  returns: 0.125,
  looked: false,
};

/** Rounds in a row without drafts. */
export function resting({ steps, since }: Course): number {
  return steps === 0 ? since : 0;
}

/**
 * Factor on the catch-up cost for stopping too soon: rounds pass until the next probe, and probes are rarer
 * the longer the draft needs to catch up.
 */
const TOO_SOON = 5;

/** Milliseconds that a round without drafts is expected to cost later, when drafting resumes and catches up. */
export function laterMs({ catchUp, returns, rest }: Course): number {
  return TOO_SOON * catchUp * returns / rest;
}

/** What a course records. */
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
export function followed(course: Course, round: FollowedRound): Course {
  const { steps, changed, ms } = round;
  const before = course.steps;
  const lasts = before !== undefined && before > 0 && steps > 0 && course.since > SHORT_STAY;
  const restedMs = steps > 0 ? 0 : course.restedMs + (isTime(ms) ? ms : 0);
  const now = { ...course, restedMs, wait: lasts || changed ? FIRST_WAIT : course.wait };
  if (before === undefined || steps > 0 === before > 0) {
    return { ...now, steps, since: course.since + 1 };
  }
  return { ...steps > 0 ? begun(now, round.catchUpMs) : ended(now), steps, since: 1 };
}

function begun(course: Course, ms: number): Course {
  const catchUp = isTime(ms) ? nearer(course.catchUp, ms) : course.catchUp;
  const { rest, since, wait } = course;
  return { ...course, catchUp, rest: nearer(rest, since), looked: since >= wait };
}

function ended(course: Course): Course {
  const { since, stay, returns, wait, looked } = course;
  if (!looked) return { ...course, stay: nearer(stay, since) };
  return since > SHORT_STAY
    ? { ...course, stay: nearer(stay, since), returns: nearer(returns, 1) }
    : { ...course, wait: Math.min(wait * 2, LONGEST_WAIT), returns: nearer(returns, 0) };
}

function isTime(ms: number): boolean {
  return ms >= 0 && ms < MOST_MS;
}

function nearer(old: number, value: number): number {
  return old + NEWEST * (value - old);
}
