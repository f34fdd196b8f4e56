import { deepEqual, equal, ok } from "node:assert/strict";
import { COMMANDS, flagsOf } from "../src/cli/options/commands.ts";
import { ALIASES, OPERAND_ALIASES } from "../src/cli/options/aliases.ts";
import { spellingsOf } from "../src/cli/options/flag.ts";
import { parseArguments } from "../src/cli/options/parse.ts";
import type { CommandName } from "../src/cli/options/command.ts";
import { configPath } from "../src/cli/options/settings.ts";
import { historyPath } from "../src/cli/terminal/history.ts";
import { costsPath } from "../src/engine/tune/costs/costs_file.ts";
import { tuningPath } from "../src/engine/tune/tuning_file.ts";
import {
  anchorOf,
  brokenLinks,
  brokenPaths,
  brokenRevisions,
  checkoutPaths,
  commandsIn,
  conflictMarkers,
  flagsIn,
  readPages,
} from "./docs.ts";

/** Flags of other programs that the pages name: deno's, docker's, those of lab/. */
const OTHERS =
  "--all --allow-all --changed --config --lock --device --group-add --now --force --global --name --no-config --reload --filter --gpus --against --prompts --target --context --shares --times --v8-flags --expose-gc --trace-gc"
    .split(" ");

const pages = await readPages();

Deno.test("every link leads to a file that is there, and to a heading of it", async () => {
  const broken = await Promise.all([...pages].map(([page, text]) => brokenLinks(page, text)));
  deepEqual(broken.flat(), []);
});

Deno.test("docs/install.md prints the command that the task install runs", async () => {
  const { tasks } = JSON.parse(await Deno.readTextFile("deno.json"));
  ok(pages.get("docs/install.md")?.includes(`\`${tasks.install.command}\``));
});

Deno.test("no page has conflict markers", () => {
  deepEqual([...pages].flatMap(([page, text]) => conflictMarkers(page, text)), []);
  deepEqual(
    conflictMarkers(
      "a.md",
      "b\n<<<<<<< ours c\n||||||| base\n d ======= e\n>>>>>>> theirs\n========\n",
    ),
    [
      "a.md: <<<<<<< ours c",
      "a.md: ||||||| base",
      "a.md: ======= e",
      "a.md: >>>>>>> theirs",
    ],
  );
});

Deno.test("every path in code is one of this checkout", async () => {
  const paths = await checkoutPaths();
  deepEqual([...pages].flatMap(([page, text]) => brokenPaths(page, text, paths)), []);
});

Deno.test("every COMMIT:path is a file of that commit", async () => {
  const broken = await Promise.all([...pages].map(([page, text]) => brokenRevisions(page, text)));
  deepEqual(broken.flat(), []);
});

Deno.test("every flag in code is in the option table", () => {
  const known = new Set([
    ...OTHERS,
    ...Object.keys(ALIASES),
    ...Object.keys(OPERAND_ALIASES),
    "--help",
    "--version",
  ]);
  for (const name of Object.keys(COMMANDS) as CommandName[]) {
    for (const flag of Object.values(flagsOf(name))) spellingsOf(flag).forEach((x) => known.add(x));
  }
  const unknown = [...pages].flatMap(([page, text]) =>
    flagsIn(text).filter((flag) => !known.has(flag)).map((flag) => `${page}: ${flag}`)
  );
  deepEqual(unknown, []);
});

Deno.test("every command is one that Eyrie takes", () => {
  let count = 0;
  const refused: string[] = [];
  for (const [page, text] of pages) {
    for (const args of commandsIn(text)) {
      count++;
      try {
        // A command alone is its name in a sentence.
        parseArguments(args.length > 1 ? args : [...args, "--help"]);
      } catch (error) {
        refused.push(`${page}: eyrie ${args.join(" ")}: ${(error as Error).message}`);
      }
    }
  }
  deepEqual(refused, []);
  ok(count > 40, `${count} commands`);
});

Deno.test("what is wrong on a page is found", async () => {
  equal(anchorOf("`eyrie bench`: A/A, 95 %"), "eyrie-bench-aa-95-");
  const page = "[a](docs/chat.md#keys) [b](docs/chat.md#none) [c](none.md) [d](https://x.y)";
  deepEqual(await brokenLinks("README.md", page), [
    "README.md: docs/chat.md#none",
    "README.md: none.md",
  ]);
  const named = "`src/a.ts` `a.ts` `b/` `src/b/` `src/none.ts` `src/none/` `lab/none` `none.wgsl`";
  const paths = ["src/", "src/a.ts", "src/b/"];
  deepEqual(brokenPaths("README.md", `${named} \`453b584:lab/x.ts\``, paths), [
    "README.md: src/none.ts",
    "README.md: src/none",
    "README.md: lab/none",
    "README.md: none.wgsl",
  ]);
  const none = "`0000000:lab/x.ts`";
  deepEqual(await brokenRevisions("README.md", none), []);
  const code = "```sh\neyrie chat \\\n  --system 'Be brief.' # why\n```\n`--json-` or `eyrie\nls`";
  deepEqual(commandsIn(code), [["chat", "--system", "Be brief."], ["ls"]]);
  deepEqual(flagsIn(code), ["--system", "--json-"]);
});

Deno.test("docs/install.md names every file that the program leaves", () => {
  const text = pages.get("docs/install.md") ?? "";
  const env = (name: string) => name === "HOME" ? "/home/ada" : undefined;
  const tuning = tuningPath(env, "linux");
  const files = [tuning, costsPath(tuning), historyPath(env, "linux"), configPath(env, "linux")];
  for (const path of files) {
    const [, file] = /([^/]+\/[^/]+)$/.exec(path ?? "") ?? [];
    ok(file !== undefined && text.includes(file), file);
  }
});
