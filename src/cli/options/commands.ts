import {
  BENCH_AXES,
  BENCH_OUTPUT,
  BENCH_RUN,
  BENCH_TABLE,
  OVERWRITE,
} from "./measure/bench_flags.ts";
import { BREAKEVEN, BREAKEVEN_MEASURE, BREAKEVEN_OUTPUT } from "./measure/breakeven_flags.ts";
import { BENCH_WEBGPU } from "./measure/backend_flags.ts";
import type { CommandName, CommandSpec } from "./command.ts";
import type { Flag, FlagTable } from "./flag.ts";
import { BATCH, BATCH_SIZES, CONTEXT, ROUNDS } from "./option_flight.ts";
import {
  ADAPTER,
  COSTS,
  DRAFT,
  HISTORY,
  JSON_OUTPUT,
  KV,
  PROMPT,
  QUANTIZE,
  QUANTIZE_DRAFT,
  RAW,
  SAMPLING,
  SYSTEM,
  TALK,
  TARGET,
  TEMPLATE,
} from "./option_groups.ts";
import { MEASURED, MODELS, OPENED } from "./option_models.ts";
import { LOAD_ARRIVALS, LOAD_OUTPUT, LOAD_REQUESTS, LOAD_RUN } from "./measure/load_flags.ts";
import { CONSTRAINT } from "./option_constraint.ts";
import { REMOTE } from "./option_remote.ts";
import { SERVE, SERVE_LOAD, SERVE_LOG } from "./option_serve.ts";
import {
  KNOWN_DRAFTER,
  SERVE_COMMAND,
  SERVE_COMMAND_MODEL,
  SERVE_CONFIG,
} from "./option_serve_command.ts";
import { LOGPROBS, PENALTIES } from "./option_penalties.ts";
import { SPECULATION } from "./option_speculation.ts";
import {
  SIMULATE_ACCEPTANCE,
  SIMULATE_LOAD,
  SIMULATE_MACHINE,
  SIMULATE_OUTPUT,
  SIMULATE_RUN,
} from "./measure/simulate_flags.ts";
import { PROFILE, PROFILE_OUTPUT } from "./measure/profile_flags.ts";
import { CHECK, CONVERT, DOCTOR, KNOWN, REMOVAL, TOKEN_MAP } from "./tool_flags.ts";

const MODEL_OPERAND = {
  name: "MODEL",
  help: "the same as --model: a checkpoint folder or org/name[@revision]",
  folder: true,
} as const;

/** Sampling defaults of a server. Seed, stop texts and `ignoreEos` are left out: only a request can set them. */
const { seed: _seed, stop: _stop, ignoreEos: _ignoreEos, ...SERVE_SAMPLING } = SAMPLING;

/** Flags for measuring costs, without acceptance: a round costs the same whatever is accepted. */
const { simulateAcceptance: _, ...PRICED } = MEASURED;

