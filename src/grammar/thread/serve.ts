import type { Constraint } from "../constraint.ts";
import type { LocalGrammars } from "../grammars.ts";
import { grammarFault } from "../fault.ts";
import { GrammarInterrupted } from "../rules/grammar.ts";
import {
  type Answer,
  type Call,
  CLOSE,
  FILL,
  FORCED,
  LEAVE,
  Mailbox,
  PRUNED,
  TAKE,
} from "./mailbox.ts";
import type { FromGrammars, ToGrammars } from "./messages.ts";
import { vocabularyOf } from "./vocabulary.ts";

/** The side of a thread of grammars: the global object of a worker. */
export interface GrammarPort {
  onmessage: ((event: MessageEvent<ToGrammars>) => void) | null;
  postMessage(message: FromGrammars): void;
}

/** Compiles and matches grammars for the thread at the other end, until that ends this one. */
export function serveGrammars(port: GrammarPort): void {
  let grammars: LocalGrammars;
  let mailbox: Mailbox;
  let words = 0;
  const open = new Map<number, Constraint>();
  let opened = 0;

  async function receive(message: ToGrammars): Promise<FromGrammars> {
    if (message.kind === "vocabulary") {
      const { openGrammars } = await import("../grammars.ts");
      const vocabulary = vocabularyOf(message.vocabulary);
      words = Math.ceil(vocabulary.vocabSize / 32);
      grammars = openGrammars(vocabulary, { check: checkInterrupted });
      mailbox = new Mailbox(message.mailbox);
      await grammars.load();
      return { kind: "ready" };
    }
    try {
      const { grammar, ignoreEos } = message;
      const constraint = await grammars.open(grammar, { ignoreEos });
      const handle = opened++;
      open.set(handle, constraint);
      return { kind: "opened", handle, complete: constraint.complete };
    } catch (error) {
      return { kind: "refused", message: grammarFault(error).message };
    }
  }

  function checkInterrupted(): void {
    if (mailbox.interrupted) throw new GrammarInterrupted("it was interrupted");
  }

  function answer({ command, handle, argument = 0, proposal }: Call): Answer & { leave?: boolean } {
    if (command === LEAVE) return { value: 0, leave: true };
    const constraint = open.get(handle);
    if (!constraint || !proposal) throw new Error(`the constraint ${handle} is not open`);
    switch (command) {
      case TAKE:
        return { value: taken(constraint, proposal.tokens) };
      case FORCED:
        return { value: 0, proposal: constraint.forced(argument) };
      case PRUNED:
        return { value: 0, proposal: constraint.pruned(proposal) };
      case FILL: {
        const rows = proposal.tokens.length + 1;
        constraint.fill(proposal, mailbox.masks.subarray(0, rows * words));
        return { value: rows };
      }
      case CLOSE:
        open.delete(handle);
        constraint.close();
        return { value: 0, leave: open.size === 0 };
      default:
        throw new Error(`no such call: ${command}`);
    }
  }

  port.onmessage = async ({ data }) => {
    port.postMessage(await receive(data));
    if (open.size > 0) mailbox.serve(answer, () => port.postMessage({ kind: "called" }));
  };
  port.postMessage({ kind: "started" });
}

/**
 * Takes tokens up to one that fails or behind which the output ends. One that fails fails again.
 *
 * @returns twice their number, and 1 more if the output ends.
 */
function taken(constraint: Constraint, tokens: readonly number[]): number {
  for (const [i, token] of tokens.entries()) {
    try {
      constraint.take(token);
    } catch (error) {
      if (i === 0) throw error;
      return 2 * i;
    }
    if (constraint.complete) return 2 * i + 3;
  }
  return 2 * tokens.length;
}
