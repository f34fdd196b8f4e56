// Tokens a round by task: the embedded model's EAGLE-3 head (3 steps), and the drafters on the host.
//
//   deno run -A lab/drafters.ts [--prompts N] [--temperature T] [--only TASK]
//
// A chat asks for the same kind of thing again, as when a file is edited: its answers repeat text that is
// above them. The replays are texts that the embedded model cannot write: a drafter's proposals are
// compared with the text, which needs no model. Every answer is compared with that of plain decoding.
import assert from "node:assert/strict";
import process from "node:process";
import { parseArgs } from "node:util";
import { markdownTable } from "markdown-table";
import { drawFrom } from "../src/measure/workload/draw.ts";
import { taskPrompt, TASKS } from "../src/measure/workload/tasks.ts";
import { HOST_DRAFT_TOKENS, type HostAlgorithm, hostDrafter } from "../src/draft/algorithms.ts";
import { statically } from "../src/engine/drafting.ts";
import { type LocalEngine, openEngine } from "../src/engine/open.ts";
import { resultOf } from "../src/engine/schedule/events.ts";
import { GREEDY } from "../src/speculate/sampling.ts";
import type { ChatMessage } from "../src/text/chat_template.ts";

const { values: flags } = parseArgs({
  options: {
    prompts: { type: "string", default: "5" },
    temperature: { type: "string", default: "0" },
    only: { type: "string" },
  },
});

const ALGORITHMS = ["EAGLE3", "NGRAM", "SUFFIX", "HYBRID"] as const;

/** Messages that follow each other in one chat. */
type Chat = readonly string[];

interface Task {
  readonly name: string;
  readonly chats: readonly Chat[];
}

interface Rounds {
  tokens: number;
  rounds: number;
}

/** The prompts that the model was tested with: one of each of its 22 tasks. */
function goldenPrompts(): { readonly task: string; readonly prompt: string }[] {
  const path = new URL("../tests/golden/fledgling.json", import.meta.url);
  return JSON.parse(Deno.readTextFileSync(path)).cases;
}

function tasks(count: number): Task[] {
  const draw = drawFrom(1, 0);
  const golden = goldenPrompts().map(({ task, prompt }): Task => {
    const known = TASKS.find((name) => name === task);
    const more = known ? Array.from({ length: count - 1 }, () => [taskPrompt(known, draw)]) : [];
    return { name: task, chats: [[prompt], ...more] };
  });
  const turns = (task: (typeof TASKS)[number]): Task => ({
    name: `${task}, chat of 6`,
    chats: Array.from({ length: 2 }, () => Array.from({ length: 6 }, () => taskPrompt(task, draw))),
  });
  return [...golden, turns("to_json"), turns("code"), turns("table")];
}

async function answer(engine: LocalEngine, chat: Chat, rounds: Rounds): Promise<string[]> {
  const messages: ChatMessage[] = [];
  const answers: string[] = [];
  for (const content of chat) {
    messages.push({ role: "user", content });
    const { text, outputIds, speculative } = await resultOf(engine.submit({
      promptIds: engine.text.encodePrompt({ messages }),
      sampling: { ...GREEDY, temperature: Number(flags.temperature), seed: 7 },
      maxTokens: 160,
      stop: [],
      ignoreEos: false,
    }));
    rounds.tokens += outputIds.length - 1;
    rounds.rounds += speculative.rounds;
    messages.push({ role: "assistant", content: text });
    answers.push(text);
  }
  return answers;
}

function open(algorithm: typeof ALGORITHMS[number] | "NONE"): Promise<LocalEngine> {
  return openEngine({
    model: { algorithm },
    hooks: algorithm === "NONE" ? {} : { plan: statically(3, [0, 3]) },
  });
}

