import { deepEqual, equal, notDeepEqual, ok, throws } from "node:assert/strict";
import { drawFrom, randomIds } from "../../src/measure/workload/draw.ts";
import { taskPrompt, TASKS } from "../../src/measure/workload/tasks.ts";
import type { Prompt } from "../../src/measure/workload/prompt.ts";
import { openWorkload } from "../../src/measure/workload/workload.ts";
import { UsageError } from "../../src/errors.ts";

const noFile = (path: string): string => {
  throw new Error(`read ${path}`);
};
const groups = (prompts: readonly Prompt[]) => prompts.map(({ group }) => group);
const texts = (prompts: readonly Prompt[]) =>
  prompts.map((prompt) =>
    prompt.kind === "chat" ? prompt.messages.at(-1)?.content ?? "" : prompt.kind
  );

Deno.test("each task gives different prompts of its kind, the same for a seed", () => {
  const shapes: Record<string, RegExp> = {
    count:
      /^(Count (down )?from|Please count from|Write the numbers from) \d+ (up )?to \d+( by \d+)?\.$/,
    spell: /^(Spell the word|How do you spell) [a-z]+[.?]$/,
    reverse: /^Reverse this list: [a-z]+(, [a-z]+){2,6}\.$/,
    sort_words: /^Sort these words: [a-z]+(, [a-z]+){2,5}\.$/,
    table: /table (of|for) \d+ up to (5|10|12)\.$/,
    to_json: /JSON.*: [A-Z][a-z]+ is \d\d years old, lives in .*, works as a .* and likes .*\.$/,
    story: /stor.*\.$/,
    poem: /poem about (the|a) [a-z]+\.$/,
    random_words: /^(Give me|List) \d+ random words\.$/,
    random_numbers: /random numbers( below 1000)?\.$/,
    code: /^Write a (TypeScript|Python) /,
    chat: /./,
  };
  deepEqual(TASKS, Object.keys(shapes));
  for (const task of TASKS) {
    const prompts = Array.from({ length: 50 }, (_, at) => taskPrompt(task, drawFrom(1, at)));
    for (const prompt of prompts) ok(shapes[task]?.test(prompt), `${task}: ${prompt}`);
    ok(new Set(prompts).size > 3, task);
    equal(taskPrompt(task, drawFrom(1, 7)), prompts[7]);
  }
});

Deno.test("fledgling:TASK and fledgling:all", () => {
  const count = openWorkload("fledgling:count", noFile);
  const prompts = count.prompts({ batch: 2, seed: 1 });
  deepEqual(groups(prompts), Array(8).fill("count"));
  deepEqual(prompts, count.prompts({ batch: 2, seed: 1 }));
  notDeepEqual(prompts, count.prompts({ batch: 2, seed: 2 }));
  // A larger batch has the same requests and more.
  deepEqual(count.prompts({ batch: 4, seed: 1 }).slice(0, 8), prompts);
  const all = openWorkload("fledgling:all", noFile).prompts({ batch: 3, seed: 0 });
  deepEqual(groups(all), TASKS);
  deepEqual([count.sized, count.ignoreEos], [false, false]);
});

Deno.test("phases: easy, hard, easy, hard, whatever the batch", () => {
  const phases = openWorkload("phases", noFile);
  for (const batch of [1, 3]) {
    const kinds = groups(phases.prompts({ batch, seed: 4 })).map((group) => group.split(" ")[0]);
    const phase = (kind: string) => Array(4 * batch).fill(kind);
    deepEqual(kinds, [...phase("easy"), ...phase("hard"), ...phase("easy"), ...phase("hard")]);
  }
});

Deno.test("random: ids of the length that the case says", () => {
  const random = openWorkload("random", noFile);
  deepEqual([random.sized, random.ignoreEos], [true, true]);
  const prompts = random.prompts({ batch: 2, seed: 3 });
  deepEqual(texts(prompts), ["random", "random"]);
  const seeds = prompts.map((prompt) => prompt.kind === "random" ? prompt.seed : NaN);
  equal(new Set(seeds).size, 2);
  const ids = randomIds(1000, { vocabulary: 50, seed: seeds[0] ?? 0 });
  equal(ids.length, 1000);
  ok(ids.every((id) => Number.isInteger(id) && id >= 0 && id < 50));
  equal(new Set(ids).size, 50);
});

Deno.test("file: prompts and conversations, blank lines, other fields", () => {
  const lines = [
    '{"prompt": "one", "seed": 3}',
    "",
    '{"messages": [{"role": "user", "content": "two"}]}\r',
    '{"prompt": "three"}',
  ];
  const file = openWorkload("file:a:b.jsonl", (path) => {
    equal(path, "a:b.jsonl");
    return lines.join("\n");
  });
  const prompts = file.prompts({ batch: 1, seed: 1 });
  equal(prompts.length, 4);
  deepEqual(new Set(prompts).size, 3);
  deepEqual(prompts[3], prompts[0]);
});

Deno.test("spec-bench: first turn asked, others follow", () => {
  const line = '{"question_id": 81, "category": "writing", "turns": ["first", "second"]}';
  const prompts = openWorkload("spec-bench:q.jsonl", () => line).prompts({ batch: 1, seed: 1 });
  deepEqual(prompts[0], {
    kind: "chat",
    group: "writing",
    messages: [{ role: "user", content: "first" }],
    followUps: ["second"],
  });
});

Deno.test("mistakes name the line", () => {
  const good = '{"prompt": "a"}';
  const cases: [string, string, RegExp][] = [
    ["file:f", `${good}\n{`, /^Cannot read prompts from "f": line 2: not JSON: /],
    ["file:f", `${good}\n\n[1]`, /^Cannot read prompts from "f": line 3: expected a JSON object$/],
    ["file:f", "{}", /line 1: expected either prompt, a text, or messages/],
    ["file:f", '{"prompt": ""}', /line 1: expected either/],
    ["file:f", '{"prompt": "a", "messages": []}', /line 1: expected either/],
    ["file:f", '{"messages": [{"role": "user"}]}', /line 1: expected either/],
    ["file:f", "\n \n", /^Cannot read prompts from "f": the file has no line$/],
    ["spec-bench:f", good, /line 1: expected turns, a list of texts$/],
    ["spec-bench:f", '{"turns": []}', /line 1: expected turns/],
    ["fledgling:fly", "", /tasks are all, count, spell/],
    ["fledgling", "", /tasks are all, count, spell/],
    ["phase", "", /^Cannot use "--workload phase": allowed is fledgling:TASK, phases, /],
  ];
  for (const [name, text, message] of cases) {
    throws(() => openWorkload(name, () => text), (error) => {
      ok(error instanceof UsageError, name);
      ok(message.test(error.message), error.message);
      return true;
    });
  }
});
