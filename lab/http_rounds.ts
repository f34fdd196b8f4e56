/**
 * `deno run -A lab/http_rounds.ts [--clients 1,8,32] [--turns 4] [--tokens 64] [--each 2]`: a ratio
 * of rounds. The numerator is the rounds an engine takes if all requests are there at once, as in
 * `eyrie generate --batch`. The denominator is the rounds it takes if that many clients send them by
 * HTTP, each client when its last answer has ended. Both run in turn on one engine. The ratio tells
 * how full the server keeps the batch, whatever else the machine does. Times are printed too, but
 * other load on the machine disturbs them.
 */
import { parseArgs } from "node:util";
import { max, median, min } from "d3-array";
import type { Engine } from "../src/engine/engine.ts";
import type { EngineHooks } from "../src/engine/options.ts";
import type { SpeculationChoice } from "../src/engine/schedule/speculation_choice.ts";
import { FALLBACK } from "../src/engine/sampling.ts";
import { resultOf } from "../src/engine/schedule/events.ts";
import { engineInWorker } from "../src/engine/worker/client.ts";
import { GREEDY } from "../src/speculate/sampling.ts";
import { connectionLimits } from "../src/serve/http/listener.ts";
import { openLog } from "../src/serve/service/log.ts";
import { startServer } from "../src/serve/server.ts";

const { values } = parseArgs({
  options: {
    clients: { type: "string", default: "1,8,32" },
    turns: { type: "string", default: "4" },
    tokens: { type: "string", default: "64" },
    each: { type: "string", default: "2" },
  },
});
const tokens = Number(values.tokens);
const openEngine = engineInWorker(new URL("../main.ts", import.meta.url));
/** Three draft steps, always: how requests are drafted does not depend on the load. */
const speculate: SpeculationChoice = {
  numSteps: 3,
  allSteps: false,
};

interface Asked {
  readonly messages: readonly { readonly role: "user"; readonly content: string }[];
  readonly seed: number;
}

interface Took {
  readonly rounds: number;
  readonly ms: number;
}

/** The time and the rounds that the engine takes for `work`. */
async function took(engine: Engine, work: () => Promise<unknown>): Promise<Took> {
  const rounds = async () => (await engine.readStatus()).speculation.rounds;
  const [before, began] = [await rounds(), performance.now()];
  await work();
  return { ms: performance.now() - began, rounds: await rounds() - before };
}

async function direct(engine: Engine, requests: readonly Asked[]): Promise<void> {
  await Promise.all(requests.map(async ({ messages, seed }) => {
    const promptIds = await engine.encodePrompt({ messages });
    const sampling = { ...GREEDY, temperature: 0.8, seed };
    const rest = { maxTokens: tokens, stop: [], ignoreEos: true };
    await resultOf(engine.submit({ promptIds, sampling, ...rest }));
  }));
}

async function served(url: string, clients: number, requests: readonly Asked[]): Promise<void> {
  const left = [...requests];
  await Promise.all(Array.from({ length: clients }, async () => {
    for (let request = left.shift(); request; request = left.shift()) {
      const rest = { max_tokens: tokens, temperature: 0.8, ignore_eos: true, stream: true };
      const body = JSON.stringify({ ...request, ...rest });
      await (await fetch(`${url}/v1/chat/completions`, { method: "POST", body })).text();
    }
  }));
}

async function measure(clients: number): Promise<void> {
  const open = (onProgress: NonNullable<EngineHooks["onProgress"]>) =>
    openEngine({
      limits: { maxBatch: clients },
      speculation: { speculate },
      hooks: { onProgress },
    });
  const server = await startServer(open, {
    host: "127.0.0.1",
    port: 0,
    apiKey: undefined,
    hosts: [],
    origins: [],
    version: "",
    maxBatch: clients,
    maxQueue: clients,
    roundMs: 60_000,
    stallMs: 60_000,
    maxQueueMs: undefined,
    drainDelayMs: 0,
    drainMs: 1000,
    maxTokens: undefined,
    modelName: "m",
    otherNames: [],
    anyModel: false,
    strict: false,
    templateArguments: {},
    shownName: String,
    limits: connectionLimits(clients),
    sampling: () => FALLBACK,
    log: openLog({ format: "none", write: say }),
    logPrompts: false,
  });
  const engine = await server.ready as Engine;
  const ratios: number[] = [];
  for (let turn = 0; turn < Number(values.turns); turn++) {
    const requests = Array.from({ length: clients * Number(values.each) }, (_, seed): Asked => {
      const content = `Tell me story ${turn * 1000 + seed} about a fox.`;
      return { messages: [{ role: "user", content }], seed };
    });
    const early = turn % 2 === 0 ? await took(engine, () => direct(engine, requests)) : undefined;
    const http = await took(engine, () => served(server.url, clients, requests));
    const plain = early ?? await took(engine, () => direct(engine, requests));
    ratios.push(plain.rounds / http.rounds);
    say(
      `${clients} clients: ${plain.rounds} rounds, by HTTP ${http.rounds}; ` +
        `${plain.ms.toFixed(0)} ms, by HTTP ${http.ms.toFixed(0)} ms`,
    );
  }
  const [low, middle, high] = [min(ratios), median(ratios), max(ratios)].map((one) => (
    one?.toFixed(3)
  ));
  say(`${clients} clients: rounds at once / by HTTP ${middle} (${low} to ${high})`);
  await server.stop();
  await engine.terminate();
}

for (const clients of values.clients.split(",").map(Number)) await measure(clients);
Deno.exit(0);

function say(line: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(`${line}\n`));
}
