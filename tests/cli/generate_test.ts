import assert from "node:assert/strict";
import denoJson from "../../deno.json" with { type: "json" };
import { runGenerate } from "../../src/cli/generate/generate.ts";
import { parseArguments } from "../../src/cli/options/parse.ts";
import { UsageError } from "../../src/errors.ts";
import { type FakeEngine, fakeEngine, type FakeIo, fakeIo } from "./fake.ts";
import { chain } from "../../src/speculate/round_shape.ts";

function run(args: string[], engine: FakeEngine, io: FakeIo): Promise<number> {
  const invocation = parseArguments(["generate", ...args]);
  assert.ok(invocation.command === "generate");
  return runGenerate(invocation, { open: engine.open, io, randomSeed: () => 77 });
}

const PROMPTS: readonly {
  readonly name: string;
  readonly args: string[];
  readonly stdin?: string;
  readonly terminal?: true;
  readonly prompt: string;
}[] = [
  { name: "argument", args: ["hello"], terminal: true, prompt: "hello" },
  { name: "argument, empty pipe", args: ["hello"], stdin: "", prompt: "hello" },
  { name: "pipe", args: [], stdin: "from pipe\n", prompt: "from pipe" },
  { name: "pipe by dash", args: ["-"], stdin: "from pipe\r\n", prompt: "from pipe" },
  { name: "both", args: ["Sum up."], stdin: "a\nb\n", prompt: "a\nb\n\nSum up." },
  { name: "only one newline goes", args: ["-"], stdin: "a\n\n", prompt: "a\n" },
  { name: "typed", args: [], stdin: "typed\n", terminal: true, prompt: "typed" },
  { name: "UTF-8", args: [], stdin: "käse 日本", prompt: "käse 日本" },
];

for (const { name, args, prompt, ...place } of PROMPTS) {
  Deno.test(`prompt source: ${name}`, async () => {
    const engine = fakeEngine();
    assert.equal(await run(args, engine, fakeIo(place)), 0);
    assert.deepEqual(engine.prompts, [[{ role: "user", content: prompt }]]);
  });
}

Deno.test("--prompt-file takes the place of standard input, which is - there", async () => {
  const file = await Deno.makeTempFile();
  await Deno.writeTextFile(file, "a\nb\n");
  const engine = fakeEngine();
  for (const args of [["-f", file], ["-f", file, "Sum up."], ["-f", "-", "-p", "Sum up."]]) {
    assert.equal(await run(args, engine, fakeIo({ stdin: "piped\n" })), 0);
  }
  await Deno.remove(file);
  const said = engine.prompts.map((messages) => (messages[0] as { content: string }).content);
  assert.deepEqual(said, ["a\nb", "a\nb\n\nSum up.", "piped\n\nSum up."]);
  await assert.rejects(run(["-f", file], engine, fakeIo({ stdin: "" })), {
    name: "UsageError",
    message: `Cannot open "${file}": no such file`,
  });
});

Deno.test("a prompt that cannot be: empty, not UTF-8, too long", async () => {
  const engine = fakeEngine({ contextLength: 3 });
  const empty = /^Cannot generate from "": the prompt is empty/;
  for (const stdin of ["", "\n", "  \n "]) {
    await assert.rejects(run([], engine, fakeIo({ stdin })), {
      name: "UsageError",
      message: empty,
    });
  }
  await assert.rejects(run([""], engine, fakeIo({ terminal: true })), { message: empty });
  const file = await Deno.makeTempFile();
  await assert.rejects(run(["-f", file], engine, fakeIo({ stdin: "" })), {
    name: "UsageError",
    message: `Cannot generate from "${file}": the file has no text`,
  });
  await Deno.remove(file);
  const broken = fakeIo({ stdin: new Uint8Array([0x61, 0xff, 0x62]) });
  await assert.rejects(run(["x"], engine, broken), {
    name: "UsageError",
    message: 'Cannot read the prompt from "standard input": it is not UTF-8',
  });
  assert.equal(engine.opened.length, 0, "nothing is loaded for a bad prompt");
  await assert.rejects(run(["a b c"], engine, fakeIo({ stdin: "" })), {
    name: "UsageError",
    message: 'Cannot generate from "a b c": the prompt has 3 tokens, the context holds 3; ' +
      "--context-length allows more",
  });
  const full = fakeEngine({ contextLength: 3, maxContextLength: 3 });
  await assert.rejects(run(["a b c"], full, fakeIo({ stdin: "" })), {
    message: 'Cannot generate from "a b c": the prompt has 3 tokens, the context holds 3',
  });
  assert.ok(engine.disposed());
});