/** Every command. The only place where flags are joined to commands. */
export const COMMANDS: Readonly<Record<CommandName, CommandSpec>> = {
  generate: {
    summary: "answer one prompt",
    usage: "eyrie generate [flags] [PROMPT]",
    operands: [{
      name: "PROMPT",
      help:
        "the prompt; without it, or for -, standard input is read; a prompt is appended to standard input that is piped",
    }],
    groups: {
      Model: { ...OPENED, ...REMOTE },
      Prompt: { ...PROMPT, ...SYSTEM, ...TEMPLATE, ...RAW },
      Batch: { ...BATCH, ...BATCH_SIZES },
      Speculation: { ...SPECULATION, ...ROUNDS },
      Sampling: { ...SAMPLING, ...PENALTIES },
      Constraint: CONSTRAINT,
      Output: { ...JSON_OUTPUT, ...LOGPROBS, ...TALK },
    },
  },
  chat: {
    summary: "talk with the model; /help lists the commands in the chat",
    alias: "run",
    usage: "eyrie chat [flags] [MODEL [PROMPT]]",
    operands: [
      MODEL_OPERAND,
      { name: "PROMPT", help: "answer this prompt, as eyrie generate does, and exit" },
    ],
    groups: {
      Model: { ...OPENED, ...REMOTE },
      Prompt: { ...SYSTEM, ...TEMPLATE, ...HISTORY },
      Speculation: { ...SPECULATION, ...ROUNDS },
      Sampling: { ...SAMPLING, ...PENALTIES },
      Output: TALK,
    },
  },
  serve: {
    summary: "serve the HTTP APIs of OpenAI, Anthropic and ollama",
    usage: "eyrie serve [flags] [MODEL]",
    operands: [MODEL_OPERAND],
    groups: {
      Server: SERVE,
      Load: { ...SERVE_LOAD, ...BATCH_SIZES },
      Model: OPENED,
      Prompt: TEMPLATE,
      Speculation: { ...SPECULATION, ...ROUNDS },
      Sampling: { ...SERVE_SAMPLING, ...PENALTIES },
      Output: { ...SERVE_LOG, quiet: TALK.quiet },
    },
  },
  "serve-command": {
    summary: "print the command that starts SGLang or vLLM with the same speculation",
    usage: "eyrie serve-command [flags] sglang|vllm MODEL",
    operands: [
      {
        name: "ENGINE",
        help: "sglang or vllm: the server that the command is for",
        required: true,
        choices: ["sglang", "vllm"],
      },
      MODEL_OPERAND,
    ],
    groups: {
      Model: SERVE_COMMAND_MODEL,
      Server: { ...SERVE_COMMAND, ...SERVE_CONFIG, ...OVERWRITE },
      Speculation: { ...SPECULATION, drafter: KNOWN_DRAFTER },
      Output: { quiet: TALK.quiet },
    },
  },
  bench: {
    summary: "measure which settings are fastest on this machine, compared with plain decoding",
    usage: "eyrie bench [flags]",
    groups: {
      Axes: BENCH_AXES,
      Run: BENCH_RUN,
      Table: BENCH_TABLE,
      Model: { ...MEASURED, ...BENCH_WEBGPU, ...COSTS },
      Output: { ...BENCH_OUTPUT, ...OVERWRITE, quiet: TALK.quiet },
    },
  },
  "bench load": {
    summary: "measure policies under the load of a server, with requests that arrive over time",
    usage: "eyrie bench load [flags]",
    groups: {
      Arrivals: LOAD_ARRIVALS,
      Requests: { workload: BENCH_RUN.workload, ...LOAD_REQUESTS },
      Run: { ...LOAD_RUN, ...BATCH_SIZES, ...ROUNDS, seed: BENCH_RUN.seed },
      Model: { ...MEASURED, ...COSTS, ...CONTEXT, ...REMOTE },
      Output: { ...LOAD_OUTPUT, ...OVERWRITE, quiet: TALK.quiet },
    },
  },
  breakeven: {
    summary: "compute from given or measured costs where drafting pays",
    usage: "eyrie breakeven (--alpha A --draft-cost C | --measure) [flags]",
    groups: {
      Equation: BREAKEVEN,
      Measure: { ...BREAKEVEN_MEASURE, workload: BENCH_RUN.workload, seed: BENCH_RUN.seed },
      Model: { ...MEASURED, ...COSTS },
      Output: {
        ...BREAKEVEN_OUTPUT,
        ...OVERWRITE,
        quiet: TALK.quiet,
      },
    },
  },
  simulate: {
    summary: "compare policies in simulated time, from a cost table; uses no GPU",
    usage: "eyrie simulate [flags]",
    groups: {
      Run: SIMULATE_RUN,
      Load: SIMULATE_LOAD,
      Acceptance: SIMULATE_ACCEPTANCE,
      Machine: SIMULATE_MACHINE,
      Output: { ...SIMULATE_OUTPUT, ...OVERWRITE, quiet: TALK.quiet },
    },
  },
  profile: {
    summary: "measure the costs of drafts, rounds and prefills on this machine, for policies",
    usage: "eyrie profile [--output FILE] [flags]",
    groups: {
      Costs: PROFILE,
      Model: PRICED,
      Output: { ...JSON_OUTPUT, ...PROFILE_OUTPUT, ...OVERWRITE, quiet: TALK.quiet },
    },
  },
  check: {
    summary: "compare logits with expected ones, or those of quantized weights; measure a draft",
    usage: "eyrie check (--expected FILE | --quantize q8|q4 | --draft DIR) [flags]",
    groups: {
      Check: { ...TARGET, ...CHECK },
      Model: { ...DRAFT, ...QUANTIZE, ...QUANTIZE_DRAFT, ...KV, ...ADAPTER },
      Output: { ...JSON_OUTPUT, quiet: TALK.quiet },
    },
  },
  inspect: {
    summary: "show what a checkpoint is and the memory it needs; uses no GPU",
    usage: "eyrie inspect [flags] [MODEL]",
    operands: [MODEL_OPERAND],
    groups: {
      Model: MODELS,
      Output: JSON_OUTPUT,
    },
  },
  convert: {
    summary: "convert a checkpoint to safetensors, from pytorch_model.bin or other shards",
    usage: "eyrie convert [flags] IN OUT",
    operands: [
      {
        name: "IN",
        help: "checkpoint folder or org/name[@revision] to read",
        required: true,
        folder: true,
      },
      {
        name: "OUT",
        help: "folder to create; config and tokenizer files are copied",
        required: true,
        folder: true,
      },
    ],
    groups: { Convert: CONVERT, Output: { ...JSON_OUTPUT, quiet: TALK.quiet } },
  },
  "token-map": {
    summary: "write the list of a corpus' most frequent tokens, for --token-map",
    usage: "eyrie token-map [flags] --output FILE FILE...",
    operands: [{
      name: "FILE",
      help: "text whose tokens are counted; of a .jsonl file every string in its objects",
      required: true,
      many: true,
    }],
    groups: { Model: TARGET, Map: TOKEN_MAP, Output: { ...OVERWRITE, quiet: TALK.quiet } },
  },
  pull: {
    summary: "download models into the Hugging Face cache and print their folders",
    usage: "eyrie pull [flags] NAME...",
    operands: [
      { name: "NAME", help: "org/name or org/name@revision", required: true, many: true },
    ],
    groups: { Output: { quiet: TALK.quiet } },
  },
  models: {
    summary:
      "list the models in the Hugging Face cache, or with --known those of the hub, and whether they run here",
    alias: "ls",
    usage: "eyrie models [flags]",
    groups: { Models: KNOWN, Output: JSON_OUTPUT },
  },
  rm: {
    summary: "remove models from the Hugging Face cache",
    usage: "eyrie rm [flags] NAME...",
    operands: [{
      name: "NAME",
      help: "org/name, or org/name@revision for one revision",
      required: true,
      many: true,
    }],
    groups: { Removal: REMOVAL },
  },
  doctor: {
    summary: "check whether this machine runs eyrie, and how fast its GPU is",
    usage: "eyrie doctor [flags]",
    groups: { Machine: { ...DOCTOR, webgpu: ADAPTER.webgpu }, Output: JSON_OUTPUT },
  },
  completion: {
    summary: "print a script with which a shell completes commands, flags and values",
    usage: "eyrie completion bash|zsh|fish",
    operands: [{
      name: "SHELL",
      help: "bash, zsh or fish",
      required: true,
      choices: ["bash", "zsh", "fish"],
    }],
    groups: {},
  },
};

/** The flags of a command, by name, all groups together. */
export function flagsOf(command: CommandName): FlagTable {
  return Object.assign({}, ...Object.values(COMMANDS[command].groups));
}

/** One flag of the sampling and speculation groups: `/set` in chat checks values by the same rows. */
export function flagNamed(
  name: keyof typeof SAMPLING | keyof typeof PENALTIES | "logprobs" | "numSteps",
): Flag {
  return { ...SAMPLING, ...PENALTIES, ...LOGPROBS, numSteps: SPECULATION.numSteps }[name];
}
