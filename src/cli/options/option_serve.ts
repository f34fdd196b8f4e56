// Rows of the option table: where a server listens, who may ask, and how much at once.

export const SERVE = {
  host: {
    flag: "--host",
    common: true,
    type: "text",
    help: "address to listen on; beyond this machine only with a key, if you can help it",
    absent: "127.0.0.1",
    example: "--host 0.0.0.0",
  },
  port: {
    flag: "--port",
    common: true,
    type: "integer",
    min: 0,
    max: 65_535,
    default: 8000,
    help: "port to listen on; 0 = any that is free",
    example: "--port 8080",
  },
  apiKey: {
    flag: "--api-key",
    common: true,
    type: "text",
    help: "requests need this key; other users of the machine see flags, but not EYRIE_API_KEY",
    absent: "EYRIE_API_KEY of the environment, else everybody may ask",
    example: "--api-key secret",
  },
  servedModelName: {
    flag: "--served-model-name",
    common: true,
    type: "list",
    help:
      "the model's name in requests and answers; may be repeated, or names with commas; requests may say any name where one is *",
    absent: "what --model says",
    example: "--served-model-name assistant,gpt-4o",
  },
  strict: {
    flag: "--strict",
    type: "switch",
    help: "refuse fields and tools that are not known, instead of ignoring them",
    example: "--strict",
  },
  allowHost: {
    flag: "--allow-host",
    type: "list",
    help: "a name of this server besides localhost and addresses; may be repeated",
    absent: "none",
    example: "--allow-host models.example.org",
  },
  allowOrigin: {
    flag: "--allow-origin",
    type: "list",
    help: "pages of this origin may ask, * is any; may be repeated",
    absent: "the server's own page",
    example: "--allow-origin http://localhost:3000",
  },
} as const;

export const SERVE_LOAD = {
  maxBatch: {
    flag: "--max-batch",
    common: true,
    type: "integer",
    min: 1,
    max: 128,
    default: 8,
    help: "requests answered at once",
    example: "--max-batch 32",
  },
  maxQueue: {
    flag: "--max-queue",
    type: "integer",
    min: 0,
    max: 1_000_000,
    default: 256,
    help: "requests that may wait beside them; more are refused with 429",
    example: "--max-queue 16",
  },
  maxQueueMs: {
    flag: "--max-queue-ms",
    type: "integer",
    min: 1,
    max: 86_400_000,
    help: "milliseconds that a request may wait for a slot; then it is refused with 503",
    absent: "as long as its client waits",
    example: "--max-queue-ms 30000",
  },
  drainDelay: {
    flag: "--drain-delay",
    type: "number",
    min: 0,
    max: 3600,
    default: 0,
    help: "seconds after SIGTERM in which requests are still taken, while /health says draining",
    example: "--drain-delay 10",
  },
  drainTimeout: {
    flag: "--drain-timeout",
    type: "number",
    min: 0,
    max: 86_400,
    default: 30,
    help: "seconds that requests may still run once no more are taken",
    example: "--drain-timeout 5",
  },
  roundTimeout: {
    flag: "--round-timeout",
    type: "number",
    min: 0,
    max: 86_400,
    above: true,
    default: 120,
    help: "seconds without a sign of life of the engine after which /health is 503",
    example: "--round-timeout 30",
  },
} as const;

export const SERVE_LOG = {
  logFormat: {
    flag: "--log-format",
    type: "choice",
    choices: ["text", "json", "none"],
    help: "how each request is written to stderr; none leaves the server's own faults",
    absent: "text; none with --quiet",
    example: "--log-format json",
  },
  logPrompts: {
    flag: "--log-prompts",
    type: "switch",
    help: "write prompts and outputs to the log too",
  },
} as const;
