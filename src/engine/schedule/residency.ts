/** Where the draft's weights, keys and values are. */
export type Residency =
  | {
    readonly kind: "resident";
    /**
     * Steps without drafts in which pages were short, less those in which they were not; never below 0, and 0 after a
     * step with drafts.
     */
    readonly short: number;
  }
  /** On its way to the host, chunk by chunk. */
  | { readonly kind: "evicting" }
  | {
    readonly kind: "host";
    /** Steps for which the policy would have drafted. */
    readonly wanted: number;
  }
  /** On its way back. */
  | { readonly kind: "loading" }
  /** There was no memory to bring it back: it is gone for good. */
  | { readonly kind: "lost" };

/** What is seen at a step. */
export interface MemorySignals {
  /** Draft steps that the policy chose for the round; undefined where it chose none. */
  readonly chosen: number | undefined;
  /** KV pages that are free or only cached, as a share of all present pages. */
  readonly freeShare: number;
  /** Number of waiting requests, preempted ones included. */
  readonly waiting: number;
  /** KV pages held by running requests, as a share of the pages that do not hold the draft. */
  readonly heldShare: number;
}

/** When the draft leaves and comes back. */
export interface ResidencyOptions {
  /** Pages are short below this share of free ones while requests wait. */
  readonly shortShare: number;
  /** It is unloaded once pages were short for this many steps. */
  readonly shortSteps: number;
  /** It is loaded again once the policy would have drafted in this many steps and `roomShare` is met. */
  readonly wantedSteps: number;
  /** Share of the other pages that must be free for loading it again: more than `shortShare`. */
  readonly roomShare: number;
}

/** Nightjar's best threshold is 10 %; requiring room for twice that keeps the draft from leaving again at once. */
export const RESIDENCY: ResidencyOptions = {
  shortShare: 0.1,
  shortSteps: 16,
  wantedSteps: 2,
  roomShare: 0.2,
};

/** The first state. */
export const RESIDENT: Residency = { kind: "resident", short: 0 };

/** The state after a step. */
export function observed(
  state: Residency,
  { chosen, freeShare, waiting, heldShare }: MemorySignals,
  { shortShare, shortSteps, wantedSteps, roomShare }: ResidencyOptions,
): Residency {
  switch (state.kind) {
    case "resident": {
      if (chosen === undefined) return state;
      if (chosen > 0) return RESIDENT;
      const pressed = waiting > 0 && freeShare < shortShare;
      const short = pressed ? state.short + 1 : Math.max(0, state.short - 1);
      return short < shortSteps ? { kind: "resident", short } : { kind: "evicting" };
    }
    case "host": {
      const wanted = chosen ? state.wanted + 1 : state.wanted;
      const fits = heldShare <= 1 - roomShare;
      return wanted >= wantedSteps && fits ? { kind: "loading" } : { kind: "host", wanted };
    }
    default:
      return state;
  }
}

/** How moving ended: it is done; pages could not be vacated; there is no memory. */
export type MoveOutcome = "moved" | "blocked" | "no memory";

/** The state after the move in progress has ended. */
export function moved(state: Residency, how: MoveOutcome): Residency {
  switch (state.kind) {
    case "evicting":
      // The draft is unloaded even if there was no memory for more pages.
      return { kind: "host", wanted: 0 };
    case "loading":
      if (how === "moved") return RESIDENT;
      return how === "blocked" ? { kind: "host", wanted: 0 } : { kind: "lost" };
    default:
      return state;
  }
}
