import assert from "node:assert/strict";
import { fakeEngine } from "../cli/fake.ts";
import { fakeServer } from "./fake_server.ts";
import type { Json } from "./server.ts";

/** First requests as agents and libraries sent them, with long texts cut. */
const FOLDER = new URL("./recorded/", import.meta.url);

interface Recording {
  readonly name: string;
  /** Package and version. */
  readonly client: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Json;
}

function recordings(): Recording[] {
  return [...Deno.readDirSync(FOLDER)].map(({ name }) => ({
    name: name.replace(".json", ""),
    ...JSON.parse(Deno.readTextFileSync(new URL(name, FOLDER))),
  }));
}

/** Tools and fields that the server does not support, by recording. */
const IGNORED: Readonly<Record<string, string>> = { "codex": "tools.web_search" };

Deno.test("first requests of agents and libraries are answered, as they were recorded", async (t) => {
  await using server = await fakeServer({}, fakeEngine({ contextLength: 4000 }));
  const recorded = recordings();
  assert.equal(recorded.length, 11);
  for (const { name, client, path, headers, body } of recorded) {
    await t.step(`${name} (${client})`, async () => {
      const response = await server.ask(path, body, { headers });
      const text = await response.text();
      assert.equal(response.status, 200, text);
      assert.equal(response.headers.get("eyrie-ignored"), IGNORED[name] ?? null);
      assert.match(text, /nswer/);
      // The model gets every message.
      const prompt = server.engine.prompts.at(-1);
      assert.ok(Array.isArray(prompt));
      const said = prompt.map(({ content }) => content).join("\n");
      assert.match(said, /hello|1 \+ 2|Jason/i);
    });
  }
});

Deno.test("an agent's system messages and tools reach the model", async (t) => {
  await using server = await fakeServer({}, fakeEngine({ contextLength: 4000 }));
  const send = async (name: string) => {
    const { path, body } = recordings().find((each) => each.name === name) as Recording;
    await (await server.ask(path, body)).body?.cancel();
    return server.engine.prompts.at(-1) as readonly { role: string; content: string }[];
  };

  await t.step("Claude Code: a system message among the others is said by the user", async () => {
    const prompt = await send("claude-code");
    assert.deepEqual(prompt.map(({ role }) => role), ["system", "user"]);
    assert.match(prompt[1]?.content ?? "", /Say hello\n\n<system-reminder>\nAvailable agent types/);
    assert.match(prompt[0]?.content ?? "", /"name":"Bash"/);
  });

  await t.step("Codex: developer messages in one, namespaces flattened", async () => {
    const prompt = await send("codex");
    assert.deepEqual(prompt.map(({ role }) => role), ["system", "user", "user"]);
    assert.match(prompt[0]?.content ?? "", /"name":"multi_agent_v1__close_agent"/);
    assert.doesNotMatch(prompt[0]?.content ?? "", /web_search/);
  });
});

Deno.test("with --strict tools that cannot run here are refused by name", async () => {
  await using server = await fakeServer({ strict: true });
  const { path, body } = recordings().find(({ name }) => name === "codex") as Recording;
  const response = await server.ask(path, body);
  assert.equal(response.status, 400);
  assert.equal((await response.json()).error.param, "tools.web_search");
});
