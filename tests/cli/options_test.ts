import assert from "node:assert/strict";
import { ROUNDS } from "../../src/cli/options/option_flight.ts";
import { SHARE } from "../../src/engine/schedule/sync_interval.ts";
import { MOST_ROUNDS } from "../../src/engine/device/submit.ts";
import { allowed, type Flag } from "../../src/cli/options/flag.ts";
import { type CommandName, COMMANDS, flagsOf } from "../../src/cli/options/options.ts";
import { type Invocation, parseArguments } from "../../src/cli/options/parse.ts";
import { UsageError } from "../../src/errors.ts";

function message(args: readonly string[]): string {
  try {
    parseArguments(args);
  } catch (error) {
    assert.ok(error instanceof UsageError, String(error));
    assert.ok(!error.message.includes("\n"), "one line");
    return error.message;
  }
  assert.fail(`accepted: ${args.join(" ")}`);
}

function options(args: readonly string[]): Record<string, unknown> {
  const invocation = parseArguments(args);
  assert.ok("options" in invocation);
  return { ...invocation.options };
}

const ALL = (Object.keys(COMMANDS) as CommandName[]).flatMap((command) =>
  Object.entries(flagsOf(command)).map(([key, flag]) => ({ command, key, flag }))
);

/** What a command cannot do without. */
function needed(command: CommandName, but: Flag): string[] {
  const required = Object.values(flagsOf(command))
    .filter((flag) => "required" in flag && flag !== but)
    .flatMap((flag) => [flag.flag, "x"]);
  const operands = COMMANDS[command].operands?.filter((operand) => operand.required) ?? [];
  required.push(...operands.map(({ name }) => name));
  if (but.flag === "--random-draft") return ["--random-weights", "x", ...required];
  return but.flag === "--bandwidth" ? ["--profile", ...required] : required;
}

const GOOD: Record<Flag["type"], string> = {
  number: "0.5",
  integer: "2",
  text: "some text",
  model: "dir",
  file: "file",
  list: "END",
  axis: "1",
  names: "a,b",
  choice: "",
  switch: "",
};

for (const { command, key, flag } of ALL) {
  Deno.test(`${command} ${flag.flag}: good values, bad values, help`, () => {
    const rest = needed(command, flag);
    if (flag.type === "switch") {
      assert.equal(options([command, flag.flag, ...rest])[key], true);
      assert.equal(options([command, ...needed(command, flag)])[key], false);
      assert.match(message([command, `${flag.flag}=1`, ...rest]), /takes no value/);
    } else {
      const text = flag.type === "choice" ? flag.choices[0] ?? "" : GOOD[flag.type];
      const value = flag.type === "number" || flag.type === "integer" ? Number(text) : text;
      const lists: Partial<Record<Flag["type"], unknown>> = {
        list: [value],
        axis: [1],
        names: ["a", "b"],
      };
      const list = lists[flag.type] ?? value;
      for (const name of [flag.flag, flag.alias].filter((name) => name !== undefined)) {
        assert.deepEqual(options([command, name, text, ...rest])[key], list);
        assert.deepEqual(options([command, `${name}=${text}`, ...rest])[key], list);
        assert.match(message([command, ...rest, name]), /is missing; allowed is/);
        const said = message([command, `${name}=`, ...rest]);
        assert.equal(said, `Cannot use "${name} ": allowed is ${allowed(flag)}`);
      }
    }
    const help = parseArguments([command, "--help"]);
    assert.ok(help.command === "print" && help.text.includes(`example: ${flag.example}`));
  });

  if (flag.type !== "number" && flag.type !== "integer") continue;
  Deno.test(`${command} ${flag.flag}: range`, () => {
    const rest = needed(command, flag);
    const bad = [flag.min - 1, flag.max + 1, "x", "1x", "0x1", "Infinity", "NaN", "1_0", " 1"];
    if (flag.type === "integer") bad.push("1.5");
    if (flag.above) bad.push(flag.min);
    for (const text of bad) {
      const said = message([command, flag.flag, String(text), ...rest]);
      assert.equal(said, `Cannot use "${flag.flag} ${text}": allowed is ${allowed(flag)}`);
    }
    for (const edge of flag.above ? [flag.max] : [flag.min, flag.max]) {
      assert.equal(options([command, flag.flag, String(edge), ...rest])[key], edge);
    }
    const fallback = options([command, ...needed(command, flag)])[key];
    assert.equal(fallback, flag.default);
  });
}

