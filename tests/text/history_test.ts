import assert from "node:assert/strict";
import { effortArguments } from "../../src/text/effort.ts";
import { historyFor } from "../../src/text/history.ts";
import { type ChatMessage, renderChat } from "../../src/text/chat_template.ts";

const template = (name: string) =>
  Deno.readTextFileSync(new URL(`../golden/templates/${name}.jinja`, import.meta.url));

const call = (id: string, a: number) => ({
  type: "function",
  id,
  function: { name: "f", arguments: { a } },
});
const QUESTION: ChatMessage = { role: "user", content: "q" };
const CALLING: ChatMessage = {
  role: "assistant",
  content: "I look.",
  reasoning_content: "R.",
  tool_calls: [call("aaaaaaaaa", 1), call("bbbbbbbbb", 2)],
};
const RESULTS: readonly ChatMessage[] = [
  { role: "tool", tool_call_id: "bbbbbbbbb", content: "two" },
  { role: "tool", tool_call_id: "aaaaaaaaa", content: "one" },
];

/** The part of the prompt after the question. */
function prompt(name: string, messages: readonly ChatMessage[]): string {
  const text = template(name);
  const all = [QUESTION, ...messages];
  const rendered = renderChat(text, historyFor(text, all), {
    addGenerationPrompt: true,
    bosToken: "<s>",
    eosToken: "</s>",
    templateArguments: { enable_thinking: true },
  });
  return rendered.slice(rendered.lastIndexOf("q") + 1);
}

Deno.test("history: gpt-oss has reasoning before a call, each call with its result", () => {
  assert.equal(
    prompt("gpt_oss", [CALLING, ...RESULTS]),
    "<|end|><|start|>assistant<|channel|>analysis<|message|>R.\n\nI look.<|end|>" +
      '<|start|>assistant to=functions.f<|channel|>commentary json<|message|>{"a": 1}<|call|>' +
      '<|start|>functions.f to=assistant<|channel|>commentary<|message|>"one"<|end|>' +
      '<|start|>assistant to=functions.f<|channel|>commentary json<|message|>{"a": 2}<|call|>' +
      '<|start|>functions.f to=assistant<|channel|>commentary<|message|>"two"<|end|>' +
      "<|start|>assistant",
  );
});

Deno.test("history: results without ids belong to the calls in order", () => {
  const results = RESULTS.map(({ content }): ChatMessage => (
    { role: "tool", content, tool_call_id: "" }
  ));
  const text = prompt("gpt_oss", [CALLING, ...results]);
  assert.ok(text.indexOf('"two"') < text.indexOf('"one"') && text.includes('"one"'), text);
});

Deno.test("history: every result is shown once, whatever the ids of calls and results are", () => {
  const shown = (ids: readonly string[], results: readonly (readonly [string, string])[]) => {
    const calling = { ...CALLING, tool_calls: ids.map((id, a) => call(id, a)) };
    const answers = results.map(([tool_call_id, content]): ChatMessage => (
      { role: "tool", tool_call_id, content }
    ));
    return ["gpt_oss", "llama3"].map((name) =>
      [...prompt(name, [calling, ...answers]).matchAll(/"a": (\d)|"(one|two|three)"/g)]
        .map(([, a, word]) => a ?? word).join(" ")
    );
  };
  const both = (expected: string) => [expected, expected];
  assert.deepEqual(shown(["a", "b"], [["?", "two"], ["a", "one"]]), both("0 one 1 two"));
  assert.deepEqual(shown(["a", "a"], [["a", "one"], ["a", "two"]]), both("0 one 1 two"));
  assert.deepEqual(
    shown(["a", "b"], [["a", "one"], ["?", "two"], ["?", "three"]]),
    both("0 one 1 two three"),
  );
  assert.deepEqual(shown(["a", "b"], [["a", "one"], ["a", "two"]]), both("0 one two 1"));
  assert.deepEqual(shown(["a", "b"], [["b", "two"]]), both("0 1 two"));
});

Deno.test("history: gpt-oss drops reasoning once there was an answer", () => {
  const answer: ChatMessage = { role: "assistant", content: "3.", reasoning_content: "So 3." };
  const text = prompt("gpt_oss", [CALLING, ...RESULTS, answer, { role: "user", content: "?" }]);
  assert.ok(!text.includes("analysis"), text);
  assert.match(text, /<\|channel\|>final<\|message\|>3\.<\|end\|>/);
});

Deno.test("history: Gemma 4 has what was said before the calls, and goes on with the turn", () => {
  assert.match(
    prompt("gemma4", [CALLING, ...RESULTS]),
    /<\|turn>model\n<\|channel>thought\nR\.\n<channel\|>I look\.<\|tool_call>call:f\{a:1\}<tool_call\|>.*<tool_response\|><\|channel>thought\n$/,
  );
});

Deno.test("history: an older template of Gemma 4 gets messages as they are", () => {
  assert.deepEqual(historyFor("<|tool_call>call:", [CALLING]), [CALLING]);
});

Deno.test("history: Ministral 3 has reasoning as a block", () => {
  assert.match(
    prompt("ministral3", [CALLING]),
    /\[THINK\]R\.\[\/THINK\]I look\.\[TOOL_CALLS\]f\[ARGS\]\{"a": 1\}/,
  );
  assert.deepEqual(historyFor(template("ministral3"), [{ ...CALLING, content: "" }])[0]?.content, [
    { type: "thinking", thinking: "R." },
  ]);
});

Deno.test("history: templates that read thinking get it; others get the messages as they are", () => {
  const [message] = historyFor("{{ message.thinking }}", [CALLING]);
  assert.equal(message?.thinking, "R.");
  assert.deepEqual(historyFor(template("qwen38"), [CALLING]), [CALLING]);
});

