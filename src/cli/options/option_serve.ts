// Rows of the option table: where a server listens, who may ask, and how much at once.

/** The Origin header as browsers write it; `null` is that of pages without an origin, such as files. */
const ORIGIN = /^(\*|null|[a-z][a-z\d+.-]*:\/\/[^\s/?#@A-Z]+)$/;

export const SERVE = {
  host: {
    flag: "--host",
    common: true,
    type: "text",
    help: "address to listen on; set --api-key before you listen on more than this machine",
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
    help: "port to listen on; 0 takes a free one",
    example: "--port 8080",
  },
  apiKey: {
    flag: "--api-key",
    common: true,
    type: "text",
    help:
      "key that requests have to send; other users of the machine can see flags, but not the variable EYRIE_API_KEY",
    absent: "EYRIE_API_KEY of the environment; without it requests need no key",
    example: "--api-key secret",
  },
  servedModelName: {
    flag: "--served-model-name",
    common: true,
    type: "list",
    help:
      "name of the model in requests and answers; may be repeated or have commas between names; * accepts every name in requests",
    absent: "what --model says",
    example: "--served-model-name assistant,gpt-4o",
  },
  strict: {
    flag: "--strict",
    type: "switch",
    help: "refuse requests with fields or tools that are ignored otherwise",
    example: "--strict",
  },
  allowHost: {
    flag: "--allow-host",
    type: "list",
    valid: (text: string): boolean => !/[\s/:@*]/.test(text),
    allows: "a host name, without scheme and port",
    help:
      "host name, besides localhost and IP addresses, under which requests may reach this server; may be repeated",
    absent: "none",
    example: "--allow-host models.example.org",
  },
  allowOrigin: {
    flag: "--allow-origin",
    type: "list",
    valid: (text: string): boolean => ORIGIN.test(text),
    allows: "SCHEME://HOST or SCHEME://HOST:PORT in lower case and without a path, null, or *",
    help: "origin of web pages that may send requests (CORS); * is any; may be repeated",
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
    help: "requests that run at a time",
    example: "--max-batch 32",
  },
  maxQueue: {
    flag: "--max-queue",
    type: "integer",
    min: 0,
    max: 1_000_000,
    default: 256,
    help: "requests that may wait for a slot; more are refused with status 429",
    example: "--max-queue 16",
  },
  maxQueueMs: {
    flag: "--max-queue-ms",
    type: "integer",
    min: 1,
    max: 86_400_000,
    help:
      "milliseconds that a request may wait for a slot; after that it is refused with status 503",
    absent: "as long as its client waits",
    example: "--max-queue-ms 30000",
  },
  drainDelay: {
    flag: "--drain-delay",
    type: "number",
    min: 0,
    max: 3600,
    default: 0,
    help:
      "seconds after SIGTERM in which new requests are still accepted, while /health reports draining",
    example: "--drain-delay 10",
  },
  drainTimeout: {
    flag: "--drain-timeout",
    type: "number",
    min: 0,
    max: 86_400,
    default: 30,
    help: "seconds that running requests have to finish once no new ones are accepted",
    example: "--drain-timeout 5",
  },
  roundTimeout: {
    flag: "--round-timeout",
    type: "number",
    min: 0,
    max: 86_400,
    above: true,
    default: 120,
    help:
      "seconds after which /health has status 503 if the engine does not answer, or running requests get nothing from it",
    example: "--round-timeout 30",
  },
} as const;

export const SERVE_LOG = {
  logFormat: {
    flag: "--log-format",
    type: "choice",
    choices: ["text", "json", "none"],
    help:
      "format of the line that is logged to stderr for each request; none logs only errors of the server",
    absent: "text; none with --quiet",
    example: "--log-format json",
  },
  logPrompts: {
    flag: "--log-prompts",
    type: "switch",
    help: "log prompts and outputs as well",
  },
} as const;
