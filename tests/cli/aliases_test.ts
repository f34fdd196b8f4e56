import assert from "node:assert/strict";
import { ALIASES, OPERAND_ALIASES } from "../../src/cli/options/aliases.ts";
import type { CommandName } from "../../src/cli/options/command.ts";
import { COMMANDS, flagsOf } from "../../src/cli/options/commands.ts";
import { messageAsTyped, parseArguments } from "../../src/cli/options/parse.ts";
import { UsageError } from "../../src/errors.ts";
import type { Settings } from "../../src/cli/options/settings.ts";

/** The options that the command is run with. Its flags are the words of the line. */
function optionsOf(line: string, settings?: Partial<Settings>): unknown {
  const none = { env: () => undefined, path: undefined, text: undefined };
  const invocation = parseArguments(line.split(" "), () => ({ ...none, ...settings }));
  assert.ok("options" in invocation, line);
  return invocation;
}

/** Pairs of equivalent command lines: with aliases, and with the flags that the aliases stand for. */
const SAME: readonly (readonly [string, string])[] = [
  ["generate --speculative-draft-model-path a --model b", "generate --draft a --model b"],
  ["generate --speculative-num-steps 2", "generate --num-steps 2"],
  ["generate --speculative-num-steps=2", "generate --num-steps 2"],
  ["generate --speculative-token-map x.pt", "generate --token-map x.pt"],
  ["generate --num-steps 2 --speculative-num-steps 3", "generate --num-steps 3"],
  [
    "generate --num-steps 5 --speculative-eagle-topk 4 --speculative-num-draft-tokens 16",
    "generate --num-steps 5 --draft-tree topk=4,tokens=16",
  ],
  [
    "generate --speculative-eagle-topk=4 --num-steps 5",
    "generate --num-steps 5 --draft-tree topk=4",
  ],
  [
    "chat --speculative-adaptive --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
    "chat --policy ema --num-steps 3 --draft-tree topk=1,tokens=4",
  ],
  ["generate --draft d --speculative-algorithm EAGLE", "generate --draft d --drafter EAGLE"],
  [
    "generate --ngram-min 20 --ngram-max 30 --speculative-algorithm NGRAM",
    "generate --drafter NGRAM:min=20,max=30",
  ],
  ["generate --drafter HYBRID:min=2 --ngram-max 5", "generate --drafter HYBRID:min=2,max=5"],
  ["generate --speculative-rejection", "generate --acceptance token"],
  ["generate --speculative-block-verification", "generate --acceptance block"],
  [
    "generate --speculative-use-rejection-sampling --speculative-use-block-verification",
    "generate --acceptance block",
  ],
  [
    "generate --speculative-block-verification --speculative-rejection",
    "generate --acceptance block",
  ],
  [
    "generate --speculative-accept-threshold-single 0.3 --speculative-accept-threshold-acc=.5",
    "generate --acceptance relaxed:single=0.3,acc=.5",
  ],
  [
    "simulate --request-rate 2 --acceptance geometric:0.5",
    "simulate --request-rate 2 --simulate-acceptance geometric:0.5",
  ],
  ["generate --speculative-adaptive", "generate --policy ema"],
  [
    "generate --speculative-adaptive --policy ema:generation=doc",
    "generate --policy ema:generation=doc",
  ],
  [
    "serve --speculative-adaptive-config c.json --speculative-adaptive",
    "serve --policy ema:config=c.json",
  ],
  [
    "serve --speculative-adaptive --speculative-adaptive-config=c.json",
    "serve --policy ema:config=c.json",
  ],
  ["generate --preset aggressive", "generate --policy ema:config=aggressive"],
  [
    "bench --presets aggressive,mine.json --policies dsd:steps=1/3",
    "bench --policy dsd:steps=1/3,ema:config=aggressive,ema:config=mine.json",
  ],
  ["bench --policies ema,off --trees 5:4:8", "bench --policy ema,off --draft-tree 5:4:8"],
  [
    "bench --random-weights a.json,b.json --growth",
    "bench --model random:a.json,random:b.json --table growth",
  ],
  [
    "profile --random-weights a.json --random-draft b.json",
    "profile --model random:a.json --draft random:b.json",
  ],
  ["generate --prompt hi --seed 1", "generate hi --seed 1"],
  ["generate -p hi", "generate hi"],
  ["token-map --corpus a.txt,b.txt --output m.json", "token-map --output m.json a.txt b.txt"],
  ["simulate --time-scale 2 --trace t.csv", "simulate --trace t.csv:time=2"],
  [
    "bench load --trace t.csv --length-scale 0.5 --time-scale=2",
    "bench load --trace t.csv:length=0.5,time=2",
  ],
  ["bench --profile", "bench --table profile"],
  ["bench --growth --growth", "bench --table growth"],
  ["bench --rewrites", "bench --table rewrites"],
  ["bench --llama-bench", "bench --table llama-bench"],
  ["profile --seconds 3", "profile --duration 3"],
  [
    "bench load --rate-schedule 0:2,9:4 --duration 10",
    "bench load --request-rate 0:2,9:4 --duration 10",
  ],
  ["simulate --rate-schedule 0:2", "simulate --request-rate 0:2"],
  ["generate --json-object", "generate --json-schema object"],
  ["breakeven --alpha 0.5 --steps 1-3", "breakeven --alpha 0.5 --num-steps 1-3"],
  ["breakeven --measure --batch-size 4", "breakeven --measure --batch-sizes 4"],
  ["simulate --batches 1,4", "simulate --batch-sizes 1,4"],
  ["simulate --recorded x.jsonl", "simulate --recording x.jsonl"],
  ["simulate --request-rate 2 --kv-tokens 64", "simulate --request-rate 2 --max-kv-tokens 64"],
  ["bench --output html --output-file x.html", "bench --format html --output x.html"],
  ["bench --output=csv", "bench --format csv"],
  ["bench --output x.html", "bench --output x.html"],
  ["bench --wide", "bench --format md"],
  ["bench --wide --output html", "bench --format html"],
  ["breakeven --alpha 0.5 --json", "breakeven --alpha 0.5 --format json"],
  ["generate --batch - --output json", "generate --batch - --output json"],
  ["bench load --slo-ttft-ms 200 --slo-tpot-ms=50", "bench load --goodput ttft:200,tpot:50"],
  ["serve --any-model --served-model-name a", "serve --served-model-name * --served-model-name a"],
  [
    "serve-command m --config-file x --engine sglang",
    "serve-command sglang m --emit-config x",
  ],
  ["rm --yes org/name", "rm --force org/name"],
  ["bench load --record x", "bench load --recording x"],
  ["bench load --num-prompts 8", "bench load --num-requests 8"],
];

