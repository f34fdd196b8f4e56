import assert from "node:assert/strict";
import { BENCH_AXES } from "../../src/cli/options/measure/bench_flags.ts";
import { ROUNDS } from "../../src/cli/options/option_flight.ts";
import { SHARE } from "../../src/engine/schedule/sync_interval.ts";
import { MAX_ROUNDS } from "../../src/engine/device/submit/submit.ts";
import { allowed, type Flag, spellingsOf } from "../../src/cli/options/flag.ts";
import type { CommandName } from "../../src/cli/options/command.ts";
import { COMMANDS, flagsOf } from "../../src/cli/options/commands.ts";
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
  return { ...invocation, ...invocation.options };
}

const ALL = (Object.keys(COMMANDS) as CommandName[]).flatMap((command) =>
  Object.entries(flagsOf(command)).map(([key, flag]) => ({ command, key, flag }))
);

/** Flags of `breakeven` that are allowed without `--measure`. */
const BREAKEVEN_ALWAYS = new Set(
  "--alpha --draft-cost --verify-cost --num-steps --measure --format --output --force --quiet"
    .split(" "),
);

/** Flags of `simulate` that cannot be used with a scenario. */
const SIMULATE_LOADED = new Set([
  ...["--simulate-acceptance", "--burstiness", "--num-requests", "--duration"],
  ...["--prompt-tokens", "--output-tokens"],
]);

/** The other flags and operands that a command needs beside the flag `but`. */
function needed(command: CommandName, but: Flag): string[] {
  const required = Object.values(flagsOf(command))
    .filter((flag) => "required" in flag && flag !== but)
    .flatMap((flag) => [flag.flag, "x"]);
  const operands = COMMANDS[command].operands?.filter((operand) => operand.required) ?? [];
  required.push(...operands.map(({ name, choices }) => choices?.[0] ?? name));
  const batched = command === "generate" &&
    ["--max-batch", "--output", "--force"].includes(but.flag);
  if (batched) return ["--batch", "x", ...required];
  if (but.flag === "--logprobs") return ["--json", ...required];
  const measured = command === "breakeven" && !BREAKEVEN_ALWAYS.has(but.flag);
  if (measured) required.push("--measure");
  // Flags that describe requests need a load.
  if (command === "simulate" && SIMULATE_LOADED.has(but.flag)) {
    required.push("--request-rate", "1");
  }
  if (command === "check" && but.flag === "--tolerance") return ["--expected", "x", ...required];
  if (command === "bench" && but.flag === "--rows") return ["--table", "growth", ...required];
  return required;
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
  bias: "7=-1.5",
  choice: "",
  switch: "",
};

function goodText(flag: Flag): string {
  // The names of the WebGPUs are checked with the rest of the command.
  if (flag.flag === "--request-rate") return "2";
  if (flag.flag === "--webgpu") return "builtin,dawn";
  return "valid" in flag ? flag.example?.split(" ").at(-1) ?? "" : GOOD[flag.type];
}

for (const { command, key, flag } of ALL) {
  Deno.test(`${command} ${flag.flag}: good values, bad values, help`, () => {
    const rest = needed(command, flag);
    if (flag.type === "switch") {
      assert.equal(options([command, flag.flag, ...rest])[key], true);
      assert.equal(options([command, ...needed(command, flag)])[key], false);
      assert.match(message([command, `${flag.flag}=1`, ...rest]), /takes no value/);
    } else {
      const text = flag.type === "choice" ? flag.choices[0] ?? "" : goodText(flag);
      const value = flag.type === "number" || flag.type === "integer" ? Number(text) : text;
      const lists: Partial<Record<Flag["type"], unknown>> = {
        list: [value],
        axis: [1],
        names: text.split(","),
        bias: { 7: -1.5 },
      };
      const list = lists[flag.type] ?? value;
      for (const name of spellingsOf(flag)) {
        assert.deepEqual(options([command, name, text, ...rest])[key], list);
        assert.deepEqual(options([command, `${name}=${text}`, ...rest])[key], list);
        assert.match(message([command, ...rest, name]), /is missing; allowed is/);
        const said = message([command, `${name}=`, ...rest]);
        assert.equal(said, `Cannot use "${name} ": allowed is ${allowed(flag)}`);
      }
    }
    const help = parseArguments([...command.split(" "), "--help", "all"]);
    assert.ok(help.command === "print");
    const example = flag.example === undefined ? flag.flag : `example: ${flag.example}`;
    assert.ok(help.text.includes(example), example);
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
    message(["generate", "--drafter", "eagel"]),
    'Cannot use "--drafter eagel": allowed is one of EAGLE, EAGLE3, NEXTN, STANDALONE, NGRAM, SUFFIX, HYBRID, NONE; NGRAM and HYBRID with :min=N,max=N from 1 to 64',
  );
});