Deno.test("text goes to stdout, one line of numbers to stderr", async () => {
  const io = fakeIo({ stdin: "" });
  await run(["hi there"], fakeEngine(), io);
  assert.equal(io.out(), "answer 1\n");
  assert.equal(
    io.err(),
    "2 tokens, 1.50 s after the first, 88.9 tokens/s, prompt 2 tokens in 20 ms, " +
      "2.50 tokens a round, 50.0% of drafts accepted, seed 77\n",
  );
});

Deno.test("numbers and notes are broken between words where the terminal is narrow", async () => {
  const after = async (start: string, flags: string[]) => {
    const io = fakeIo({ terminal: true, columns: 40 });
    await run(["hi", "--max-tokens", "2", ...flags], fakeEngine({ answer: () => "a b c" }), io);
    const lines = io.err().slice(io.err().indexOf(start)).trimEnd().split("\n");
    assert.ok(lines.length > 2 && lines.every((line) => line.length <= 40), lines.join("\n"));
    return lines;
  };
  const numbers = (await after("2 tokens, ", [])).join(" ");
  assert.match(numbers, /, 50\.0% of drafts accepted, seed 77 The answer was cut at/);
  const table = (await after("model ", ["--stats"])).join("\n");
  assert.match(table, /\noutput {6}2 tokens, 1\.50 s after the\n {12}first, 88\.9 tokens/);
});

Deno.test("text that ends its line gets no second newline", async () => {
  const io = fakeIo({ stdin: "" });
  await run(["hi", "--quiet"], fakeEngine({ answer: () => "one\n" }), io);
  assert.equal(io.out(), "one\n");
  assert.equal(io.err(), "");
});

Deno.test("--stats tells everything, greedy has no seed, no draft no rounds", async () => {
  const io = fakeIo({ stdin: "" });
  await run(["hi", "--stats", "--temperature", "0"], fakeEngine(), io);
  assert.equal(
    io.err(),
    [
      "model       fake",
      "draft       fake-eagle3, EAGLE3, 3 steps",
      "device      none, vulkan, software",
      "load        12 ms, of which 3 ms for kernels",
      "prompt      1 token, 0 cached, 20 ms, 50.0 tokens/s",
      "first token 26 ms",
      "output      2 tokens, 1.50 s after the first, 88.9 tokens/s, ended by stop",
      "rounds      10, 2.50 tokens each",
      "drafts      30, 15 accepted (50.0%)",
      "by position 80.0% 50.0% 20.0%",
      "",
    ].join("\n"),
  );
  const plain = fakeIo({ stdin: "" });
  await run(["hi", "--num-steps", "0", "--temperature", "0"], fakeEngine(), plain);
  assert.equal(
    plain.err(),
    "2 tokens, 1.50 s after the first, 88.9 tokens/s, prompt 1 token in 20 ms\n",
  );
});

