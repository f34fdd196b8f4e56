/**
 * Tokens that begin or separate function calls. Decoding keeps them for the parser of calls, even if the tokenizer
 * has them as special tokens, which decoding otherwise leaves out.
 */
export const TOOL_MARKS: readonly string[] = [
  ...["<tool_call>", "</tool_call>"], // Hermes, Qwen
  "<|python_tag|>", // Llama 3.x
  ...["[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"], // Mistral
  ...["<seed:tool_call>", "</seed:tool_call>", "<seed:cot_budget_reflect>"], // Seed-OSS
  ...["</seed:cot_budget_reflect>"],
  ...["<|tool_call>", "<tool_call|>", '<|"|>'], // Gemma 4
  ...["<|tool_call_start|>", "<|tool_call_end|>"], // LFM2
  ...["<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"], // GLM
  ...["<function_calls>", "</function_calls>"], // Olmo 3
  "<|tool_call|>", // Granite 3
  ...["<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"], // DeepSeek
  ...["<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>"],
];
