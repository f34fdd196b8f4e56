/**
 * Tokens that begin or separate function calls. Decoding keeps them for the parser of calls, even if the tokenizer
 * has them as special tokens, which decoding otherwise leaves out.
 */
export const TOOL_MARKS: readonly string[] = [
  // Hermes, Qwen
  "<tool_call>",
  "</tool_call>",
  // Llama 3.x
  "<|python_tag|>",
  // Mistral
  "[TOOL_CALLS]",
  "[CALL_ID]",
  "[ARGS]",
  // Seed-OSS
  "<seed:tool_call>",
  "</seed:tool_call>",
  "<seed:cot_budget_reflect>",
  "</seed:cot_budget_reflect>",
  // Gemma 4
  "<|tool_call>",
  "<tool_call|>",
  '<|"|>',
  // LFM2
  "<|tool_call_start|>",
  "<|tool_call_end|>",
  // GLM
  "<arg_key>",
  "</arg_key>",
  "<arg_value>",
  "</arg_value>",
  // Olmo 3
  "<function_calls>",
  "</function_calls>",
  // Granite 3
  "<|tool_call|>",
  // DeepSeek
  "<｜tool▁calls▁begin｜>",
  "<｜tool▁calls▁end｜>",
  "<｜tool▁call▁begin｜>",
  "<｜tool▁sep｜>",
  "<｜tool▁call▁end｜>",
];
