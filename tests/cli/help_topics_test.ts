import { deepEqual, equal, ok, throws } from "node:assert/strict";
import { helpTopic } from "../../src/cli/help/help_topic.ts";
import { plainText } from "../../src/cli/help/plain.ts";
import { sectionOf } from "../../src/cli/help/section.ts";
import { type Topic, TOPIC_NAMES, TOPICS } from "../../src/cli/help/topics.ts";
import { parseArguments } from "../../src/cli/options/parse.ts";
import { POLICY_NAMES } from "../../src/cli/options/option_speculation.ts";

const ROOT = new URL("../../", import.meta.url);
const PAGE = `# Foxes

They are **red**, see [the page](foxes.md) ([why](why.md)) and \`num_steps\`.

\`\`\`sh
# not a heading
eyrie chat
\`\`\`

![A fox](fox.png)

## What they eat

| food  | when          | how much |
| ----- | ------------- | -------- |
| mice  | at _night_    | a lot    |
| a\\|b  |               | \`x \\| y\`  |

### Seldom

- Grapes, which hang so high that this item has to go on in a second line of its own.
- Cheese.

## Where

Woods.
`;

Deno.test("a section ends at the next heading of its level; the first one has none", () => {
  equal(sectionOf(PAGE, "Where"), "Woods.");
  ok(sectionOf(PAGE, "What they eat").endsWith("- Cheese."));
  equal(sectionOf(PAGE, "Seldom").split("\n").length, 2);
  ok(sectionOf(PAGE).startsWith("They are"));
  ok(sectionOf(PAGE).endsWith("![A fox](fox.png)"));
  throws(() => sectionOf(PAGE, "not a heading"), /no heading "not a heading"/);
});

Deno.test("Markdown becomes plain text of 80 columns", () => {
  equal(
    plainText(sectionOf(PAGE)),
    "They are red, see the page and num_steps.\n\n  # not a heading\n  eyrie chat",
  );
  equal(
    plainText(sectionOf(PAGE, "What they eat")),
    `  mice
      when: at night
      how much: a lot
  a|b
      how much: x | y

Seldom:

- Grapes, which hang so high that this item has to go on in a second line of its
  own.
- Cheese.`,
  );
});

for (const name of TOPIC_NAMES as readonly Topic[]) {
  Deno.test(`eyrie help ${name}`, async () => {
    deepEqual(parseArguments(["help", name]), { command: "topic", topic: name, all: false });
    const text = helpTopic(name, { all: false });
    ok(text.startsWith(`eyrie help ${name} - ${TOPICS[name]}\n\n`));
    const [, path = "", ...rest] = /\n\nThe whole page \((docs\/\S+)\): eyrie (.+)\n$/.exec(text) ??
      [];
    // A user who has only the program can read the other topics too.
    deepEqual(parseArguments(rest.join(" ").split(" ")), {
      command: "topic",
      topic: name,
      all: true,
    });
    const whole = helpTopic(name, { all: true });
    ok(whole.length >= text.length - 60 && whole.endsWith(`\n\nThis is ${path}\n`));
    ok((await Deno.stat(new URL(path, ROOT))).isFile);
    const lines = text.split("\n");
    ok(lines.length > 10, `${lines.length} lines`);
    // Code is printed unchanged.
    const wide = lines.filter((line) => line.length > 80 && !/^ {2}(eyrie|curl) /.test(line));
    deepEqual(wide, []);
    deepEqual(lines.filter((line) => /\*\*|\]\(|^\||^#/.test(line)), []);
  });
}

Deno.test("help on policies has them all", () => {
  const text = helpTopic("policies", { all: false });
  deepEqual(POLICY_NAMES.filter((name) => !text.includes(name)), []);
});

Deno.test("what is no topic is refused, with those that may be meant", () => {
  throws(() => parseArguments(["help", "polices"]), /no such command or topic, did you mean polic/);
  throws(() => parseArguments(["help", "trees", "x"]), /Cannot use "x" after "help trees"/);
  throws(() => parseArguments(["trees"]), /Cannot run "trees"/);
});

Deno.test("every variable that is read is on its page", async () => {
  const page = await Deno.readTextFile(new URL("docs/environment.md", ROOT));
  const read = new Set<string>();
  for await (const text of sources(new URL("src/", ROOT))) {
    if (!/\benv\b/.test(text)) continue;
    for (const [, name = ""] of text.matchAll(/"([A-Z]+(?:_[A-Z]+)+|HOME|[A-Z]{9,})"/g)) {
      read.add(name);
    }
  }
  ok(read.size > 12, [...read].join(" "));
  deepEqual([...read].filter((name) => !page.includes(name)), []);
});

async function* sources(folder: URL): AsyncGenerator<string> {
  for await (const { name, isDirectory } of Deno.readDir(folder)) {
    if (isDirectory) yield* sources(new URL(`${name}/`, folder));
    else if (name.endsWith(".ts")) yield await Deno.readTextFile(new URL(name, folder));
  }
}