for (const [typed, meant] of SAME) {
  Deno.test(`aliases: "${typed}" is "${meant}"`, () => {
    assert.deepEqual(optionsOf(typed), optionsOf(meant));
  });
}

Deno.test("aliases: in the config file and in variables as on the command line", () => {
  const env = (name: string) => ({ EYRIE_SPECULATIVE_NUM_STEPS: "2" })[name];
  assert.deepEqual(optionsOf("generate", { env }), optionsOf("generate --num-steps 2"));
  const text = JSON.stringify({ speculative_num_steps: 2 });
  const file = { path: "eyrie.json", text };
  assert.deepEqual(optionsOf("generate", file), optionsOf("generate --num-steps 2"));
  assert.deepEqual(optionsOf("generate --steps 3", file), optionsOf("generate --num-steps 3"));
  const adaptive = JSON.stringify({
    "speculative-adaptive": true,
    "speculative-adaptive-config": "c.json",
    "speculative-eagle-topk": 1,
  });
  assert.deepEqual(
    optionsOf("generate --num-steps 3", { path: "eyrie.json", text: adaptive }),
    optionsOf("generate --num-steps 3 --policy ema:config=c.json --draft-tree topk=1"),
  );
  const old = { path: "eyrie.json", text: JSON.stringify({ output: "html", "output-file": "x" }) };
  assert.deepEqual(optionsOf("bench", old), optionsOf("bench --format html --output x"));
  const off = { path: "eyrie.json", text: JSON.stringify({ "speculative-adaptive": false }) };
  assert.deepEqual(optionsOf("generate", off), optionsOf("generate"));
});

