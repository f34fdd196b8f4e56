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