Deno.test("--json prints the object of the specification", async () => {
  const io = fakeIo({ stdin: "" });
  await run(["hi", "--json", "--quiet"], fakeEngine(), io);
  assert.ok(io.out().endsWith("}\n") && io.out().indexOf("\n") === io.out().length - 1);
  assert.deepEqual(JSON.parse(io.out()), {
    text: "answer 1",
    prompt_ids: [2],
    output_ids: [1, 2],
    finish_reason: "stop",
    usage: { prompt_tokens: 1, completion_tokens: 2, cached_tokens: 0 },
    timing: {
      load_ms: 12.346,
      prefill_ms: 20,
      compile_ms: 0,
      decode_ms: 1500,
      time_to_first_token_ms: 25.5,
      tokens_per_second: 88.889,
    },
    speculative: {
      algorithm: "EAGLE3",
      num_steps: 3,
      eagle_topk: 1,
      num_draft_tokens: 4,
      rounds: 10,
      draft_tokens: 30,
      accepted_tokens: 15,
      mean_accept_length: 2.5,
      draft_acceptance_rate: 0.5,
      acceptance_per_position: [0.8, 0.5, 0.2],
      accepted_per_round: [3, 0, 2],
    },
    device: {
      adapter: "none",
      backend: "vulkan",
      webgpu: "builtin",
      software: true,
      features: ["subgroups"],
    },
    request: {
      messages: [{ role: "user", content: "hi" }],
      temperature: 0.7,
      top_k: 0,
      top_p: 1,
      min_p: 0,
      repetition_penalty: 1,
      frequency_penalty: 0,
      presence_penalty: 0,
      logit_bias: {},
      seed: 77,
      max_tokens: 512,
      stop: [],
      ignore_eos: false,
    },
    run: {
      version: denoJson.version,
      deno: Deno.version.deno,
      model: "fake",
      draft: "fake-eagle3",
      quantize: null,
      quantize_draft: null,
      kv_dtype: "f32",
      adapter: "none",
      backend: "vulkan",
      webgpu: "builtin",
      flags: {},
    },
  });
  assert.equal(io.err(), "");
});

Deno.test("--logprobs reaches the engine, and --json has what it tells", async () => {
  const io = fakeIo({ stdin: "" });
  const engine = fakeEngine();
  await run(["hi", "--json", "--logprobs", "2", "--max-tokens", "1"], engine, io);
  assert.equal(engine.requests[0]?.logprobs, 2);
  const [first, second] = [1, 2].map((id) => ({ id, token: `word ${id}`, logprob: -id / 4 }));
  const wanted = [{ ...first, top_logprobs: [first, second] }];
  assert.deepEqual(JSON.parse(io.out()).logprobs, wanted);
});

Deno.test("--stats and --json tell what the weights became", async () => {
  const weights = {
    quantize: "q8",
    quantizeDraft: undefined,
    bytes: 7_100_000,
    target: { bytes: 6_000_000, parameters: 5_000_000 },
  } as const;
  const io = fakeIo({ stdin: "" });
  await run(["hi", "--json", "--stats"], fakeEngine({ weights }), io);
  assert.match(io.err(), /^weights {5}q8, the draft as it is, 7\.1 MB$/m);
  const told = { quantize: "q8", quantize_draft: null, bytes: 7_100_000 };
  assert.deepEqual(JSON.parse(io.out()).weights, told);
  const both = fakeIo({ stdin: "" });
  await run(["hi", "--stats"], fakeEngine({ weights: { ...weights, quantizeDraft: "q8" } }), both);
  assert.match(both.err(), /^weights {5}q8, 7\.1 MB$/m);
});

Deno.test("one request has no prefix cache, in which it would find nothing", async () => {
  const engine = fakeEngine();
  await run(["hi"], engine, fakeIo({ stdin: "" }));
  assert.equal(engine.opened[0]?.limits?.prefixCache, false);
});