Deno.test("choices outside the list are refused by name", () => {
  assert.equal(
    message(["generate", "--speculative-algorithm", "eagle"]),
    'Cannot use "--speculative-algorithm eagle": allowed is one of EAGLE, EAGLE3, NEXTN, STANDALONE, NONE',
  );
});

Deno.test("--rounds-per-sync is auto or any number that the engine takes", () => {
  const { choices } = ROUNDS.roundsPerSync;
  const numbers = Array.from({ length: MOST_ROUNDS }, (_, i) => `${i + 1}`);
  assert.deepEqual(choices, ["auto", ...numbers]);
  assert.ok(ROUNDS.roundsPerSync.absent.endsWith(` ${100 * SHARE} %`));
});

Deno.test("defaults of generate", () => {
  assert.deepEqual(parseArguments(["generate"]), {
    command: "generate",
    prompt: undefined,
    options: {
      model: undefined,
      noPrefixCache: false,
      draft: undefined,
      draftRopeTheta: undefined,
      draftTree: undefined,
      adapter: undefined,
      autotune: undefined,
      system: undefined,
      raw: false,
      contextLength: undefined,
      batch: undefined,
      maxBatch: 8,
      maxKvTokens: undefined,
      algorithm: undefined,
      numSteps: undefined,
      eagleTopk: undefined,
      numDraftTokens: undefined,
      adaptive: false,
      adaptiveConfig: undefined,
      preset: undefined,
      quantize: undefined,
      quantizeDraft: false,
      kvDtype: undefined,
      roundsPerSync: undefined,
      temperature: 0.7,
      topK: 0,
      topP: 1,
      minP: 0,
      seed: undefined,
      maxTokens: 512,
      stop: [],
      ignoreEos: false,
      json: false,
      stats: false,
      quiet: false,
    },
  });
});

Deno.test("operands: prompt, dash, after --", () => {
  const prompt = (args: string[]) => {
    const invocation: Invocation = parseArguments(["generate", ...args]);
    return invocation.command === "generate" ? invocation.prompt : assert.fail();
  };
  assert.equal(prompt(["hello"]), "hello");
  assert.equal(prompt(["-"]), "-");
  assert.equal(prompt(["-5"]), "-5");
  assert.equal(prompt(["--top-k", "4", "--", "--quiet"]), "--quiet");
  assert.equal(prompt(["--stop", "a", "--stop=b", "hi"]), "hi");
  assert.deepEqual(options(["generate", "--stop", "a", "--stop=b"])["stop"], ["a", "b"]);
});