Deno.test("history: Glimmer has what was said before the calls, and goes on with the turn", () => {
  const text = prompt("glimmer", [CALLING, ...RESULTS]);
  assert.ok(
    text.startsWith(
      "<|eot|><|start|>assistant to=self<|message|>R.<|eom|>" +
        "<|start|>assistant to=user<|message|>I look.<|eom|><|start|>assistant to=f<|message|>",
    ),
    text,
  );
});

Deno.test("history: results are in the order of the calls, where they say which they answer", () => {
  for (const name of ["qwen38", "qwen3", "glm47", "granite4", "ministral3", "glimmer"]) {
    assert.match(prompt(name, [CALLING, ...RESULTS]), /one[^]*two/, name);
  }
  const unknown = RESULTS.map((result) => ({ ...result, tool_call_id: "" }));
  assert.match(prompt("qwen3", [CALLING, ...unknown]), /two[^]*one/);
});

Deno.test("history: Llama 3 has each call with its result", () => {
  const heads = (text: string) => [...text.matchAll(/"a": \d|one|two/g)].map(([head]) => head);
  assert.deepEqual(heads(prompt("llama3", [CALLING, ...RESULTS])), [
    '"a": 1',
    "one",
    '"a": 2',
    "two",
  ]);
  const [message] = historyFor("{% if not message.tool_calls|length == 1 %}", [CALLING]);
  assert.equal(message?.tool_calls?.length, 1);
});

const user = (content: string): ChatMessage => ({ role: "user", content });
const assistant = (content: string): ChatMessage => ({ role: "assistant", content });
const system = (content: string): ChatMessage => ({ role: "system", content });

for (const name of ["ministral3", "mistral_small", "mistral"]) {
  Deno.test(`history: ${name} gets turns that alternate`, () => {
    const [firstCall] = CALLING.tool_calls ?? [];
    const calling: ChatMessage = { ...assistant(""), tool_calls: [firstCall] };
    const result: ChatMessage = { role: "tool", tool_call_id: "aaaaaaaaa", content: "one" };
    assert.ok(prompt(name, [user("more")]).includes("\n\nmore[/INST]"));
    assert.ok(prompt(name, [assistant(""), user("more")]).includes("\n\nmore[/INST]"));
    assert.match(
      prompt(name, [calling, result, user("stop"), user("now")]),
      /one.*\[\/TOOL_RESULTS\]Done\.<\/s>.*\[INST\]stop\n\nnow\[\/INST\]$/,
    );
    assert.match(prompt(name, [calling, user("stop")]), /Done\.<\/s>.*\[INST\]stop\[\/INST\]$/);
    assert.match(prompt(name, [assistant("a"), assistant("b"), user("?")]), /a\n\nb<\/s>/);
    assert.match(
      prompt(name, [assistant("Look."), calling, result, assistant("One."), user("?")]),
      /one.*\[\/TOOL_RESULTS\]One\.<\/s>/,
    );
  });
}

Deno.test("history: thoughts of answers that are joined are joined too", () => {
  const thinking = (reasoning_content: string) => ({ ...assistant("a"), reasoning_content });
  assert.match(
    prompt("ministral3", [thinking("T1"), thinking("T2")]),
    /\[THINK\]T1\n\nT2\[\/THINK\]a\n\na<\/s>/,
  );
});

Deno.test("history: only templates that demand it get other turns", () => {
  const messages = [QUESTION, user("more"), assistant(""), user("?")];
  assert.deepEqual(historyFor(template("qwen38"), messages), messages);
});

const RULES = [system("S1"), system("S2"), QUESTION, assistant("a"), system("S3"), user("?")];

for (
  const name of [
    "gpt_oss",
    "smollm3",
    "qwen38",
    "ministral3",
    "mistral_small",
    "gemma3",
    "deepseek_r1",
  ]
) {
  Deno.test(`history: ${name} takes one system message; the user says the later ones`, () => {
    const text = template(name);
    const history = historyFor(text, RULES);
    assert.deepEqual(history[0], system("S1\n\nS2"));
    assert.deepEqual(history.filter(({ role }) => role === "system").length, 1);
    const options = { addGenerationPrompt: true, bosToken: "<s>", eosToken: "</s>" };
    assert.match(
      renderChat(text, history, options),
      /S1\n\nS2[^]*<system-reminder>\nS3\n<\/system-reminder>[^]*\?/,
    );
  });
}

Deno.test("history: other templates take system messages as they are", () => {
  for (const name of ["gemma4", "glimmer", "glm47", "qwen3", "granite4", "seed_oss", "phi4"]) {
    assert.deepEqual(historyFor(template(name), RULES), RULES, name);
  }
});

Deno.test("effort: the nearest level that a template knows, under its name", () => {
  const gptOss = template("gpt_oss");
  assert.deepEqual(effortArguments(gptOss, "high"), { reasoning_effort: "high" });
  assert.deepEqual(effortArguments(gptOss, "none"), { reasoning_effort: "low" });
  assert.deepEqual(effortArguments(gptOss, "xhigh"), { reasoning_effort: "high" });
  assert.deepEqual(effortArguments(template("qwen38"), "high"), { reasoning_effort: "xhigh" });
  assert.deepEqual(effortArguments(template("qwen38"), "minimal"), { reasoning_effort: "low" });
  assert.deepEqual(effortArguments(template("glimmer"), "low"), { reasoning_strength: "low" });
  assert.deepEqual(effortArguments(template("qwen3"), "high"), {});
  assert.deepEqual(effortArguments(undefined, "high"), {});
});
