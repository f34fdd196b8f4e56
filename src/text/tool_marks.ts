/**
 * Tokens that begin or part calls of functions. They are text for whoever reads the calls, though
 * some tokenizers have them as special tokens, which decoding leaves out.
 */
export const TOOL_MARKS: readonly string[] = [
  ...["<tool_call>", "</tool_call>"], // Hermes, Qwen
  "<|python_tag|>", // Llama 3.x
  ...["[TOOL_CALLS]", "[ARGS]"], // Mistral
  ...["<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"], // DeepSeek
  ...["<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>"],
];
