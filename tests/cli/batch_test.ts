import assert from "node:assert/strict";
import { runGenerate } from "../../src/cli/generate/generate.ts";
import { shortError } from "../../src/cli/generate/batch_error.ts";
import { parseBatch } from "../../src/cli/generate/batch_file.ts";
import { parseBatchLine } from "../../src/cli/generate/batch_line.ts";
import { parseArguments } from "../../src/cli/options/parse.ts";
import { UsageError } from "../../src/errors.ts";
import { fakeEngine, type FakeIo, fakeIo } from "./fake.ts";

async function run(
  text: string,
  flags: readonly string[] = [],
  options: Parameters<typeof fakeEngine>[0] = {},
) {
  const engine = fakeEngine(options);
  const io = fakeIo({ stdin: text });
  const invocation = parseArguments(["generate", "--batch", "-", ...flags]);
  assert.ok(invocation.command === "generate");
  const code = await runGenerate(invocation, { open: engine.open, io });
  return { code, lines: parsed(io.out()), engine, err: io.err() };
}

function parsed(text: string) {
  return text.split("\n").filter(Boolean).map((line) => JSON.parse(line));
}

Deno.test("batch: one line a request, with its id or its line number", async () => {
  const { code, lines, engine } = await run(
    '{"prompt": "one", "seed": 5, "temperature": 1, "stop": "x", "max_tokens": 3}\n\n' +
      '{"id": "b", "messages": [{"role": "user", "content": "two"}], "ignore_eos": true}\n',
    ["--temperature", "0", "--max-tokens", "9", "--max-batch", "2", "--max-kv-tokens", "64"],
  );
  assert.equal(code, 0);
  assert.deepEqual(lines.map(({ id, line, text }) => [id, line, text]), [
    [1, 1, "answer 1"],
    ["b", 3, "answer 2"],
  ]);
  const [first, second] = engine.requests;
  assert.deepEqual([first?.maxTokens, second?.maxTokens], [3, 9]);
  assert.deepEqual([first?.sampling.seed, first?.sampling.temperature], [5, 1]);
  assert.deepEqual([second?.sampling.temperature, second?.ignoreEos], [0, true]);
  assert.deepEqual([first?.stop, second?.stop], [["x"], []]);
  assert.deepEqual([engine.opened[0]?.limits?.maxBatch, engine.opened[0]?.limits?.maxKvTokens], [
    2,
    64,
  ]);
});

Deno.test("batch: the share of the GPU's memory is the engine's, above 0 and at most 1", async () => {
  const line = '{"prompt": "one"}\n';
  const { engine } = await run(line, ["--gpu-memory-utilization", "0.5"]);
  assert.equal(engine.opened[0]?.limits?.gpuMemoryUtilization, 0.5);
  for (const share of ["0", "1.1"]) {
    await assert.rejects(run(line, ["--gpu-memory-utilization", share]), UsageError);
  }
});

Deno.test("batch: reasoning is apart, the template gets its variables, the model its sampling", async () => {
  const { lines, engine } = await run(
    '{"prompt": "a"}\n{"messages": [{"role": "user", "content": "b"}], "top_k": 3}\n',
    ["--think", "on"],
    {
      answer: (n) => n === 1 ? "<think>hm</think>one" : "two",
      generation: { temperature: 0.6, topK: 20 },
    },
  );
  const [first, second] = lines;
  assert.deepEqual([first.text, first.reasoning], ["one", "hm"]);
  assert.deepEqual([second.text, "reasoning" in second], ["two", false]);
  const on = { enable_thinking: true, thinking: true };
  assert.deepEqual(engine.templateArguments, [on, on]);
  assert.deepEqual(
    engine.requests.map((
      { sampling, maxTokens },
    ) => [sampling.temperature, sampling.topK, maxTokens]),
    [[0.6, 20, 512], [0.6, 3, 512]],
  );
});

