import { UsageError } from "../../errors.ts";
import { drawFrom } from "./draw.ts";
import type { Prompt } from "./prompt.ts";
import { fileExamples, specBenchExamples } from "./prompt_file.ts";
import { EASY, HARD, type TaskName, taskPrompt, TASKS } from "./tasks.ts";

/** A source of the prompts of cells. */
export interface Workload {
  /** The name as it is written on the command line. */
  readonly name: string;
  /** True if answers are not texts and end only at the most tokens. */
  readonly ignoreEos: boolean;
  /** True if prompts have the length of the case. */
  readonly sized: boolean;
  /** The prompts of a cell in their order, of which `batch` run at a time. The same seed gives the same prompts. */
  prompts(cell: { readonly batch: number; readonly seed: number }): Prompt[];
}

const RANDOM = "random";
/** The number of requests in each slot of the batch, one after the other, because answers may be short. */
const PER_PLACE = 4;
/** The number of requests of a phase in each slot; a cell has the phases easy, hard, easy, hard. */
const PHASE = 4;
const PHASES = 4;

/** The workload of `--workload`. `read` returns the text of a file. @throws UsageError */
export function openWorkload(name: string, read: (path: string) => string): Workload {
  const [kind, rest] = splitOnce(name);
  switch (kind) {
    case "fledgling":
      return fledgling(name, rest);
    case "file":
      return fromExamples(name, fileExamples(rest, read(rest)));
    case "spec-bench":
      return fromExamples(name, specBenchExamples(rest, read(rest)));
  }
  if (name === "phases") return phases(name);
  if (name === RANDOM) return random(name);
  throw new UsageError(
    `Cannot use "--workload ${name}": allowed is fledgling:TASK, phases, file:PROMPTS.jsonl, ` +
      `spec-bench:FILE, random`,
  );
}

/** The workload of a case: random prompts if the case names them, else the workload of the sweep. */
export function workloadOf(
  { workload: name }: { readonly workload: string },
  of: Workload,
): Workload {
  return name === RANDOM ? random(name) : of;
}

function splitOnce(name: string): [kind: string, rest: string] {
  const at = name.indexOf(":");
  return at < 0 ? [name, ""] : [name.slice(0, at), name.slice(at + 1)];
}

function fledgling(name: string, task: string): Workload {
  if (task !== "all" && !TASKS.some((known) => known === task)) {
    throw new UsageError(
      `Cannot use "--workload ${name}": tasks are all, ${TASKS.join(", ")}`,
    );
  }
  const tasks = task === "all" ? TASKS : [task as TaskName];
  return textWorkload(
    name,
    ({ batch, seed }) =>
      Array.from({ length: PER_PLACE * batch }, (_, at) => {
        // Start at another task in each block: few requests should still see all of them.
        const group = tasks[(seed + at) % tasks.length] as TaskName;
        return ask(group, taskPrompt(group, drawFrom(seed, at)));
      }),
  );
}

function phases(name: string): Workload {
  return textWorkload(
    name,
    ({ batch, seed }) =>
      Array.from({ length: PHASES * PHASE * batch }, (_, at) => {
        const phase = Math.floor(at / (PHASE * batch)) % 2 === 0 ? "easy" : "hard";
        const draw = drawFrom(seed, at);
        const task = draw.one(phase === "easy" ? EASY : HARD);
        return ask(`${phase} ${task}`, taskPrompt(task, draw));
      }),
  );
}

function random(name: string): Workload {
  return {
    name,
    ignoreEos: true,
    sized: true,
    prompts: ({ batch, seed }) =>
      Array.from({ length: batch }, (_, at) => ({
        kind: "random",
        group: "random",
        seed: drawFrom(seed, at).integer(0, 2 ** 32 - 1),
      })),
  };
}

/** A workload of examples in their order, from one that the seed draws, beginning again after the last. */
function fromExamples(name: string, examples: readonly Prompt[]): Workload {
  return textWorkload(name, ({ batch, seed }) => {
    const first = drawFrom(seed, 0).integer(0, examples.length - 1);
    return Array.from(
      { length: PER_PLACE * batch },
      (_, at) => examples[(first + at) % examples.length] as Prompt,
    );
  });
}

function textWorkload(name: string, prompts: Workload["prompts"]): Workload {
  return { name, ignoreEos: false, sized: false, prompts };
}

function ask(group: string, content: string): Prompt {
  return { kind: "chat", group, messages: [{ role: "user", content }], followUps: [] };
}