Deno.test("--rounds-per-sync is auto or numbers that the engine takes, the largest too", () => {
  const [auto, ...numbers] = ROUNDS.roundsPerSync.choices;
  assert.equal(auto, "auto");
  assert.deepEqual(numbers.map(Number), numbers.map(Number).toSorted((a, b) => a - b));
  assert.deepEqual([numbers[0], numbers.at(-1)], ["1", `${MAX_ROUNDS}`]);
  assert.ok(ROUNDS.roundsPerSync.absent.endsWith(` ${100 * SHARE} %`));
});

Deno.test("defaults of generate", () => {
  assert.deepEqual(parseArguments(["generate"]), {
    command: "generate",
    prompt: undefined,
    drafts: false,
    options: {
      model: undefined,
      remote: undefined,
      noPrefixCache: false,
      draft: undefined,
      donor: undefined,
      draftRopeTheta: undefined,
      draftTree: undefined,
      adapter: undefined,
      webgpu: undefined,
      autotune: undefined,
      costs: undefined,
      promptFile: undefined,
      prediction: undefined,
      system: undefined,
      think: undefined,
      templateArg: [],
      allowSpecial: false,
      raw: false,
      contextLength: undefined,
      batch: undefined,
      output: undefined,
      maxBatch: 8,
      maxKvTokens: undefined,
      maxBatchedRows: undefined,
      sloItlMs: undefined,
      drafter: undefined,
      numSteps: undefined,
      acceptance: undefined,
      policy: undefined,
      precision: undefined,
      elasticDraft: false,
      force: false,
      quantize: undefined,
      quantizeDraft: false,
      kvDtype: undefined,
      roundsPerSync: undefined,
      generationConfig: undefined,
      gpuMemoryUtilization: undefined,
      tokenMap: undefined,
      temperature: undefined,
      topK: undefined,
      topP: undefined,
      minP: undefined,
      repetitionPenalty: undefined,
      frequencyPenalty: undefined,
      presencePenalty: undefined,
      logitBias: {},
      jsonSchema: undefined,
      grammar: undefined,
      regex: undefined,
      seed: undefined,
      maxTokens: undefined,
      stop: [],
      ignoreEos: false,
      logprobs: undefined,
      json: false,
      stats: false,
      quiet: false,
    },
  });
});

Deno.test("a chat keeps its history in a file unless it is told not to", () => {
  assert.equal(options(["chat"])["noHistory"], false);
  assert.equal(options(["chat", "--no-history"])["noHistory"], true);
  assert.match(message(["generate", "--no-history"]), /^Cannot use "--no-history" with generate/);
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
  assert.equal(prompt(["--prompt", "hi"]), "hi");
  assert.deepEqual(options(["generate", "--stop", "a", "--stop=b"])["stop"], ["a", "b"]);
});

Deno.test("short flags, as llama.cpp has them", () => {
  const { prompt, ...given } = options("generate -m m -p hi -n 5 -c64 -s=7 -f file".split(" "));
  const { model, maxTokens, contextLength, seed, promptFile } = given;
  assert.deepEqual([prompt, model, maxTokens, contextLength, seed, promptFile], [
    "hi",
    "m",
    5,
    64,
    7,
    "file",
  ]);
});