Deno.test("batch: penalties and biases of a line, else those of the command line", async () => {
  const { engine } = await run(
    '{"prompt": "a", "presence_penalty": -1, "logit_bias": {"5": 2}}\n{"prompt": "b"}\n',
    ["--presence-penalty", "1", "--frequency-penalty", "0.5", "--logit-bias", "7=3"],
  );
  const [first, second] = engine.requests.map(({ sampling }) => sampling);
  assert.deepEqual([first?.presencePenalty, first?.frequencyPenalty], [-1, 0.5]);
  assert.deepEqual([first?.logitBias, second?.logitBias], [{ 5: 2 }, { 7: 3 }]);
  assert.equal(second?.presencePenalty, 1);
});

Deno.test("batch: a line's grammar, else that of the command line", async () => {
  const { engine, lines } = await run(
    '{"prompt": "a", "json_schema": {"type": "null"}}\n{"prompt": "b"}\n' +
      '{"prompt": "c", "json_object": true}\n{"prompt": "d", "regex": "a", "grammar": "b"}\n' +
      '{"prompt": "e", "regex": 5}\n{"prompt": "f", "json_object": "yes"}\n',
    ["--regex", "[0-9]+"],
  );
  assert.deepEqual(engine.requests.map(({ grammar }) => grammar), [
    { kind: "json schema", schema: { type: "null" } },
    { kind: "regex", pattern: "[0-9]+" },
    { kind: "json object" },
  ]);
  assert.deepEqual(lines.flatMap(({ error }) => error ?? []), [
    "Cannot use line 4: it has grammar and regex, the output has one grammar",
    "Cannot use line 5: regex is not a text",
    "Cannot use line 6: json_object is not a boolean",
  ]);
  assert.equal(engine.opened[0]?.limits?.constrained, true);
});

Deno.test("batch: without grammars nothing is prepared for them", async () => {
  const { engine } = await run('{"prompt": "a"}\n');
  assert.equal(engine.opened[0]?.limits?.constrained, undefined);
  assert.equal(engine.requests[0]?.grammar, undefined);
});

Deno.test("batch: log-probabilities of a line, else as the command line says", async () => {
  const text = '{"prompt": "a"}\n{"prompt": "b", "logprobs": 0}\n';
  const { lines } = await run(text, ["--logprobs", "1"]);
  const tops = lines.map(({ logprobs }) => logprobs[0].top_logprobs.length);
  assert.deepEqual(tops, [1, 0]);
  assert.equal((await run(text)).lines[0].logprobs, undefined);
});

Deno.test("batch: a bad line is an error of that line alone", async () => {
  const { code, lines, err } = await run('nonsense\n\n{"prompt": "fine"}\n{"prompt": ""}\n');
  assert.equal(code, 1);
  assert.deepEqual(lines.map(({ id, error }) => [id, error]), [
    [1, "Cannot use line 1: it is not JSON"],
    [4, "Cannot use line 4: prompt is not a text, or empty"],
    [3, undefined],
  ]);
  assert.match(err, /^3 requests, 2 failed/);
});

Deno.test("batch: a line that cannot be used keeps its id", () => {
  const lines = [
    '{"id": "b", "prompt": 5}',
    '{"id": 1.0}',
    '{"id": {}, "prompt": "a"}',
    '[{"id": 9}]',
  ];
  const ids = parseBatch(lines.join("\n")).map(({ id }) => JSON.stringify(id));
  assert.deepEqual(ids, ['"b"', "1.0", "3", "4"]);
});

