import { z } from "zod";
import type { PromptInput } from "../../engine/load/text.ts";
import { UsageError } from "../../errors.ts";
import { maxRequestTokens } from "../answers/limits.ts";
import { promptTokens } from "../answers/ask.ts";
import { invalid, tooManyOf } from "../http/errors.ts";
import { post, type Route } from "../service/route.ts";
import { modelNamed, type readyOf } from "../service/service.ts";
import { optional } from "../openai/fields.ts";

/** Body of POST /tokenize: llama-server's `content`, or vLLM's `prompt`. */
const TOKENIZE = z.strictObject({
  model: optional(z.string()),
  content: optional(z.string()),
  prompt: optional(z.string()),
  add_special: optional(z.boolean()),
  add_special_tokens: optional(z.boolean()),
  with_pieces: optional(z.boolean()),
});

const DETOKENIZE = z.strictObject({
  model: optional(z.string()),
  tokens: z.array(z.int().min(0)),
});

export const TOKEN_ROUTES: readonly Route[] = [
  post(
    { path: "/tokenize", summary: "Token ids of a text", tag: "Tokens" },
    TOKENIZE,
    async (body, { service, trace, signal }) => {
      const ready = modelNamed(service, body.model);
      const text = textOf(body);
      const ids = await service.table.encoding(trace.id, () => promptTokens(ready, text, signal));
      const pieces = body.with_pieces ? await ready.engine.pieces(ids) : undefined;
      return Response.json({
        tokens: pieces ? ids.map((id, i) => ({ id, piece: pieces[i] })) : ids,
        count: ids.length,
        max_model_len: maxRequestTokens(ready.engine.info),
      });
    },
  ),
  post(
    { path: "/detokenize", summary: "The text of token ids", tag: "Tokens" },
    DETOKENIZE,
    async ({ model, tokens }, { service, trace }) => {
      const { engine } = modelNamed(service, model);
      const most = Math.max(engine.info.contextLength, MIN_TOKEN_LIMIT);
      if (tokens.length > most) throw tooManyOf("tokens", tokens.length, most);
      const text = await service.table.encoding(trace.id, () => decoded(engine, tokens));
      return Response.json({ content: text, prompt: text });
    },
  ),
];

/** This many tokens are decoded at once even if the context is shorter. */
const MIN_TOKEN_LIMIT = 2 ** 16;

/** llama-server adds special tokens only if asked to; vLLM adds them unless asked not to. */
function textOf(body: z.infer<typeof TOKENIZE>): Extract<PromptInput, { raw: string }> {
  const { content, prompt } = body;
  if (typeof content === "string" && typeof prompt !== "string") {
    return { raw: content, addSpecialTokens: body.add_special ?? false };
  }
  if (typeof prompt === "string" && typeof content !== "string") {
    return { raw: prompt, addSpecialTokens: body.add_special_tokens ?? body.add_special ?? true };
  }
  throw invalid('Cannot tokenize: give one of "content" and "prompt"', "content");
}

async function decoded(
  engine: ReturnType<typeof readyOf>["engine"],
  tokens: readonly number[],
): Promise<string> {
  try {
    return await engine.decode(tokens);
  } catch (error) {
    if (error instanceof UsageError) throw invalid(error.message, "tokens");
    throw error;
  }
}
