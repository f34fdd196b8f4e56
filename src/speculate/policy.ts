/**
 * Chooses the tier of each round. Pure: the engine keeps the state, and a recorded run can be
 * played again through any policy.
 */
export interface Policy<State, Context, Outcome> {
  /** Every num_steps that `pick` can return, ascending. */
  readonly tiers: readonly number[];
  readonly start: State;
  /** The num_steps of the next round. */
  pick(state: State, context: Context): number;
  /**
   * How many rounds `pick` surely gives the same steps, the next one included and whatever they come
   * to: 1 or more. So many may be launched before the first of them is learned.
   */
  holds(state: State, context: Context): number;
  /** Takes in what a round came to. */
  learn(state: State, outcome: Outcome): Learned<State>;
}

export interface Learned<State> {
  readonly state: State;
  /** Absent when every batch goes on as it was. */
  readonly change?: TierChange;
}

/** From now on batches of a slot run with other steps. */
export interface TierChange {
  readonly from: number;
  readonly to: number;
  /** The smallest batch that the slot is for. */
  readonly slot: number;
  /** The average that decided, in accepted drafts a request. */
  readonly ema: number;
}

/** The batch of the round to come. */
export interface RoundContext {
  /** Requests in it. */
  readonly batchSize: number;
}

/** What a finished round tells. */
export interface RoundOutcome extends RoundContext {
  /** It ran with these. Where `pick` gives others by now, it was launched before a change. */
  readonly numSteps: number;
  /**
   * Drafts accepted by each request, the bonus not counted: [batchSize], or fewer where requests had
   * ended or are not to be drafted for.
   */
  readonly accepted: readonly number[];
}
