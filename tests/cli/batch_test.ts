import assert from "node:assert/strict";
import { runGenerate } from "../../src/cli/generate/generate.ts";
import { parseBatchLine } from "../../src/cli/generate/batch_line.ts";
import { parseArguments } from "../../src/cli/options/parse.ts";
import { UsageError } from "../../src/errors.ts";
import { fakeEngine, fakeIo } from "./fake.ts";

async function run(text: string, flags: readonly string[] = []) {
  const file = await Deno.makeTempFile();
  await Deno.writeTextFile(file, text);
  const engine = fakeEngine();
  const io = fakeIo({ stdin: "" });
  const invocation = parseArguments(["generate", "--batch", file, ...flags]);
  assert.ok(invocation.command === "generate");
  const code = await runGenerate(invocation, { open: engine.open, io });
  await Deno.remove(file);
  const lines = io.out().split("\n").filter(Boolean).map((line) => JSON.parse(line));
  return { code, lines, engine, err: io.err() };
}

Deno.test("batch: one line a request, with its id or its line number", async () => {
  const { code, lines, engine } = await run(
    '{"prompt": "one", "seed": 5, "temperature": 1, "stop": "x", "max_tokens": 3}\n\n' +
      '{"id": "b", "messages": [{"role": "user", "content": "two"}], "ignore_eos": true}\n',
    ["--temperature", "0", "--max-tokens", "9", "--max-batch", "2", "--max-kv-tokens", "64"],
  );
  assert.equal(code, 0);
  assert.deepEqual(lines.map(({ id, text }) => [id, text]), [[1, "answer 1"], ["b", "answer 2"]]);
  const [first, second] = engine.requests;
  assert.deepEqual([first?.maxTokens, second?.maxTokens], [3, 9]);
  assert.deepEqual([first?.sampling.seed, first?.sampling.temperature], [5, 1]);
  assert.deepEqual([second?.sampling.temperature, second?.ignoreEos], [0, true]);
  assert.deepEqual([first?.stop, second?.stop], [["x"], []]);
  assert.deepEqual([engine.opened[0]?.maxBatch, engine.opened[0]?.maxKvTokens], [2, 64]);
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
  assert.equal(engine.opened[0]?.constrained, true);
});

Deno.test("batch: without grammars nothing is prepared for them", async () => {
  const { engine } = await run('{"prompt": "a"}\n');
  assert.equal(engine.opened[0]?.constrained, undefined);
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
  const { code, lines, err } = await run('nonsense\n{"prompt": "fine"}\n{"prompt": ""}\n');
  assert.equal(code, 1);
  assert.deepEqual(lines.map(({ id, error }) => [id, error]), [
    [1, "Cannot use line 1: it is not JSON"],
    [3, "Cannot use line 3: prompt is not a text, or empty"],
    [2, undefined],
  ]);
  assert.match(err, /^3 requests, 2 failed/);
});

Deno.test("batch: files that cannot be read, and a prompt beside it", async () => {
  const io = fakeIo({ stdin: "" });
  const surroundings = { open: fakeEngine().open, io };
  for (const args of [["--batch", "/no/such/file"], ["--batch", "/dev/null", "prompt"]]) {
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
    ['{"prompt": "a", "top_p": 0}', 'Cannot use "top_p 0"'],
    ['{"prompt": "a", "max_tokens": 1.5}', 'Cannot use "max_tokens 1.5"'],
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