Deno.test("flags reach the engine", async () => {
  const engine = fakeEngine();
  const flags =
    "--model m --draft d --drafter EAGLE --num-steps 5 --adapter software --autotune off " +
    "--context-length 64 --no-prefix-cache --quantize q4 --quantize-draft --kv-dtype bf16 --rounds-per-sync 4 " +
    "--temperature 1.5 --top-k 4 --top-p 0.9 --min-p 0.1 --seed 9 --max-tokens 6 --stop X --ignore-eos " +
    "--repetition-penalty 1.5 --frequency-penalty 0.5 --presence-penalty -1 --logit-bias 7=2";
  await run([...flags.split(" "), "hi"], engine, fakeIo({ stdin: "" }));
  const { hooks: _, speculation, ...opened } = engine.opened[0] ?? assert.fail();
  assert.deepEqual(Object.keys(speculation ?? {}), ["speculate"]);
  assert.deepEqual(opened, {
    model: { model: "m", draft: "d", algorithm: "EAGLE", quantize: "q4", quantizeDraft: true },
    device: { adapter: "software", autotune: "off" },
    limits: {
      maxBatch: 1,
      contextLength: 64,
      prefixCache: false,
      kvDtype: "bf16",
      roundsPerSync: 4,
    },
  });
  assert.deepEqual([engine.info.tier, engine.info.tiers.shapes], [chain(5), [chain(5)]]);
  const { signal: _____, ...request } = engine.requests[0] ?? assert.fail();
  assert.deepEqual(request, {
    promptIds: [2],
    sampling: {
      temperature: 1.5,
      topK: 4,
      topP: 0.9,
      minP: 0.1,
      seed: 9,
      repetitionPenalty: 1.5,
      frequencyPenalty: 0.5,
      presencePenalty: -1,
      logitBias: { 7: 2 },
    },
    maxTokens: 6,
    stop: ["X"],
    ignoreEos: true,
  });
});

Deno.test("drafts from the text alone: what they match", async () => {
  const opened = async (flags: string) => {
    const engine = fakeEngine();
    await run([...flags.split(" "), "hi"], engine, fakeIo({ stdin: "" }));
    const { model, speculation } = engine.opened[0] ?? assert.fail();
    return { algorithm: model?.algorithm, ngram: speculation?.ngram };
  };
  const ngram = { min: 2, max: 5 };
  assert.deepEqual(await opened("--drafter NGRAM:min=2,max=5"), { algorithm: "NGRAM", ngram });
  assert.deepEqual(await opened("--drafter hybrid:max=5"), {
    algorithm: "HYBRID",
    ngram: { min: 1, max: 5 },
  });
  assert.deepEqual(await opened("--drafter suffix"), { algorithm: "SUFFIX", ngram: undefined });
  for (const text of ["SUFFIX:min=2", "HYBRID:min=13", "NGRAM:", "NGRAM:2", "NGRAM:max=65"]) {
    await assert.rejects(opened(`--drafter ${text}`), {
      name: "UsageError",
      message: /: allowed is one of EAGLE, .*; NGRAM and HYBRID with :min=N,max=N from 1 to 64$/,
    });
  }
});

Deno.test("without a draft nothing is drafted", async () => {
  for (const flags of [["--draft", "none"], ["--drafter", "NONE"]]) {
    const engine = fakeEngine({ draft: false });
    await run([...flags, "hi"], engine, fakeIo({ stdin: "" }));
    assert.deepEqual([engine.info.tier, engine.info.tiers.shapes], [chain(0), [chain(0)]]);
  }
});

Deno.test("a temperature too small to divide by is greedy", async () => {
  const engine = fakeEngine();
  await run(["hi", "--temperature", "1e-30"], engine, fakeIo({ stdin: "" }));
  assert.equal(engine.requests[0]?.sampling.temperature, 0);
});

Deno.test("a draft that never guesses right is a warning, which --quiet leaves out", async () => {
  for (const [flags, shown] of [[[], true], [["--quiet"], false]] as const) {
    const io = fakeIo({ stdin: "" });
    await run(["hi", "--num-steps", "3", ...flags], fakeEngine({ accepted: 0, rounds: 60 }), io);
    assert.equal(io.err().includes("warning: none of"), shown, io.err());
  }
});

Deno.test("system, raw, and a checkpoint without a template", async () => {
  const engine = fakeEngine({ hasChatTemplate: false });
  const io = fakeIo({ stdin: "" });
  await run(["hi"], engine, io);
  assert.match(io.err(), /^warning: the checkpoint has no chat template/m);
  const quiet = fakeIo({ stdin: "" });
  await run(["hi", "--quiet"], engine, quiet);
  assert.equal(quiet.err(), "");
  await assert.rejects(run(["hi", "--system", "s"], engine, fakeIo({ stdin: "" })), UsageError);
  await run(["hi", "--raw"], engine, fakeIo({ stdin: "" }));
  assert.deepEqual(engine.prompts, ["hi", "hi", "hi"]);
  const chatty = fakeEngine();
  await run(["hi", "--system", "s"], chatty, fakeIo({ stdin: "" }));
  assert.deepEqual(chatty.prompts, [[
    { role: "system", content: "s" },
    { role: "user", content: "hi" },
  ]]);
});

