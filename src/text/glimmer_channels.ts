import type { ChannelFormat } from "./channel_format.ts";

/**
 * Muse Glimmer: ` to=self<|message|>` is reasoning, ` to=user` is text, and what goes to a function has
 * its call in the body, as ATEM (`<atem:function_calls>`), which names the function again.
 */
export const GLIMMER_CHANNELS: ChannelFormat = {
  start: "<|start|>",
  message: "<|message|>",
  ends: ["<|eom|>", "<|eot|>"],
  stops: ["<|eot|>"],
  headers: [" to=self", " to=", "to="],
  answer: " to=user<|message|>",
  bodyOf: (header) => ({ kind: header.trim() === "to=self" ? "reasoning" : "text" }),
};
