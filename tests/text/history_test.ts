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
