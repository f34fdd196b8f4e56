import assert from "node:assert/strict";
import { createOpenAICompatible } from "npm:@ai-sdk/openai-compatible@3.0.92";
import { APICallError, generateText, Output, stepCountIs, streamText, tool } from "npm:ai@7.0.173";
import { z } from "zod";
import { generated } from "../cli_lines.ts";
import { serve } from "../shared.ts";
import { exhaustive } from "../../exhaustive.ts";

const PROMPT = "Count from 3 to 20.";

exhaustive.test("ai with @ai-sdk/openai-compatible", async (t) => {
  await using server = await serve();
  const provider = createOpenAICompatible({
    name: "eyrie",
    baseURL: `${server.url}/v1`,
    includeUsage: true,
    supportsStructuredOutputs: true,
  });
  const model = provider("fledgling");
  const asked = { model, prompt: PROMPT, temperature: 0, maxOutputTokens: 20, maxRetries: 0 };
  const messages = [{ role: "user", content: PROMPT }];
  const [expected] = await generated([{ messages, temperature: 0, max_tokens: 20 }]);

  await t.step("generateText, with the acceptance that it reads", async () => {
    const { text, finishReason, usage, providerMetadata } = await generateText(asked);
    assert.equal(text, expected.text);
    assert.equal(finishReason, "length");
    assert.equal(usage.outputTokens, 20);
    assert.ok(Number(providerMetadata?.["eyrie"]?.["acceptedPredictionTokens"]) > 0);
  });

  await t.step("streamText", async () => {
    const { textStream, usage, finishReason } = streamText(asked);
    assert.equal((await Array.fromAsync(textStream)).join(""), expected.text);
    assert.equal((await usage).outputTokens, 20);
    assert.equal(await finishReason, "length");
  });

  await t.step("an object of a schema", async () => {
    const schema = z.object({ name: z.string().max(3), ok: z.boolean() });
    const { output } = await generateText({
      ...asked,
      maxOutputTokens: 60,
      output: Output.object({ schema }),
    });
    assert.ok(schema.safeParse(output).success);
  });

  await t.step("tools, executed, and the answer after", async () => {
    const given: number[] = [];
    const double = tool({
      inputSchema: z.object({ n: z.int().min(1).max(9) }),
      execute: ({ n }) => {
        given.push(n);
        return 2 * n;
      },
    });
    const { steps } = await generateText({
      ...asked,
      tools: { double },
      toolChoice: { type: "tool" as const, toolName: "double" },
      maxOutputTokens: 40,
      stopWhen: stepCountIs(1),
    });
    assert.equal(steps[0]?.finishReason, "tool-calls");
    assert.equal(given.length, 1);
    assert.ok(given.every((n) => n >= 1 && n <= 9));
    const streamed = streamText({
      ...asked,
      tools: { double },
      toolChoice: "required" as const,
      maxOutputTokens: 40,
      stopWhen: stepCountIs(1),
    });
    const parts = await Array.fromAsync(streamed.fullStream);
    const kinds = new Set(parts.map(({ type }) => type));
    for (const kind of ["tool-input-start", "tool-input-delta", "tool-call", "tool-result"]) {
      assert.ok(kinds.has(kind as never), kind);
    }
    assert.ok(!kinds.has("error"));
  });

  await t.step("abort, and its error", async () => {
    const abort = new AbortController();
    const { textStream } = streamText({
      ...asked,
      maxOutputTokens: 900,
      abortSignal: abort.signal,
      onError: () => {},
    });
    for await (const _ of textStream) abort.abort();
    while (server.server.service.table.live.size > 0) await new Promise((r) => setTimeout(r, 2));
    const failed = generateText({ ...asked, temperature: -1 });
    await assert.rejects(
      failed,
      (error) => APICallError.isInstance(error) && error.statusCode === 400,
    );
  });
});