Deno.test("second names: run MODEL, run MODEL PROMPT, ls, inspect MODEL", () => {
  assert.deepEqual(parseArguments(["run"]), parseArguments(["chat"]));
  assert.deepEqual(
    parseArguments(["run", "m", "-s", "1"]),
    parseArguments("chat -m m -s 1".split(" ")),
  );
  assert.deepEqual(
    parseArguments(["run", "m", "hi"]),
    { ...parseArguments(["generate", "-m", "m", "hi"]), drafts: true },
  );
  assert.deepEqual(parseArguments(["ls"]), parseArguments(["models"]));
  assert.deepEqual(parseArguments(["inspect", "m"]), parseArguments(["inspect", "--model", "m"]));
});

Deno.test("chat and serve look for a draft: steps and kinds of heads need none to be named", () => {
  for (const line of ["--num-steps 3", "--drafter EAGLE3"]) {
    for (const command of ["run", "chat", "serve"]) {
      assert.doesNotThrow(() => parseArguments(`${command} -m m ${line}`.split(" ")));
    }
    assert.match(
      message(`generate -m m ${line}`.split(" ")),
      /it needs a draft; give --draft MODEL/,
    );
  }
  assert.match(
    message("chat -m m --drafter STANDALONE".split(" ")),
    /it needs a draft; give --draft MODEL/,
  );
});

Deno.test("--logprobs without a place to print them is refused", () => {
  assert.equal(
    message(["generate", "--logprobs", "2"]),
    'Cannot use "--logprobs 2" alone: it goes with --json or --batch',
  );
  assert.equal(options(["generate", "--logprobs", "2", "--batch", "f"])["logprobs"], 2);
});

Deno.test("--logit-bias: pairs and objects add up, the last of an id counts", () => {
  const bias = (...given: string[]) =>
    options(["generate", ...given.flatMap((one) => ["--logit-bias", one])])["logitBias"];
  assert.deepEqual(bias("3=1", '{"4": -100, "5": 0.5}', "3=2"), { 3: 2, 4: -100, 5: 0.5 });
  for (
    const bad of [
      "3",
      "3=",
      "3=x",
      "3= ",
      "3=0x10",
      "=1",
      "-3=1",
      "3=101",
      "1.5=1",
      "[1]",
      '{"a": 1}',
      '{"3": "1"}',
    ]
  ) {
    assert.match(message(["generate", `--logit-bias=${bad}`]), /allowed is ID=VALUE with a value/);
  }
});

