import type { UsageError } from "../../errors.ts";
import { chainOf, NO_PROPOSAL } from "../../speculate/trees.ts";
import type { Constraint } from "../constraint.ts";
import { grammarFault } from "../fault.ts";
import { type Answer, CLOSE, FILL, FORCED, PRUNED, TAKE } from "./mailbox.ts";
import type { GrammarThread } from "./thread.ts";

/**
 * A constraint in another thread.
 *
 * @param of.closed called once, when it is closed.
 */
export function remoteConstraint(
  thread: Pick<GrammarThread, "call" | "callLater" | "waiting" | "slow" | "masks">,
  { handle, complete, closed }: {
    readonly handle: number;
    readonly complete: boolean;
    readonly closed: () => void;
  },
): Constraint {
  let ends = complete;
  /** Tokens that the thread has taken and `take` has not, and whether the output ends behind them. */
  let ahead = { tokens: 0, ends: false };
  let open = true;
  /** The thread failed: the next token ends the output with this error. */
  let failure: UsageError | undefined;

  function attempt<T>(action: () => T, otherwise: T): T {
    if (failure) return otherwise;
    try {
      return action();
    } catch (error) {
      failure = grammarFault(error);
      return otherwise;
    }
  }

  /** @param answer to TAKE. */
  function keep({ value }: Answer): void {
    ahead = { tokens: value >>> 1, ends: (value & 1) === 1 };
  }

  const asked = (command: number, of: { argument?: number; proposal?: typeof NO_PROPOSAL }) =>
    attempt(() => thread.call({ command, handle, ...of }).proposal ?? NO_PROPOSAL, NO_PROPOSAL);

  return {
    get mask() {
      return attempt(() => {
        const { value: rows } = thread.call({ command: FILL, handle, proposal: NO_PROPOSAL });
        return thread.masks(rows).slice();
      }, thread.masks(1).slice().fill(0xffffffff));
    },
    get complete() {
      return ends;
    },
    get busy() {
      return thread.waiting;
    },
    get slow() {
      return thread.slow;
    },
    advance(tokens) {
      const call = { command: TAKE, handle, proposal: chainOf(tokens) };
      const answer = attempt(() => thread.callLater(call), { value: 0 });
      if (answer instanceof Promise) {
        return answer.then(keep, (error) => void (failure = grammarFault(error)));
      }
      keep(answer);
      return undefined;
    },
    take(token) {
      if (ahead.tokens === 0) {
        attempt(
          () => keep(thread.call({ command: TAKE, handle, proposal: chainOf([token]) })),
          undefined,
        );
      }
      if (failure) throw failure;
      ahead.tokens--;
      ends = ahead.ends && ahead.tokens === 0;
    },
    forced: (depth) => asked(FORCED, { argument: depth }),
    pruned: (proposal) => asked(PRUNED, { proposal }),
    fill(proposal, into) {
      into.fill(0xffffffff);
      attempt(() => {
        const { value: rows } = thread.call({ command: FILL, handle, proposal });
        into.set(thread.masks(rows));
      }, undefined);
    },
    close() {
      if (!open) return;
      open = false;
      // Also after a failure: the thread answers calls while any constraint is open.
      failure = undefined;
      const answer = attempt(() => thread.callLater({ command: CLOSE, handle }), undefined);
      if (answer instanceof Promise) answer.then(closed, closed);
      else closed();
    },
  };
}
