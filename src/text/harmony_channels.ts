import type { ChannelFormat } from "./channel_format.ts";

/** What stands before and behind a call of a function, whichever order its header has. */
export const HARMONY_CALL = ["<|channel|>commentary to=functions.", "<|call|>"] as const;

/** Recipients that are no function, and none. */
const PEOPLE = ["", "user", "assistant", "all"];

/**
 * harmony (gpt-oss): `<|channel|>analysis` is reasoning, `final` and `commentary` are text, and a message
 * to a function is a call: `<|channel|>commentary to=functions.f <|constrain|>json<|message|>{...}<|call|>`,
 * where the recipient may stand before the channel.
 */
export const HARMONY_CHANNELS: ChannelFormat = {
  start: "<|start|>",
  message: "<|message|>",
  ends: ["<|end|>", "<|return|>", "<|call|>"],
  stops: ["<|return|>", "<|call|>"],
  headers: ["<|channel|>", " to="],
  answer: "<|channel|>final<|message|>",
  bodyOf(header) {
    const [, name = ""] = /\bto=(?:functions\.)?([^\s<]+)/.exec(header) ?? [];
    const [before, after] = HARMONY_CALL;
    if (!PEOPLE.includes(name)) {
      return { kind: "text", around: [`${before}${name}<|message|>`, after] };
    }
    return { kind: header.includes("<|channel|>analysis") ? "reasoning" : "text" };
  },
};