/** Two pairs of texts: a file and its edit (a name changed, a line removed), a list of objects and its edit. */
function replays(
  engine: LocalEngine,
): { readonly name: string; readonly ids: [number[], number[]] }[] {
  const file = Deno.readTextFileSync(new URL("../src/draft/ngram.ts", import.meta.url));
  const edited = file.replaceAll("longestMatch", "findMatch").replace(/\n.*const last.*\n/, "\n");
  const objects = Array.from(
    { length: 12 },
    (_, i) => ({ id: i, name: `item ${i * 37 % 101}`, size: i * i }),
  );
  const changed = objects.map((each, i) => i % 4 ? each : { ...each, size: each.size + 1 });
  const json = (value: unknown) => JSON.stringify(value, undefined, 2);
  const pairs: [string, string, string][] = [
    ["a file, edited (replay)", file, edited],
    ["JSON, some values changed (replay)", json(objects), json(changed)],
    ["JSON, copied (replay)", json(objects), json(objects)],
  ];
  return pairs.map(([name, ...texts]) => {
    const [before, after] = texts.map((raw) => engine.text.encodePrompt({ raw })) as [
      number[],
      number[],
    ];
    return { name, ids: [before, after] };
  });
}

/** Plays a known text and counts how many tokens of a host drafter's proposals are accepted. */
function replay(algorithm: HostAlgorithm, [before, after]: readonly [number[], number[]]): number {
  const drafter = hostDrafter(algorithm).open(before);
  const ids = [...before, after[0] as number];
  const end = before.length + after.length;
  const whole = [...before, ...after];
  let rounds = 0;
  while (ids.length < end) {
    const depth = Math.min(HOST_DRAFT_TOKENS - 1, end - ids.length - 1);
    const { tokens } = drafter.propose(ids, { count: depth, depth, device: 0 });
    let accepted = 0;
    while (accepted < tokens.length && tokens[accepted] === whole[ids.length + accepted]) {
      accepted++;
    }
    ids.push(...whole.slice(ids.length, ids.length + accepted + 1));
    rounds++;
  }
  return (after.length - 1) / rounds;
}

const all = tasks(Number(flags.prompts)).filter(({ name }) =>
  !flags.only || name.startsWith(flags.only)
);
const expected = new Map<Chat, string[]>();
{
  using engine = await open("NONE");
  for (const { chats } of all) {
    for (const chat of chats) {
      expected.set(chat, await answer(engine, chat, { tokens: 0, rounds: 0 }));
    }
  }
}
const found = new Map<string, Rounds>();
const replayed: string[][] = [];
for (const algorithm of ALGORITHMS) {
  using engine = await open(algorithm);
  // Tasks take turns, so that a drafter remembers answers of all kinds.
  const most = Math.max(...all.map(({ chats }) => chats.length));
  for (let at = 0; at < most; at++) {
    for (const { name, chats } of all) {
      const chat = chats[at];
      if (chat === undefined) continue;
      const rounds = found.getOrInsertComputed(
        `${algorithm} ${name}`,
        () => ({ tokens: 0, rounds: 0 }),
      );
      assert.deepEqual(await answer(engine, chat, rounds), expected.get(chat), name);
    }
  }
  for (const [i, { name, ids }] of (flags.only ? [] : replays(engine)).entries()) {
    const row = replayed[i] ??= [name];
    row.push(algorithm === "EAGLE3" ? "" : replay(algorithm, ids).toFixed(2));
  }
}

const cell = ({ tokens, rounds }: Rounds) => (tokens / rounds).toFixed(2);
const row = (name: string) => ALGORITHMS.map((each) => found.get(`${each} ${name}`) as Rounds);
const sum = (each: readonly Rounds[]): Rounds => ({
  tokens: each.reduce((total, { tokens }) => total + tokens, 0),
  rounds: each.reduce((total, { rounds }) => total + rounds, 0),
});
const total = ALGORITHMS.map((each) =>
  sum(all.map(({ name }) => found.get(`${each} ${name}`) as Rounds))
);
const table = markdownTable(
  [
    ["task", "tokens", ...ALGORITHMS],
    ...all.map(({ name }) => [name, String(row(name)[0]?.tokens), ...row(name).map(cell)]),
    ["all", String(total[0]?.tokens), ...total.map(cell)],
    ...replayed.map(([name = "", ...cells]) => [name, "", ...cells]),
  ],
  { align: ["l", "r", "r", "r", "r", "r"] },
);
process.stdout.write(`${table}\n`);
