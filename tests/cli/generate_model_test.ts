// What generate takes from the model: sampling, reasoning, and what it reports about an answer.
import assert from "node:assert/strict";
import { GREEDY } from "../../src/speculate/sampling.ts";
import { runGenerate } from "../../src/cli/generate/generate.ts";
import { parseArguments } from "../../src/cli/options/parse.ts";
import { type FakeEngine, fakeEngine, type FakeIo, fakeIo } from "./fake.ts";

function run(args: string[], engine: FakeEngine, io: FakeIo): Promise<number> {
  const invocation = parseArguments(["generate", ...args]);
  assert.ok(invocation.command === "generate");
  return runGenerate(invocation, { open: engine.open, io, randomSeed: () => 77 });
}

const GENERATION = { temperature: 0.6, topK: 20, topP: 0.95 };

Deno.test("generation_config.json has the word where no flag has it", async () => {
  const sampling = async (...flags: string[]) => {
    const engine = fakeEngine({ generation: GENERATION });
    await run(["hi", "--seed", "1", ...flags], engine, fakeIo({ stdin: "" }));
    return engine.requests[0]?.sampling;
  };
  const asked = { ...GREEDY, temperature: 0.6, topK: 20, topP: 0.95, seed: 1 };
  assert.deepEqual(await sampling(), asked);
  assert.deepEqual(await sampling("--top-k", "0", "--min-p", "0.1"), {
    ...asked,
    topK: 0,
    minP: 0.1,
  });
  const own = { ...GREEDY, temperature: 0.7, seed: 1 };
  assert.deepEqual(await sampling("--generation-config", "none"), own);
});

Deno.test("the repetition penalty of generation_config.json is the default", async () => {
  const used = async (...flags: string[]) => {
    const engine = fakeEngine({ generation: { repetitionPenalty: 1.05 } });
    await run(["hi", ...flags], engine, fakeIo({ stdin: "" }));
    return engine.requests[0]?.sampling.repetitionPenalty;
  };
  assert.equal(await used(), 1.05);
  assert.equal(await used("--repetition-penalty", "1.2"), 1.2);
  assert.equal(await used("--generation-config", "none"), 1);
});

const THOUGHT = { answer: () => "<think>I see.</think>\n\none two" };

Deno.test("reasoning: shown on a terminal, left out of a pipe, apart in --json", async () => {
  const piped = fakeIo({ stdin: "" });
  await run(["hi", "--quiet"], fakeEngine(THOUGHT), piped);
  assert.deepEqual([piped.out(), piped.err()], ["one two\n", ""]);
  const terminal = { ...fakeIo({ terminal: true }), colour: true };
  await run(["hi"], fakeEngine(THOUGHT), terminal);
  assert.equal(terminal.out(), "one two\n");
  assert.ok(terminal.err().includes("\x1b[2mI\x1b[0m \x1b[2msee.\x1b[0m\n\n"));
  const json = fakeIo({ terminal: true });
  await run(["hi", "--json", "--quiet"], fakeEngine(THOUGHT), json);
  const { text, reasoning } = JSON.parse(json.out());
  assert.deepEqual([text, reasoning, json.err().includes("I see.")], ["one two", "I see.", false]);
});

Deno.test("reasoning that the prompt opened and the answer never closed", async () => {
  const io = fakeIo({ terminal: true });
  await run(["hi <think>"], fakeEngine({ answer: () => "I see" }), io);
  assert.ok(io.err().includes("\x1b[KI see\n2 tokens"));
  assert.equal(io.out(), "\n");
});

Deno.test("--think and --template-arg are the template's variables", async () => {
  const args = async (...flags: string[]) => {
    const engine = fakeEngine();
    await run(["hi", ...flags], engine, fakeIo({ stdin: "" }));
    return engine.templateArguments[0];
  };
  assert.deepEqual(await args(), {});
  assert.deepEqual(await args("--think", "on"), { enable_thinking: true, thinking: true });
  const given = ["--template-arg", 'reasoning_effort="high"', "--template-arg", "thinking=null"];
  assert.deepEqual(await args("--think", "off", ...given), {
    enable_thinking: false,
    thinking: null,
    reasoning_effort: "high",
  });
});

