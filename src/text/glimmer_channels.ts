import type { ChannelFormat } from "./channel_format.ts";

/** Around the calls of a message that has nothing else. */
export const ATEM = ["<atem:function_calls>", "</atem:function_calls>"] as const;

/** Before these calls in the text: what an answer quotes of them is none. */
export const ATEM_MESSAGE = "<|message|>";

/**
 * Muse Glimmer: ` to=self<|message|>` is reasoning, ` to=user` is text, and what goes to a function has
 * its call in the body, as ATEM (`<atem:function_calls>`), which names the function again. Models
 * fumble the recipient of calls, so that a body shows what it is.
 */
export const GLIMMER_CHANNELS: ChannelFormat = {
  start: "<|start|>",
  message: "<|message|>",
  ends: ["<|eom|>", "<|eot|>"],
  stops: ["<|eot|>"],
  headers: [" to=self", " to="],
  answer: " to=user<|message|>",
  bodyOf: (header) =>
    header.trim() === "to=self"
      ? { kind: "reasoning" }
      : { kind: "text", around: [ATEM_MESSAGE, ""], within: ATEM },
};
