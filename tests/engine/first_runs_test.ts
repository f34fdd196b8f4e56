import { deepEqual, equal, ok } from "node:assert/strict";
import { type CompileProgress, firstRuns } from "../../src/engine/device/first_runs.ts";
import type { Step } from "../../src/gpu/program.ts";
import type { Submission } from "../../src/engine/device/submit/submit.ts";

/** A step of the pipeline of this name. */
function fakeSteps(...names: string[]): Step[] {
  return names.map((name) => ({ pipeline: PIPELINES[name], label: name }) as unknown as Step);
}

const PIPELINES: Record<string, object> = { a: {}, b: {}, c: {} };

Deno.test("kernels run for the first time in their order, one more in each part, and only once", async () => {
  const runs: string[] = [];
  let forgotten = 0;
  const submitter = {
    async run({ programs }: Submission) {
      runs.push(programs.flatMap(({ steps }) => steps.map(({ label }) => label)).join(" "));
      await new Promise((resolve) => setTimeout(resolve, 2));
      return { words: new Uint32Array(), extra: new Uint32Array(), ms: [] };
    },
    forget: () => void forgotten++,
  };
  const firsts = firstRuns(submitter);
  const programs = [{ steps: fakeSteps("a", "a", "b") }, { steps: fakeSteps("a") }];
  const told: CompileProgress[] = [];
  equal(firsts.missing(programs), 2);
  await firsts.run(programs, (progress) => told.push(progress));
  deepEqual(runs.splice(0), ["a", "a b"]);
  deepEqual(told.splice(0), [{ done: 0, total: 2 }, { done: 1, total: 2 }, { done: 2, total: 2 }]);
  equal(forgotten, 1);
  ok(firsts.ms > 0);

  const before = firsts.ms;
  await firsts.run(programs, (progress) => told.push(progress));
  deepEqual([runs, told, firsts.missing(programs), firsts.ms], [[], [], 0, before]);
  await firsts.run([{ steps: fakeSteps("b", "c") }], (progress) => told.push(progress));
  deepEqual(runs, ["b c"]);
  deepEqual(told, [{ done: 2, total: 3 }, { done: 3, total: 3 }]);

  const another = firstRuns(submitter); // an engine with the same pipelines
  await another.run(programs, () => {});
  deepEqual([another.missing(programs), another.ms, runs.length], [0, 0, 1]);
});