for (
  const [given, why] of [
    ["x", "allowed is NAME=JSON"],
    ["1x=1", "allowed is NAME=JSON"],
    ["messages=[]", "messages is set by the conversation itself; allowed are other names"],
    ["effort=high", "high is not JSON; a text is written 'effort=\"high\"'"],
  ] as const
) {
  Deno.test(`--template-arg ${given} is refused before anything is opened`, async () => {
    const engine = fakeEngine();
    await assert.rejects(run(["hi", "--template-arg", given], engine, fakeIo({ stdin: "" })), {
      name: "UsageError",
      message: `Cannot use "--template-arg ${given}": ${why}`,
    });
    assert.deepEqual(engine.opened, []);
  });
}

Deno.test("an answer that was cut says so at the end of stderr, in a pipe too", async () => {
  const answer = () => "one two three";
  const said = async (
    flags: string[],
    contextLength: number,
    terminal: boolean,
    maxContextLength = 2000,
  ) => {
    const io = fakeIo({ terminal, columns: 100, ...terminal ? {} : { stdin: "" } });
    await run(["hi", ...flags], fakeEngine({ answer, contextLength, maxContextLength }), io);
    const last = io.err().trimEnd().split("\n").at(-1);
    return last?.startsWith("The") ? last : undefined;
  };
  const two = ["--max-tokens", "2"];
  const cut = "The answer was cut at --max-tokens 2; a larger number allows more.";
  const full = "The context (3 tokens) is full: the answer was cut; --context-length allows more.";
  assert.equal(await said(two, 1000, true), cut);
  assert.equal(await said([...two, "--stats"], 1000, false), cut);
  assert.equal(await said(two, 3, true), full);
  const most = "The context (3 tokens) is full: the answer was cut.";
  assert.equal(await said(two, 3, true, 3), most);
  assert.equal(await said(two, 1000, false), cut);
  assert.equal(await said([...two, "--json"], 1000, false), cut);
  assert.equal(await said([...two, "--quiet"], 1000, true), undefined);
  assert.equal(await said([], 1000, true), undefined);
});

Deno.test("the default limit is named where it cut, and JSON that is incomplete", async () => {
  const said = async (flags: string[], text: string) => {
    const io = fakeIo({ stdin: "" });
    assert.equal(await run(["hi", ...flags], fakeEngine({ answer: () => text }), io), 0);
    return io.err().trimEnd().split("\n").at(-1) ?? "";
  };
  const long = "word ".repeat(600);
  assert.equal(
    await said([], long),
    "The answer was cut at --max-tokens 512 (the default); a larger number allows more.",
  );
  const two = "The answer was cut at --max-tokens 2; a larger number allows more.";
  const json = ["--json-object", "-n", "2"];
  assert.equal(await said(json, '{ "a": 1 }'), `${two} Its JSON is incomplete.`);
  assert.equal(await said(json, "{ } }"), two);
  assert.equal(
    await said(["--regex", "[a-z ]+", "-n", "2"], "a b c"),
    `${two} It may not be a whole text of the grammar.`,
  );
});

Deno.test("Ctrl+C before the first token leaves no line of nothing", async () => {
  const io = fakeIo({ stdin: "" });
  const engine = fakeEngine({ beforeWord: () => Promise.resolve(io.interrupt()) });
  assert.equal(await run(["hi"], engine, io), 130);
  assert.deepEqual([io.out(), io.err()], ["", ""]);
});

Deno.test("a draft that never guesses right is told of", async () => {
  const io = fakeIo({ stdin: "" });
  const engine = fakeEngine({ accepted: 0, rounds: 60 });
  await run(["hi"], engine, io);
  assert.match(io.err(), /warning: none of 180 drafted tokens was accepted in 60 rounds: /);
  const few = fakeIo({ stdin: "" });
  await run(["hi"], fakeEngine({ accepted: 0 }), few);
  assert.doesNotMatch(few.err(), /warning/);
  const quiet = fakeIo({ stdin: "" });
  await run(["hi", "--quiet"], fakeEngine({ accepted: 0, rounds: 60 }), quiet);
  assert.equal(quiet.err(), "");
});
