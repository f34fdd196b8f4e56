import { historyFor } from "../../src/text/history.ts";
import { renderChat } from "../../src/text/chat_template.ts";
import { reasoningOf } from "../../src/text/reasoning.ts";
import { fakeEngine } from "../cli/fake.ts";
import { fakeServer } from "./fake_server.ts";
import type { TestServer } from "./server.ts";

const FOLDER = new URL("../golden/templates/", import.meta.url);

/** The templates of tests/golden/templates. */
export const TEMPLATES: readonly string[] = [...Deno.readDirSync(FOLDER)]
  .flatMap(({ name }) => name.endsWith(".jinja") ? [name.replace(".jinja", "")] : [])
  .sort();

/** A server of a model with this template; `rendered` is the last prompt, as the engine's text thread renders it. */
export async function templateServer(
  name: string,
): Promise<TestServer & { readonly rendered: () => string }> {
  const template = Deno.readTextFileSync(new URL(`${name}.jinja`, FOLDER));
  const engine = fakeEngine({ contextLength: 1_000_000 });
  const tokenizer = {
    encode: () => [],
    idOf: (mark: string) => template.includes(mark) ? 1 : undefined,
  };
  Object.assign(engine.info, {
    chatTemplate: template,
    reasoning: reasoningOf(tokenizer, template),
  });
  let rendered = "";
  const server = await fakeServer({}, {
    ...engine,
    encodePrompt(input) {
      if ("raw" in input) return engine.encodePrompt(input);
      const { messages, tools, templateArguments } = structuredClone(input);
      rendered = renderChat(template, historyFor(template, messages), {
        addGenerationPrompt: true,
        bosToken: "<s>",
        eosToken: "</s>",
        now: new Date(2026, 10, 1),
        templateArguments,
        ...tools && { tools },
      });
      return Promise.resolve([1]);
    },
  });
  return { ...server, rendered: () => rendered };
}