const MISTAKES: readonly (readonly [string, string])[] = [
  [
    "fly",
    'Cannot run "fly": commands are generate, chat, bench, check, inspect, convert, pull, models, rm, doctor; see eyrie --help',
  ],
  [
    "toString",
    'Cannot run "toString": commands are generate, chat, bench, check, inspect, convert, pull, models, rm, doctor; see eyrie --help',
  ],
  [
    "generate --tempratur 1",
    'Cannot use "--tempratur": generate has no such flag, did you mean --temperature? (eyrie generate --help lists them)',
  ],
  [
    "generate --preset=x --preest=fast",
    'Cannot use "--preest": generate has no such flag, did you mean --preset? (eyrie generate --help lists them)',
  ],
  [
    "check --draf d",
    'Cannot use "--draf": check has no such flag, did you mean --draft? (eyrie check --help lists them)',
  ],
  [
    "generate --top x",
    'Cannot use "--top": generate has no such flag, did you mean --stop? (eyrie generate --help lists them)',
  ],
  [
    "generate --xyz",
    'Cannot use "--xyz": generate has no such flag (eyrie generate --help lists them)',
  ],
  ["generate --help=1", 'Cannot use "--help=1": --help takes no value'],
  ["rm -y=1 a", 'Cannot use "-y=1": -y takes no value'],
  [
    "generate --seed 1 a --stop",
    'Cannot use "--stop": TEXT is missing; allowed is text, not empty',
  ],
  [
    "generate --seed --quiet",
    'Cannot use "--seed --quiet": allowed is an integer from 0 to 4294967295',
  ],
  ["generate --fix", 'Cannot use "--fix" with generate: it is allowed with doctor'],
  [
    "chat --json",
    'Cannot use "--json" with chat: it is allowed with generate, check, inspect, convert, models, doctor',
  ],
  ["chat --raw", 'Cannot use "--raw" with chat: it is allowed with generate'],
  ["chat hello", 'Cannot run "chat": too many arguments, allowed is none'],
  ["generate a b", 'Cannot run "generate": too many arguments, allowed is one (quote it)'],
  ["generate --top-p 0", 'Cannot use "--top-p 0": allowed is a number above 0, at most 1'],
  ["generate --num-steps -1", 'Cannot use "--num-steps -1": allowed is an integer from 0 to 16'],
  [
    "generate --draft none --speculative-algorithm EAGLE3",
    'Cannot use "--speculative-algorithm EAGLE3" with "--draft none": it needs a draft; allowed is NONE',
  ],
  [
    "generate --speculative-algorithm STANDALONE",
    'Cannot use "--speculative-algorithm STANDALONE": it needs a draft; give --draft MODEL',
  ],
  [
    "generate --model m --speculative-algorithm EAGLE",
    'Cannot use "--speculative-algorithm EAGLE" with "--model": it needs a draft; give --draft MODEL',
  ],
  [
    "generate --draft d --speculative-algorithm NONE",
    'Cannot use "--speculative-algorithm NONE" with "--draft d": allowed is --draft none',
  ],
  [
    "generate --draft none --num-steps 2",
    'Cannot use "--speculative-num-steps 2" with "--draft none": nothing drafts; allowed is 0',
  ],
  [
    "generate --model m --num-steps 2",
    'Cannot use "--speculative-num-steps 2" with "--model": it needs a draft; give --draft MODEL',
  ],
  [
    "bench --batch-sizes 0",
    'Cannot use "--batch-sizes 0": allowed is integers from 1 to 128, as in 1,2 or 1-4',
  ],
  [
    "bench --num-steps 1-8",
    'Cannot use "--num-steps 1-8": allowed is integers from 0 to 7, as in 1,2 or 1-4',
  ],
  [
    "bench --depth 1.5",
    'Cannot use "--depth 1.5": allowed is integers from 0 to 1000000, as in 1,2 or 1-4',
  ],
  [
    "bench --temperature 0,x",
    'Cannot use "--temperature 0,x": allowed is numbers from 0 to 100, as in 0,0.7',
  ],
  [
    "bench --presets a,,b",
    'Cannot use "--presets a,,b": allowed is names with commas between them',
  ],
  ["bench --output xml", 'Cannot use "--output xml": allowed is one of md, csv, json, jsonl, html'],
  [
    "generate --simulate-acceptance 0.5",
    'Cannot use "--simulate-acceptance" with generate: it is allowed with bench',
  ],
  ["bench --random-draft d", 'Cannot use "--random-draft": it needs --random-weights'],
  [
    "bench --random-weights c --model m",
    'Cannot use "--random-weights" with "--model": allowed is one of them',
  ],
  [
    "bench --random-weights c --draft d",
    'Cannot use "--random-weights" with "--draft": allowed is --random-draft',
  ],
  [
    "bench --random-weights c --workload phases",
    'Cannot use "--random-weights" with "--workload phases": it knows no text; allowed is random',
  ],
  [
    "bench --draft none --num-steps 0,3",
    'Cannot use "--num-steps 0,3" with "--draft none": nothing drafts; allowed is --num-steps 0',
  ],
  [
    "bench --model m --presets aggressive",
    'Cannot use "--presets aggressive" with "--model": it needs a draft; give --draft MODEL',
  ],
  [
    "bench --random-weights c --num-steps 1",
    'Cannot use "--num-steps 1" with "--random-weights": it needs a draft; give --random-draft CONFIG.json',
  ],
  [
    "bench --emit-config f --simulate-acceptance 0.5",
    'Cannot use "--emit-config" with "--simulate-acceptance": a config needs measured acceptance',
  ],
  [
    "generate --raw --system s",
    'Cannot use "--system" with "--raw": a raw prompt has no system message; write it into the prompt',
  ],
  ["generate --quiet --stats", 'Cannot use "--stats" with "--quiet": allowed is one of them'],
];

for (const [line, expected] of MISTAKES) {
  Deno.test(`mistake: ${line}`, () => assert.equal(message(line.split(" ")), expected));
}

Deno.test("possible combinations are possible", () => {
  for (
    const line of [
      "generate --draft none --num-steps 0",
      "generate --draft none --speculative-algorithm NONE",
      "generate --model m --draft d --speculative-algorithm EAGLE",
      "generate --speculative-algorithm EAGLE3 --num-steps 7",
      "generate --model m --num-steps 0",
      "generate --model m --draft d --num-steps 7",
      "generate --json --stats",
      "bench --model m",
      "bench --draft none --num-steps 0",
      "bench --random-weights c --random-draft d --num-steps 0-7 --workload random",
    ]
  ) parseArguments(line.split(" "));
});