Deno.test("Ctrl+C keeps what was generated and exits with 130", async () => {
  for (const json of [false, true]) {
    const io = fakeIo({ stdin: "" });
    const engine = fakeEngine({
      answer: () => "one two three",
      beforeWord: (word) => Promise.resolve(word === "three" ? io.interrupt() : undefined),
    });
    assert.equal(await run(["hi", ...json ? ["--json"] : []], engine, io), 130);
    if (json) {
      const { text, finish_reason } = JSON.parse(io.out());
      assert.deepEqual([text, finish_reason], ["one two ", "interrupt"]);
    } else assert.equal(io.out(), "one two \n");
    assert.match(io.err(), /^2 tokens, /);
    assert.ok(engine.disposed());
  }
});

Deno.test("Ctrl+C while the prompt is read or the model loads", async () => {
  const reading = fakeIo();
  const waits = run([], fakeEngine(), reading);
  reading.interrupt();
  assert.equal(await waits, 130);
  const loading = fakeIo({ stdin: "" });
  const engine = { ...fakeEngine(), open: () => new Promise<never>(() => {}) };
  const opens = run(["hi"], engine, loading);
  setTimeout(loading.interrupt, 0);
  assert.equal(await opens, 130);
  assert.equal(loading.out(), "");
});

Deno.test("a closed pipe ends the engine", async () => {
  const engine = fakeEngine();
  const io = fakeIo({ stdin: "", stdoutBreaks: true });
  await assert.rejects(run(["hi"], engine, io), Deno.errors.BrokenPipe);
  assert.ok(engine.disposed());
});

Deno.test("on a terminal the load bar is drawn and wiped before the text", async () => {
  const io = fakeIo({ terminal: true });
  await run(["hi"], fakeEngine(), io);
  const wipe = "\r\x1b[K";
  assert.ok(io.err().startsWith(`${wipe}target [############------------] 5.0 MB of 10.0 MB`));
  assert.ok(io.err().includes(`${wipe}2 tokens, `));
});

Deno.test("--costs reaches the engine; what was measured at start is a line on stderr", async () => {
  const engine = fakeEngine({ costsLine: "costs, measured in 2.0 s: ..." });
  const io = fakeIo({ stdin: "" });
  await run(["--costs", "cost.json", "hello"], engine, io);
  assert.equal(engine.opened[0]?.device?.costs, "cost.json");
  assert.match(io.err(), /^costs, measured in 2.0 s: ...$/m);
  const quiet = fakeIo({ stdin: "" });
  await run(["--quiet", "hello"], engine, quiet);
  assert.equal(quiet.err(), "");
  assert.ok(!("costs" in (engine.opened[1]?.device ?? assert.fail())));
});

Deno.test("--stats tells what tuning did; hardware is tuned unless told otherwise", async () => {
  const engine = fakeEngine({ tuned: { known: 12, measured: 8, left: 4, ms: 1790 } });
  const io = fakeIo({ stdin: "" });
  await run(["hi", "--stats"], engine, io);
  assert.equal(engine.opened[0]?.device?.autotune, "on");
  assert.match(
    io.err(),
    /^tuning +12 launches known, 8 measured, 4 left for the next start, 1\.79 s$/m,
  );
});

Deno.test("a terminal obeys nothing of the model's text; a pipe gets it as it is", async () => {
  const answer = () => "a\x1b[2Jb\tc\n";
  const screen = fakeIo({ terminal: true });
  await run(["hello"], fakeEngine({ answer }), screen);
  assert.equal(screen.out(), "a\uFFFD[2Jb\tc\n");
  const pipe = fakeIo({ stdin: "" });
  await run(["hello"], fakeEngine({ answer }), pipe);
  assert.equal(pipe.out(), answer());
});
