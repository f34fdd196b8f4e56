import assert from "node:assert/strict";
import {
  type ChatMessage,
  renderChat,
  type TemplateArguments,
} from "../../src/text/chat_template.ts";
import { UsageError } from "../../src/errors.ts";

const FOLDER = new URL("../golden/templates/", import.meta.url);

/** Template, conversation, "tools" or "closed" (no header for an answer), variables. */
type Case = readonly [string, string, ("" | "tools" | "closed")?, TemplateArguments?];

interface Cases {
  readonly conversations: Readonly<Record<string, readonly ChatMessage[]>>;
  readonly tools: readonly unknown[];
  readonly cases: readonly Case[];
}

function json(name: string): unknown {
  return JSON.parse(Deno.readTextFileSync(new URL(name, FOLDER)));
}

const { conversations, tools, cases } = json("cases.json") as Cases;

/**
 * The texts that transformers renders, from tools/goldens/templates.py. For the templates of 2026 the same
 * script used Jinja2 3.1.6 with transformers' filters and globals. These templates are the published ones,
 * from the folders models/templates of ggml-org/llama.cpp and model/renderers/testdata of ollama/ollama
 * (both MIT): of gpt-oss, Qwen3-Coder, Qwen3.8, Gemma 4, Ministral 3, Mistral Small 3.2, Muse Glimmer,
 * Seed-OSS, SmolLM3 and Granite 4 (Apache-2.0), GLM-4.7-Flash (MIT), Laguna XS 2.1 (`laguna`) and XS.2.
 */
const EXPECTED = json("expected.json") as readonly (string | { readonly error: string })[];

Deno.test("templates: a value for every case", () => assert.equal(EXPECTED.length, cases.length));

for (const [i, [name, conversation, kind = "", templateArguments = {}]] of cases.entries()) {
  const given = [conversation, kind, ...Object.keys(templateArguments)].filter(Boolean).join(", ");
  Deno.test(`template ${name} as transformers renders it: ${given}`, () => {
    const render = () =>
      renderChat(
        Deno.readTextFileSync(new URL(`${name}.jinja`, FOLDER)),
        conversations[conversation] ?? assert.fail(),
        {
          addGenerationPrompt: kind !== "closed",
          bosToken: "<s>",
          eosToken: "</s>",
          now: new Date(2026, 2, 5, 14, 7, 9),
          ...kind === "tools" ? { tools } : {},
          templateArguments,
        },
      );
    const expected = EXPECTED[i] ?? assert.fail();
    if (typeof expected === "string") return assert.equal(render(), expected);
    assert.throws(render, (error) => {
      assert.ok(error instanceof UsageError);
      return error.message.includes(expected.error);
    });
  });
}
