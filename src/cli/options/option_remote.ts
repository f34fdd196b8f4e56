// The row of the option table that has a server answer, and what can be asked of one.
import { clash } from "./clash.ts";
import type { CommandName } from "./command.ts";
import type { FlagTable } from "./flag.ts";

export const REMOTE = {
  remote: {
    flag: "--remote",
    type: "text",
    help:
      "send requests to the server at this address, which has to have OpenAI's API, and load no model; --model then names a model of that server; its key is read from EYRIE_REMOTE_KEY",
    absent: "a model in this process",
    example: "--remote http://127.0.0.1:8000",
  },
} as const;

const SAMPLING = ["temperature", "topK", "topP", "minP", "seed", "maxTokens", "stop", "ignoreEos"];
const PENALTIES = ["repetitionPenalty", "frequencyPenalty", "presencePenalty", "logitBias"];
const ASKED = ["remote", "model", ...SAMPLING, ...PENALTIES, "system", "think", "templateArg"];

/** Flags that go with `--remote`, by their names in the program. */
const BESIDE: Readonly<Partial<Record<CommandName, readonly string[]>>> = {
  generate: [
    ...ASKED,
    "promptFile",
    "raw",
    "jsonSchema",
    "json",
    "stats",
    "quiet",
  ],
  chat: [...ASKED, "noHistory", "stats", "quiet"],
  "bench load": [
    "remote",
    "model",
    "workload",
    "promptTokens",
    "outputTokens",
    "maxTokens",
    "seed",
    "requestRate",
    "burstiness",
    "trace",
    "concurrency",
    "numRequests",
    "duration",
    "warmup",
    "repeat",
    "goodput",
    "format",
    "output",
    "force",
    "quiet",
  ],
};

/** Why other flags do not go with it; those that are missing here concern the model in this process. */
const WHY: Readonly<Record<string, string>> = {
  batch: "its prompts are answered by an engine in this process",
  grammar: "servers have no common field for it; allowed is --json-schema",
  regex: "servers have no common field for it; allowed is --json-schema",
  logprobs: "only an engine in this process reports them",
  generationConfig: "the server has its own defaults",
  policies: "how a server drafts is decided when it is started",
  record: "a server does not report its rounds",
};

/**
 * Flags that say nothing to a server. `given` has only what was typed.
 *
 * @throws UsageError
 */
export function refuseBesideRemote(
  command: CommandName,
  given: Readonly<Record<string, unknown>>,
  flags: FlagTable,
): void {
  if (given["remote"] === undefined) return;
  const beside = BESIDE[command] ?? [];
  const key = Object.keys(given).find((key) => !beside.includes(key) && flags[key] !== undefined);
  if (key === undefined) return;
  const why = WHY[key] ?? "it is about a model in this process, and the server has its own model";
  clash(flags[key]?.flag, "--remote", why);
}
