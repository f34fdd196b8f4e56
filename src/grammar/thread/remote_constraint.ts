import type { UsageError } from "../../errors.ts";
import { NO_PROPOSAL } from "../../speculate/trees.ts";
import type { Constraint } from "../constraint.ts";
import { grammarFault } from "../fault.ts";
import { CLOSE, FILL, FORCED, PRUNED, TAKE } from "./mailbox.ts";
import type { GrammarThread } from "./thread.ts";

/**
 * A constraint in another thread.
 *
 * @param of.closed called once, when it is closed.
 */
export function remoteConstraint(
  thread: Pick<GrammarThread, "call" | "masks">,
  { handle, complete, closed }: {
    readonly handle: number;
    readonly complete: boolean;
    readonly closed: () => void;
  },
): Constraint {
  let ends = complete;
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
    take(token) {
      const { value } = attempt(() => thread.call({ command: TAKE, handle, argument: token }), {
        value: 0,
      });
      if (failure) throw failure;
      ends = value === 1;
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
      attempt(() => void thread.call({ command: CLOSE, handle }), undefined);
      closed();
    },
  };
}
