import { resultWords } from "../../../model/device_layout.ts";
import type { PromptPrograms } from "../programs.ts";
import type { Submission } from "./submit.ts";

/** From this many rows on, a forward of an 8B model takes 20 ms or more on the fastest GPUs. */
const LASTING_ROWS = 256;

/** Which programs of a forward of prompts are run. */
interface Forward extends Pick<Submission, "extra"> {
  /** Rows of the programs, padding included. */
  readonly rows: number;
  /** Prompts that end in it, padding included, for which the target chooses; 0: none. */
  readonly heads: number;
  /** The draft stores the rows too. */
  readonly drafts: boolean;
}

/** Makes the submission of each kind of forward only once, so that the next one of a kind can be encoded ahead. */
export function promptWorks(): (programs: PromptPrograms, forward: Forward) => Submission {
  const known = new WeakMap<PromptPrograms, Map<string, Submission>>();
  return (programs, { rows, heads, drafts, ...extra }) => {
    const { body, head, draft, draftHead } = programs;
    const own = drafts ? [draft] : [];
    const works = known.getOrInsertComputed(programs, () => new Map());
    return works.getOrInsertComputed(`${heads} ${drafts}`, () => ({
      programs: heads > 0 ? [body, head, ...own, ...drafts ? [draftHead] : []] : [body, ...own],
      words: heads * resultWords(1),
      lasting: rows >= LASTING_ROWS,
      ...extra,
    }));
  };
}
