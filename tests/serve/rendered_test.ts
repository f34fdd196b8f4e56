import assert from "node:assert/strict";
import { TEMPLATES, templateServer } from "./rendered.ts";
import type { Json } from "./server.ts";

const FOLDER = new URL("./recorded/", import.meta.url);
const RECORDED: readonly Json[] = [...Deno.readDirSync(FOLDER)].map(({ name }) => ({
  name,
  ...JSON.parse(Deno.readTextFileSync(new URL(name, FOLDER))),
}));

/** What Claude Code sends after a call. */
const RESULT_AND_TEXT = {
  name: "a result of a tool with a reminder behind it",
  path: "/v1/messages",
  body: {
    max_tokens: 9,
    messages: [
      { role: "user", content: "Say hello" },
      { role: "assistant", content: [{ type: "tool_use", id: "toolu_1", name: "f", input: {} }] },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "toolu_1", content: "a.txt" },
          { type: "text", text: "<system-reminder>todo</system-reminder>" },
        ],
      },
    ],
    tools: [{ name: "f", input_schema: { type: "object", properties: {} } }],
  },
};

const NUMBERS = '{"id": 1234567890123456789, "x": [1.0, -0.0], "o": {"e": 1e-7}, "n": 3}';

for (
  const [name, written] of Object.entries({
    qwen3: NUMBERS,
    ministral3: NUMBERS,
    llama3: NUMBERS,
    gpt_oss: NUMBERS,
    // A call in words, where the template has none.
    gemma3: NUMBERS.replaceAll(" ", ""),
    smollm3: NUMBERS.replaceAll(" ", ""),
    deepseek_v31: NUMBERS.replaceAll(" ", ""),
    qwen38: "<parameter=id>\n1234567890123456789\n</parameter>\n<parameter=x>\n[1.0, -0.0]\n",
    glm47: "<arg_value>1234567890123456789</arg_value><arg_key>x</arg_key><arg_value>[1.0, -0.0]<",
    laguna: "<arg_value>1234567890123456789</arg_value><arg_key>x</arg_key><arg_value>[1.0, -0.0]<",
    seed_oss: "<parameter=id>1234567890123456789</parameter>\n<parameter=x>[1.0, -0.0]</parameter>",
    gemma4: "{id:1234567890123456789,n:3,o:{e:1e-7},x:[1.0,-0.0]}",
  })
) {
  Deno.test(`${name} gets the numbers of an earlier call as they were written`, async () => {
    await using server = await templateServer(name);
    await server.json("/v1/chat/completions", {
      messages: [
        { role: "user", content: "hi" },
        {
          role: "assistant",
          content: null,
          tool_calls: [{
            id: "call_1",
            type: "function",
            function: { name: "f", arguments: NUMBERS },
          }],
        },
        { role: "tool", tool_call_id: "call_1", content: "\ufdd22" },
      ],
      tools: [{ type: "function", function: { name: "f", parameters: { type: "object" } } }],
    });
    assert.ok(server.rendered().includes(written), server.rendered());
    assert.ok(server.rendered().includes("\ufdd22"));
  });
}

for (const name of TEMPLATES) {
  Deno.test(`${name} renders what agents and libraries send`, async (t) => {
    await using server = await templateServer(name);
    for (const { name: client, path, headers, body } of [...RECORDED, RESULT_AND_TEXT]) {
      await t.step(client, async () => {
        const response = await server.ask(path, body, { headers });
        assert.equal(response.status, 200, await response.text());
        assert.match(server.rendered(), /hello|1 \+ 2|Jason/i);
      });
    }
  });
}
