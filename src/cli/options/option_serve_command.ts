// Rows of the option table: a command that starts another engine alike.

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