const MISTAKES: readonly (readonly [string, string])[] = [
  [
    "genrate",
    'Cannot run "genrate": no such command, did you mean generate? (eyrie --help lists them)',
  ],
  ["mod", 'Cannot run "mod": no such command, did you mean models? (eyrie --help lists them)'],
  [
    "generate --regex a --json-schema object",
    'Cannot use "--json-schema" with "--regex": the output has one grammar',
  ],
  [
    "generate --batch f prompt",
    'Cannot use "--batch" with a prompt: the prompts come from "f"',
  ],
  [
    "generate --batch f --prompt-file p",
    'Cannot use "--batch" with a prompt: the prompts come from "f"',
  ],
  [
    "generate --batch f --prediction p",
    'Cannot use "--prediction" with "--batch": it is for one output',
  ],
  [
    "bench --workload phases --prompt-tokens 64",
    'Cannot use "--prompt-tokens" with "--workload phases": its prompts have their own lengths; allowed is --workload random',
  ],
  [
    "bench --emit-config c --repeat 1",
    'Cannot use "--emit-config" with "--repeat 1": too few blocks to choose by; allowed is --repeat 3 or more',
  ],
  ["--model m", 'Cannot use "--model" here: a command comes first, see eyrie --help'],
  [
    "fly",
    'Cannot run "fly": commands are generate, chat, serve, serve-command, bench, bench load, breakeven, simulate, profile, check, inspect, convert, token-map, pull, models, rm, doctor, completion; see eyrie --help',
  ],
  [
    "help fly",
    'Cannot run "fly": commands are generate, chat, serve, serve-command, bench, bench load, breakeven, simulate, profile, check, inspect, convert, token-map, pull, models, rm, doctor, completion; topics are policies, trees, drafters, exactness, sampling, constrained, server, gpu, environment, exit-codes; see eyrie --help',
  ],
  ["help chat me", 'Cannot use "me" after "help chat": allowed is all, or nothing'],
  [
    "help bench load all x",
    'Cannot use "all x" after "help bench load": allowed is all, or nothing',
  ],
  [
    "toString",
    'Cannot run "toString": commands are generate, chat, serve, serve-command, bench, bench load, breakeven, simulate, profile, check, inspect, convert, token-map, pull, models, rm, doctor, completion; see eyrie --help',
  ],
  [
    "generate --tempratur 1",
    'Cannot use "--tempratur": generate has no such flag, did you mean --temperature? (eyrie generate --help all lists them)',
  ],
  [
    "generate --policy=x --poliyc=fast",
    'Cannot use "--poliyc": generate has no such flag, did you mean --policy? (eyrie generate --help all lists them)',
  ],
  [
    "check --draf d",
    'Cannot use "--draf": check has no such flag, did you mean --draft, --draft-rope-theta? (eyrie check --help all lists them)',
  ],
  [
    "generate --top x",
    'Cannot use "--top": generate has no such flag, did you mean --top-k, --top-p? (eyrie generate --help all lists them)',
  ],
  ["breakeven --model m", 'Cannot use "--model": it needs --measure'],
  ["breakeven --repeat 3", 'Cannot use "--repeat": it needs --measure'],
  ["breakeven --measure --alpha 1", 'Cannot use "--alpha" with "--measure": it is measured'],
  [
    "breakeven --measure --num-steps 1,64",
    `Cannot use "--num-steps 1,64" with "--measure": allowed is integers from 1 to ${BENCH_AXES.numSteps.max}`,
  ],
  [
    "breakeven --alpha 0.5 --json --format html",
    'Cannot use "--json" with "--format html": it means --format json',
  ],
  [
    "breakeven --measure --random-weights c --model m",
    'Cannot use "--random-weights c" with "--model m": it means --model random:c',
  ],
  [
    "generate --temp 0",
    'Cannot use "--temp": generate has no such flag, did you mean --temperature, --template-arg? (eyrie generate --help all lists them)',
  ],
  [
    "generate -model x",
    'Cannot use "-model": generate has no such flag, did you mean --model? (eyrie generate --help all lists them)',
  ],
  ["generate -p a b", 'Cannot run "generate": too many arguments, allowed is one (quote it)'],
  ["generate --prompt", 'Cannot use "--prompt": TEXT is missing; allowed is text, not empty'],
  ["generate --prompt=", 'Cannot use "--prompt ": allowed is text, not empty'],
  ["chat --prompt a", 'Cannot use "--prompt" with chat: it is allowed with generate'],
  ["serve-command a/b", 'Cannot run "serve-command a/b": allowed is sglang, vllm'],
  ["generate --max-batch 4 a", 'Cannot use "--max-batch": it needs --batch'],
  [
    "generate --batch f --stats",
    'Cannot use "--stats" with "--batch": statistics are those of one answer',
  ],
  ...["profile", "growth", "rewrites"].map((table): [string, string] => [
    `bench --table ${table} --costs c.json`,
    `Cannot use "--costs" with "--table ${table}": only a measurement of settings takes it`,
  ]),
  ...["growth", "rewrites"].map((table): [string, string] => [
    `bench --table ${table} --seed 7`,
    `Cannot use "--seed" with "--table ${table}": only a measurement of settings takes it`,
  ]),
  ["generate --output f a", 'Cannot use "--output": it needs --batch'],
  ["run a --model b", 'Cannot use "a" with "--model": allowed is one of them'],
  ["completion tcsh", 'Cannot run "completion tcsh": allowed is bash, zsh, fish'],
  [
    "generate --xyz",
    'Cannot use "--xyz": generate has no such flag (eyrie generate --help all lists them)',
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
    'Cannot use "--json" with chat: it is allowed with generate, profile, check, inspect, convert, models, doctor',
  ],
  ["chat --raw", 'Cannot use "--raw" with chat: it is allowed with generate'],
  ["models hello", 'Cannot run "models": too many arguments, allowed is none'],
  ["chat a b c", 'Cannot run "chat": too many arguments, allowed is MODEL and PROMPT'],
  ["generate a b", 'Cannot run "generate": too many arguments, allowed is one (quote it)'],
  ["generate --top-p 0", 'Cannot use "--top-p 0": allowed is a number above 0, at most 1'],
  ["generate --num-steps -1", 'Cannot use "--num-steps -1": allowed is an integer from 0 to 16'],
  [
    "generate --draft none --drafter EAGLE3",
    'Cannot use "--drafter EAGLE3" with "--draft none": it needs a draft; allowed is NONE',
  ],
  [
    "generate --drafter STANDALONE",
    'Cannot use "--drafter STANDALONE": it needs a draft; give --draft MODEL',
  ],
  [
    "generate --model m --drafter EAGLE",
    'Cannot use "--drafter EAGLE" with "--model": it needs a draft; give --draft MODEL',
  ],
  [
    "generate --draft d --drafter SUFFIX",
    'Cannot use "--drafter SUFFIX" with "--draft d": allowed is --draft none',
  ],
  [
    "generate --draft d --drafter NONE",
    'Cannot use "--drafter NONE" with "--draft d": allowed is --draft none',
  ],
  [
    "generate --draft none --num-steps 2",
    'Cannot use "--num-steps 2" with "--draft none": there is no drafter; allowed is 0',
  ],
  [
    "generate --model m --num-steps 2",
    'Cannot use "--num-steps 2" with "--model": it needs a draft; give --draft MODEL',
  ],
  [
    "bench --batch-sizes 0",
    'Cannot use "--batch-sizes 0": allowed is integers from 1 to 128, as in 1,2 or 1-4',
  ],
  [
    "bench --num-steps 1-17",
    'Cannot use "--num-steps 1-17": allowed is integers from 0 to 16, as in 1,2 or 1-4',
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
    "bench --policy a,,b",
    'Cannot use "--policy a,,b": allowed is names with commas between them',
  ],
  ["bench --format xml", 'Cannot use "--format xml": allowed is one of md, csv, json, jsonl, html'],
  [
    "generate --simulate-acceptance 0.5",
    'Cannot use "--simulate-acceptance" with generate: it is allowed with bench, bench load, breakeven, simulate',
  ],
  [
    "bench --draft random:d",
    'Cannot use "--draft random:d": it needs --model random:CONFIG.json',
  ],
  [
    "bench --model m --random-weights c",
    'Cannot use "--random-weights c" with "--model m": it means --model random:c',
  ],
  [
    "bench --model random:c --draft d",
    'Cannot use "--draft d" with "--model random:c": allowed is --draft random:CONFIG.json',
  ],
  [
    "bench --model random:c --workload phases",
    'Cannot use "--model random:c" with "--workload phases": a model of random weights cannot read text; allowed is random',
  ],
  [
    "bench --draft none --num-steps 0,3",
    'Cannot use "--num-steps 0,3" with "--draft none": there is no drafter; allowed is --num-steps 0',
  ],
  [
    "bench --model m --policy ema",
    'Cannot use "--policy ema" with "--model": it needs a draft; give --draft MODEL',
  ],
  [
    "generate --preset aggressive --policy dsd",
    'Cannot use "--preset aggressive" with "--policy dsd": it means --policy ema:config=aggressive',
  ],
  [
    "generate --policy dsd --speculative-adaptive",
    'Cannot use "--speculative-adaptive" with "--policy dsd": it means --policy ema',
  ],
  [
    "generate --preset a --speculative-adaptive-config b",
    'Cannot use "--speculative-adaptive-config b" with "--preset a": it means --policy ema:config=b',
  ],
  [
    "generate --draft-tree auto --speculative-eagle-topk 4",
    'Cannot use "--speculative-eagle-topk 4" with "--draft-tree auto": it means --draft-tree topk=4',
  ],
  [
    "chat --policy static --draft-tree auto",
    'Cannot use "--policy static" with "--draft-tree auto": a tree has one fixed shape, and a policy chooses the shape of each round',
  ],
  [
    "chat --policy static --draft-tree topk=1,tokens=4,topk=2",
    'Cannot use "--policy static" with "--draft-tree topk=1,tokens=4,topk=2": a tree has one fixed shape, and a policy chooses the shape of each round',
  ],
  [
    "generate --policy static --drafter SUFFIX",
    'Cannot use "--policy static" with "--drafter SUFFIX": a policy chooses the steps of a draft model; allowed is HYBRID',
  ],
  ...["5:4:8", "auto", "topk=4,tokens=8"].map((tree) =>
    [
      `generate --drafter NGRAM --draft-tree ${tree}`,
      `Cannot use "--draft-tree ${tree}" with "--drafter NGRAM": it drafts chains; allowed is tokens=N, the rows that a round verifies`,
    ] as const
  ),
  [
    "bench load --draft none --policy off,ema",
    'Cannot use "--policy off,ema" with "--draft none": there is no drafter; allowed is --num-steps 0',
  ],
  [
    "bench --model random:c --num-steps 1",
    'Cannot use "--num-steps 1" with "--model": it needs a draft; give --draft random:CONFIG.json',
  ],
  [
    "bench --emit-config f --simulate-acceptance 0.5",
    'Cannot use "--emit-config" with "--simulate-acceptance": a config needs measured acceptance',
  ],
  [
    "generate --raw --system s",
    'Cannot use "--system" with "--raw": a raw prompt has no system message; write it into the prompt',
  ],
  [
    "generate --raw --think off",
    'Cannot use "--think" with "--raw": a raw prompt goes through no chat template',
  ],
  [
    "generate --raw --template-arg a=1",
    'Cannot use "--template-arg" with "--raw": a raw prompt goes through no chat template',
  ],
  ["generate --quiet --stats", 'Cannot use "--stats" with "--quiet": allowed is one of them'],
];

