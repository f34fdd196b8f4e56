import type { CommandName } from "./command.ts";

/** Two uses of each command, which its help begins with. */
export const EXAMPLES: Readonly<Record<CommandName, readonly [string, string]>> = {
  generate: [
    "eyrie generate -m Qwen/Qwen3-4B --draft auto 'Why is the sky blue?'",
    "eyrie generate --batch prompts.jsonl --output answers.jsonl",
  ],
  chat: [
    "eyrie run Qwen/Qwen3-4B",
    "eyrie chat -m Qwen/Qwen3-4B --draft none --system 'Answer briefly.'",
  ],
  serve: [
    "eyrie serve Qwen/Qwen3-4B",
    "eyrie serve --host 0.0.0.0 --api-key secret --max-batch 32",
  ],
  "serve-command": [
    "eyrie serve-command sglang Qwen/Qwen3-8B --draft auto",
    "eyrie serve-command vllm ./model --drafter NGRAM",
  ],
  bench: [
    "eyrie bench -m Qwen/Qwen3-4B --draft auto",
    "eyrie bench --batch-sizes 1,4 --num-steps 0-3 --emit-config tuned.json",
  ],
  "bench load": [
    "eyrie bench load --request-rate 1,4,16 --format html --output load.html",
    "eyrie bench load --request-rate 0:2,60:20,120:2 --duration 180",
  ],
  breakeven: [
    "eyrie breakeven --alpha 0.6 --draft-cost 0.05",
    "eyrie breakeven --measure --format html --output breakeven.html",
  ],
  simulate: [
    "eyrie simulate --request-rate 4 --max-batch 32 --simulate-acceptance beta:6/3",
    "eyrie simulate --costs rtx4090-7b --policy ema",
  ],
  profile: [
    "eyrie profile",
    "eyrie profile --max-batch 32 --output cost.json",
  ],
  check: [
    "eyrie check -m Qwen/Qwen3-4B --quantize q8",
    "eyrie check -m ./model --expected expected.safetensors",
  ],
  inspect: [
    "eyrie inspect Qwen/Qwen3-4B",
    "eyrie inspect ./model --draft ./head --quantize q8",
  ],
  convert: [
    "eyrie convert ./model ./model-safetensors",
    "eyrie convert --quantize q4 Qwen/Qwen3-8B ./qwen3-8b-q4",
  ],
  "token-map": [
    "eyrie token-map -m ./Llama-2-7b --output map.json chats.jsonl",
    "eyrie token-map --size 1024 --output map.json a.txt b.txt",
  ],
  pull: [
    "eyrie pull Qwen/Qwen3-4B AngelSlim/Qwen3-4B_eagle3",
    "eyrie pull Qwen/Qwen3-4B@main",
  ],
  models: ["eyrie ls", "eyrie models --known"],
  rm: ["eyrie rm Qwen/Qwen3-4B", "eyrie rm --force Qwen/Qwen3-4B@main"],
  doctor: ["eyrie doctor", "eyrie doctor --fix"],
  completion: [
    "eyrie completion bash > ~/.local/share/bash-completion/completions/eyrie",
    "eyrie completion fish > ~/.config/fish/completions/eyrie.fish",
  ],
};

/** What the overview begins with. */
export const FIRST_EXAMPLES: readonly [string, string] = [
  "eyrie run Qwen/Qwen3-4B",
  "eyrie generate -m Qwen/Qwen3-4B --draft auto 'Why is the sky blue?'",
];
