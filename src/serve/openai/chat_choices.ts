import { type Choices, openChoices } from "../answers/choices.ts";
import type { ApiCall } from "../fields/route.ts";
import type { Ready } from "../service/service.ts";
import type { ChatAsk } from "./chat_ask.ts";

/**
 * Asks for `count` next messages of a conversation, whichever API it came by, and reports the fields that are ignored.
 *
 * @throws ApiError as `openChoices`.
 */
export async function chatChoices(
  call: ApiCall,
  ready: Ready,
  { prompt, ask, reading, ignored }: ChatAsk,
  count = 1,
): Promise<Choices> {
  ignored.forEach(call.ignore);
  return await openChoices(call, { ready, prompts: [prompt], ask, reading, count });
}