Deno.test("batch: numbers as ids come back digit by digit, and are told apart", async () => {
  const ids = ["9007199254740993", "9007199254740992", "-12345678901234567890", "1.0", "1e3", "7"];
  const text = ids.map((id) => `{"id": ${id}, "prompt": "a"}`).join("\n");
  const engine = fakeEngine();
  const io = fakeIo({ stdin: `${text}\n{"prompt": {"id": 5}}\n{"prompt": "b"}\n` });
  const invocation = parseArguments(["generate", "--batch", "-"]);
  assert.ok(invocation.command === "generate");
  await runGenerate(invocation, { open: engine.open, io });
  const found = io.out().trimEnd().split("\n").map((line) => /^{"id":([^,]*),/.exec(line)?.[1]);
  assert.deepEqual(found.toSorted(), [...ids, "8", "16"].toSorted());
  // The 7th line has no id, and the line before it already uses 7.
  assert.deepEqual(parsed(io.out()).map(({ line }) => line).toSorted(), [1, 2, 3, 4, 5, 6, 7, 8]);
});

Deno.test("batch: a line has its output ids", async () => {
  const { lines, engine } = await run('{"prompt": "a"}\n');
  assert.equal(engine.requests.length, 1);
  assert.equal(lines[0].output_ids.length, lines[0].usage.completion_tokens);
  assert.ok(lines[0].output_ids.every((id: unknown) => Number.isInteger(id)));
});

Deno.test("batch: an error repeats 200 characters of a value", async () => {
  const long = "v".repeat(5000);
  const quoted = 'x"y'.repeat(2000);
  const bad = [
    { prompt: "a", [long]: 1 },
    { prompt: "a", [quoted]: 1 },
  ];
  const { code, lines } = await run(bad.map((line) => JSON.stringify(line)).join("\n"));
  assert.equal(code, 1);
  assert.equal(
    lines[0].error.split(",")[0],
    `Cannot use line 1: it has a field "${"v".repeat(200)}…"`,
  );
  assert.ok(lines[1].error.length < 1100, `${lines[1].error.length}`);
  const grammars = [
    `regular expression "(${long}": Unterminated group`,
    `the type "${quoted}" is none`,
  ];
  for (const message of grammars) {
    const short = shortError(`Cannot constrain the output: ${message}`);
    assert.ok(short.length < 1100 && short.endsWith(message.slice(-20)), short);
  }
  assert.equal(shortError('Cannot use "a": b'), 'Cannot use "a": b');
});

Deno.test("batch: the closing line counts what was cut", async () => {
  const { err } = await run('{"prompt": "a", "max_tokens": 1}\n{"prompt": "b"}\n');
  assert.match(err, /^2 requests, 0 failed, 1 cut at their limit, 3 tokens in /m);
});

Deno.test("batch: no made id equals one that is given", () => {
  const given = ["", "2", "7", '"4"', '"b"'].map((id) => id && `"id": ${id}, `);
  const text = given.map((id) => `{${id}"prompt": "a"}`).join("\n") + '\n{"prompt": "b"}\nx\n\n';
  assert.deepEqual(parseBatch(text).map(({ id }) => id), [1, 2, 7, "4", "b", 6, 16]);
});

Deno.test("batch: --output has the lines as they finish, and no file that holds something goes", async () => {
  const folder = await Deno.makeTempDir();
  const output = `${folder}/answers.jsonl`;
  const ask = async (io: FakeIo, beforeWord = (_: string) => Promise.resolve()) => {
    const invocation = parseArguments(["generate", "--batch", "-", "--output", output]);
    assert.ok(invocation.command === "generate");
    return await runGenerate(invocation, { open: fakeEngine({ beforeWord }).open, io });
  };
  const prompts = '{"prompt": "one"}\n{"prompt": "two"}\n';
  try {
    const early = fakeIo({ stdin: prompts });
    early.interrupt();
    assert.equal(await ask(early), 130);
    assert.deepEqual(await Array.fromAsync(Deno.readDir(folder)), [], "nothing written, no file");

    const io = fakeIo({ stdin: '{"prompt": ""}\n' + prompts });
    const code = await ask(io, (word) => {
      if (word === "answer ") return Promise.resolve();
      // The failed line is written while the others are still being answered.
      assert.equal(parsed(Deno.readTextFileSync(output)).length, 1);
      io.interrupt();
      return Promise.resolve();
    });
    assert.equal(code, 130);
    assert.equal(io.out(), "");
    const kept = Deno.readTextFileSync(output);
    const reasons = parsed(kept).map(({ error, finish_reason }) => finish_reason ?? error);
    const refused = "Cannot use line 1: prompt is not a text, or empty";
    assert.deepEqual(reasons, [refused, "interrupt"], "no line for what had no token yet");
    assert.match(io.err(), /^2 of 3 requests, 1 failed/m);

    await assert.rejects(ask(fakeIo({ stdin: prompts })), {
      name: "UsageError",
      message:
        `Cannot write "${output}": the file exists already; name another one or give --force to replace it`,
    });
    assert.equal(Deno.readTextFileSync(output), kept);
    Deno.truncateSync(output);
    assert.equal(await ask(fakeIo({ stdin: prompts })), 0);
    assert.equal(parsed(Deno.readTextFileSync(output)).length, 2);
    const forced = parseArguments(["generate", "--batch", "-", "--output", output, "--force"]);
    assert.ok(forced.command === "generate");
    const io1 = fakeIo({ stdin: '{"prompt": "one"}\n' });
    assert.equal(await runGenerate(forced, { open: fakeEngine().open, io: io1 }), 0);
    assert.equal(parsed(Deno.readTextFileSync(output)).length, 1, "replaced with --force");
    const ownPrompts = '{"prompt": "kept"}\n';
    Deno.writeTextFileSync(output, ownPrompts);
    Deno.symlinkSync(output, `${output}.link`);
    const own = parseArguments([
      "generate",
      "--batch",
      output,
      "--output",
      `${output}.link`,
      "--force",
    ]);
    assert.ok(own.command === "generate");
    await assert.rejects(runGenerate(own, { open: fakeEngine().open, io: fakeIo() }), {
      message: `Cannot write "${output}.link": "${output}", which is read, is the same file`,
    });
    assert.equal(Deno.readTextFileSync(output), ownPrompts);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("batch: a full disk is no mistake of the user", async () => {
  const invocation = parseArguments(["generate", "--batch", "-", "--output", "/dev/full"]);
  assert.ok(invocation.command === "generate");
  const io = fakeIo({ stdin: '{"prompt": "one"}\n' });
  await assert.rejects(runGenerate(invocation, { open: fakeEngine().open, io }), {
    name: "OutputError",
    message: 'Cannot write "/dev/full": no space left',
  });
});

Deno.test("batch: files that cannot be read or written", async () => {
  const io = fakeIo({ stdin: "" });
  const surroundings = { open: fakeEngine().open, io };
  for (
    const args of [["--batch", "/no/such/file"], [
      "--batch",
      "/dev/null",
      "--output",
      "/no/such/folder/file",
    ]]
  ) {
    const invocation = parseArguments(["generate", ...args]);
    assert.ok(invocation.command === "generate");
    await assert.rejects(runGenerate(invocation, surroundings), UsageError);
  }
});

for (
  const [text, why] of [
    ["[]", "it is not a JSON object"],
    [
      '{"prompt": "x", "logit_bias": [5]}',
      "logit_bias is no object of token ids and values from -100 to 100",
    ],
    ["{}", "it needs one of prompt and messages"],
    ['{"prompt": "a", "messages": []}', "it needs one of prompt and messages"],
    ['{"messages": []}', "messages is not a list"],
    ['{"messages": [{"role": "robot", "content": "a"}]}', "messages is not a list"],
    ['{"prompt": "a", "n": 2}', 'it has a field "n"'],
    ['{"prompt": "a", "temperature": "hot"}', "temperature is not a number"],
    ['{"prompt": "a", "top_p": 0}', '"top_p 0": allowed is'],
    ['{"prompt": "a", "max_tokens": 1.5}', '"max_tokens 1.5": allowed is'],
    ['{"prompt": "a", "stop": [""]}', "stop is neither"],
    ['{"prompt": "a", "ignore_eos": 1}', "ignore_eos is not a boolean"],
    ['{"prompt": "a", "id": {}}', "id is neither text nor number"],
  ] as const
) {
  Deno.test(`batch line ${text}`, () => {
    assert.throws(() => parseBatchLine(text, 7), (error) => {
      assert.ok(error instanceof UsageError);
      assert.ok(error.message.startsWith(`Cannot use line 7: ${why}`), error.message);
      return true;
    });
  });
}
