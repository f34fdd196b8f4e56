// Rows of the option table: a command that starts another engine alike.
import { RANGED } from "./drafter_option.ts";
import type { Flag } from "./flag.ts";
import { SPECULATION } from "./option_speculation.ts";

export const SERVE_CONFIG = {
  emitConfig: {
    flag: "--emit-config",
    type: "file",
    help: "write SGLang's adaptive config to this file, which the printed command then names",
    absent: "the printed command writes eyrie-adaptive.json itself",
    example: "--emit-config adaptive.json",
  },
} as const;

export const SERVE_COMMAND_MODEL = {
  model: {
    flag: "--model",
    common: true,
    short: "-m",
    type: "model",
    help: "target model, as the engine is to name it: a folder or a name on the Hugging Face hub",
    absent: "none, it has to be named",
    example: "--model Qwen/Qwen3-4B",
  },
  draft: {
    flag: "--draft",
    common: true,
    type: "model",
    help:
      "draft model: a folder or a name on the hub; auto, the one that is known for the target; or none. Files are not read: the kind of a draft that is not among the known ones has to be named by --drafter",
    absent: "none",
    example: "--draft AngelSlim/Qwen3-4B_eagle3",
  },
  contextLength: {
    flag: "--context-length",
    common: true,
    short: "-c",
    type: "integer",
    min: 1,
    max: 16_777_216,
    help: "maximum length of a sequence in tokens, prompt and output together",
    absent: "the engine's own",
    example: "--context-length 4096",
  },
} as const;

/** The drafter, whose default is not read from the draft's files. */
export const KNOWN_DRAFTER: Flag = {
  ...SPECULATION.drafter,
  absent: `the kind of a known draft; ${RANGED} have min=1,max=12`,
};

/** Where it is to listen; what is not given is left to it. */
export const SERVE_COMMAND = {
  host: {
    flag: "--host",
    common: true,
    type: "text",
    help: "address to listen on",
    absent: "the engine's own",
    example: "--host 0.0.0.0",
  },
  port: {
    flag: "--port",
    common: true,
    type: "integer",
    min: 1,
    max: 65_535,
    help: "port to listen on",
    absent: "the engine's own: 30000 of SGLang, 8000 of vLLM",
    example: "--port 8000",
  },
  servedModelName: {
    flag: "--served-model-name",
    common: true,
    type: "text",
    help: "the model's name in requests and answers",
    absent: "what --model says",
    example: "--served-model-name assistant",
  },
  maxBatch: {
    flag: "--max-batch",
    type: "integer",
    min: 1,
    max: 100_000,
    help: "requests that run at a time",
    absent: "the engine's own",
    example: "--max-batch 64",
  },
} as const;
