import { resultWords } from "../../../model/device_layout.ts";
import type { PromptPrograms } from "../programs.ts";
import type { Submission } from "./submit.ts";

/** Which of a prompt's programs are run. */
interface Chunk extends Pick<Submission, "extra"> {
  /** It is the last: the target chooses. */
  readonly done: boolean;
  /** The draft stores it too. */
  readonly drafts: boolean;
}

/** Makes what is to be submitted of prompts' programs, each once: the next of a kind is encoded ahead. */
export function promptWorks(): (programs: PromptPrograms, chunk: Chunk) => Submission {
  const known = new WeakMap<PromptPrograms, Map<string, Submission>>();
  return (programs, { done, drafts, ...extra }) => {
    const { body, head, draft, draftHead } = programs;
    const own = drafts ? [draft] : [];
    const works = known.getOrInsertComputed(programs, () => new Map());
    return works.getOrInsertComputed(`${done} ${drafts}`, () => ({
      programs: done ? [body, head, ...own, ...drafts ? [draftHead] : []] : [body, ...own],
      words: resultWords(1),
      ...extra,
    }));
  };
}