Deno.test("hosts and origins that no request can have are refused", () => {
  for (const host of ["http://a.example", "a.example:8000", "*.example", "a.example/"]) {
    assert.match(message(["serve", "--allow-host", host]), /: allowed is a host name, without/);
  }
  const wrong = [
    "localhost:3000",
    "app",
    "http://localhost:3000/",
    "http://App.example",
    "http://",
  ];
  for (const origin of wrong) {
    assert.match(message(["serve", "--allow-origin", origin]), /: allowed is SCHEME:\/\/HOST or/);
  }
  const origins = ["*", "null", "http://localhost:3000", "http://[::1]:8", "chrome-extension://ab"];
  const given = origins.flatMap((one) => ["--allow-origin", one]);
  assert.deepEqual(options(["serve", ...given]).allowOrigin, origins);
});

for (const [line, expected] of MISTAKES) {
  Deno.test(`mistake: ${line}`, () => assert.equal(message(line.split(" ")), expected));
}

Deno.test("possible combinations are possible", () => {
  for (
    const line of [
      "generate --draft none --num-steps 0",
      "generate --draft none --drafter NONE",
      "generate --model m --draft d --drafter EAGLE",
      "generate --drafter EAGLE3 --num-steps 7",
      "generate --model m --num-steps 0",
      "generate --model m --draft d --num-steps 7",
      "generate --json --stats",
      "bench --model m",
      "generate --batch - --max-batch 4 --output f",
      "bench --draft none --num-steps 0",
      "bench load --draft none --policy off",
      "bench --model m --policy off,static:num_steps=0",
      "generate --drafter NGRAM --draft-tree tokens=8",
      "generate --drafter HYBRID --draft-tree 5:4:8",
      "bench --model random:c --draft random:d --num-steps 0-7 --workload random",
    ]
  ) parseArguments(line.split(" "));
});