Deno.test("aliases: an error is about what was typed", () => {
  const said = (line: string) => {
    const words = line.split(" ");
    try {
      parseArguments(words);
    } catch (error) {
      assert.ok(error instanceof UsageError);
      return messageAsTyped(error.message, words);
    }
    return "";
  };
  assert.match(
    said("generate --speculative-algorithm SUFFIX --speculative-adaptive --preset aggressive"),
    /^Cannot use "--speculative-adaptive --preset aggressive" with "--\S+ SUFFIX"/,
  );
  assert.match(
    said("generate --policy dsd --num-steps 3 --speculative-eagle-topk 4"),
    /^Cannot use "--policy dsd" with "--speculative-eagle-topk 4"/,
  );
  assert.match(said("generate --speculative-adaptive=1"), /takes no value/);
  assert.match(
    said("generate --acceptance token --speculative-accept-threshold-acc 0.5"),
    /^Cannot use "--speculative-accept-threshold-acc 0.5" with "--acceptance token": it means/,
  );
  assert.match(
    said("generate --speculative-accept-threshold-single 0.5 --speculative-accept-threshold-acc 2"),
    /^Cannot use "--speculative-accept-threshold-single 0.5 --speculative-accept-threshold-acc 2": /,
  );
  assert.match(said("generate --ngram-min 2"), /^Cannot use "--ngram-min 2": allowed is one of/);
  assert.match(
    said("generate --speculative-algorithm SUFFIX --ngram-min 2"),
    /^Cannot use "--speculative-algorithm SUFFIX --ngram-min 2": allowed is one of/,
  );
  assert.match(said("generate --preset"), /^Cannot use "--preset": TEXT is missing/);
});

Deno.test("aliases: each stands for a flag, is tested here, and help leaves it out", () => {
  const commands = (Object.keys(COMMANDS) as CommandName[]).map((name) => ({
    name,
    flags: new Set(Object.values(flagsOf(name)).map(({ flag }) => flag)),
  }));
  for (const [spelling, { flag, when }] of Object.entries(ALIASES)) {
    const having = commands.filter(({ flags }) => flags.has(flag));
    assert.ok(having.length > 0, `${spelling}: ${flag}`);
    const typed = SAME.some(([line]) => line.split(/[ =]/).includes(spelling));
    assert.ok(typed, `${spelling} is in no line of SAME`);
    if (when !== undefined) continue;
    for (const { name, flags } of having) {
      assert.ok(!flags.has(spelling), `${name} has a flag ${spelling} too`);
      const help = parseArguments([...name.split(" "), "--help", "all"]);
      assert.ok(help.command === "print" && !help.text.includes(`\n  ${spelling} `), spelling);
    }
  }
});

Deno.test("aliases: the table of docs/environment.md has each of them, and the flag that it stands for", async () => {
  const page = await Deno.readTextFile(new URL("../../docs/environment.md", import.meta.url));
  const rows = page.slice(page.indexOf("## Other spellings of flags")).split("\n")
    .map((line) => line.split("|")).filter((cells) => cells.length === 4);
  const words = (cell = ""): string[] => [...cell.match(/--?[a-z][a-z-]*/g) ?? []];
  for (const [spelling, { flag }] of Object.entries(ALIASES)) {
    const row = rows.find(([, typed]) => words(typed).includes(spelling));
    assert.ok(words(row?.[2]).includes(flag), `${spelling} is ${flag}`);
  }
  for (const [spelling, { operand, command }] of Object.entries(OPERAND_ALIASES)) {
    const row = rows.find(([, typed]) => words(typed).includes(spelling));
    assert.ok(row !== undefined, spelling);
    assert.ok(COMMANDS[command].operands?.some(({ name }) => name === operand), operand);
    assert.ok(SAME.some(([line]) => line.split(" ").includes(spelling)), spelling);
  }
});
