import { textWithLiterals } from "../../text/number_literals.ts";
import { maxRequestTokens } from "../answers/limits.ts";
import { invalid } from "../http/errors.ts";
import { type ChatAsk, chatAsk } from "../openai/chat_ask.ts";
import type { ChatRequest, FormatField, MessageField } from "../openai/chat_schema.ts";
import type { Ready, ServiceOptions } from "../service/service.ts";
import type { OllamaChat, OllamaGenerate, OllamaMessage } from "./schema.ts";

type Options = Pick<ServiceOptions, "templateArguments">;

/** What a chat asks for, by way of OpenAI's. @throws ApiError as `chatAsk`. */
export function ollamaChatAsk(request: OllamaChat, ready: Ready, options: Options): ChatAsk {
  const messages = messageFields(request.messages ?? []);
  const asked = chatAsk({ ...common(request), messages, tools: request.tools }, ready, options);
  return withContextHint(asked, request, ready);
}

/** What a prompt asks for; with `raw`, or where there is no chat template, it goes in as it is. */
export function ollamaGenerateAsk(
  request: OllamaGenerate,
  ready: Ready,
  options: Options,
): ChatAsk {
  const { system, raw } = request;
  const prompt = request.prompt ?? "";
  const system_: MessageField[] = system ? [{ role: "system", content: system }] : [];
  const messages: MessageField[] = [...system_, { role: "user", content: prompt }];
  if (!raw && ready.engine.info.hasChatTemplate) {
    return withContextHint(
      chatAsk({ ...common(request), messages }, ready, options),
      request,
      ready,
    );
  }
  if (system) throw invalid('Cannot use "system" with a raw prompt', "system");
  const { engine } = ready;
  const templated = {
    ...ready,
    engine: { ...engine, info: { ...engine.info, hasChatTemplate: true } },
  };
  const asked = chatAsk({ ...common(request), messages }, templated, options);
  const hinted = withContextHint(asked, request, ready);
  return { ...hinted, prompt: { raw: prompt }, reading: { reasoning: false } };
}

/** `num_ctx` above the server's context is ignored: the answer gets the context that there is. */
function withContextHint(
  asked: ChatAsk,
  { options }: Pick<OllamaChat, "options">,
  { engine }: Ready,
): ChatAsk {
  if ((options?.num_ctx ?? 0) <= maxRequestTokens(engine.info)) return asked;
  return { ...asked, ignored: [...asked.ignored, "options.num_ctx"] };
}

function common(
  { options, format, think }: Omit<OllamaChat, "messages" | "tools">,
): Omit<ChatRequest, "messages"> {
  const { num_predict: most, num_ctx: _, repeat_penalty, ...sampling } = options ?? {};
  return {
    ...sampling,
    repetition_penalty: repeat_penalty,
    max_tokens: most && most > 0 ? most : undefined,
    response_format: formatOf(format),
    reasoning_effort: effortOf(think),
  };
}

function effortOf(think: OllamaChat["think"]): string | undefined {
  if (typeof think === "string") return think;
  if (think === true) return "high";
  return think === false ? "none" : undefined;
}

function formatOf(format: OllamaChat["format"]): FormatField | undefined {
  if (!format) return undefined;
  if (typeof format === "string") return { type: "json_object" };
  return { type: "json_schema", json_schema: { schema: format } };
}

/** ollama's calls have no ids: a result belongs to the first call of its function without a result. */
function messageFields(messages: readonly OllamaMessage[]): MessageField[] {
  let count = 0;
  /** Calls without a result. */
  let open: { readonly id: string; readonly name: string }[] = [];
  return messages.map(({ role, content, thinking, tool_calls: calls, tool_name: name }) => {
    if (role === "tool") {
      const call = open.find((each) => each.name === name) ?? open[0];
      open = open.filter((each) => each !== call);
      return { role, content, tool_call_id: call?.id ?? "", name };
    }
    if (role !== "assistant") return { role, content };
    const numbered = calls?.map(({ function: called }) => ({ id: `call_${count++}`, called }));
    open = numbered?.map(({ id, called }) => ({ id, name: called.name })) ?? [];
    return {
      role,
      content,
      reasoning_content: thinking,
      tool_calls: numbered?.map(({ id, called }) => ({
        id,
        type: "function" as const,
        function: { name: called.name, arguments: textWithLiterals(called.arguments) },
      })),
    };
  });
}
