import { createHash } from "node:crypto";
import { defined } from "../../defined.ts";
import { together, total } from "../../remote/acceptance.ts";
import { complete, type Completed, type RemotePrompt } from "../../remote/complete.ts";
import type { Endpoint } from "../../remote/endpoint.ts";
import { acceptanceBetween, type Reading, readServer, settingText } from "../../remote/reading.ts";
import { openServer, type Server } from "../../remote/server.ts";
import { randomIds } from "../workload/draw.ts";
import { driveCell, type LoadCell } from "./drive_cell.ts";
import type { LoadArm } from "./plan.ts";
import type { LoadRequest, RequestSender } from "./request.ts";
import type { LoadCellResult, MeasuredServer, OpenLoad } from "./session.ts";

/** A session that measures the server at `endpoint`. It does not use the policies of the plan. */
export function remoteLoad(endpoint: Endpoint, signal: AbortSignal): OpenLoad {
  return async ({ model, plan }) => {
    const server = await openServer(endpoint, { model: model?.model, signal });
    const reading = await readServer(server, signal);
    return {
      subject: {
        model: server.model,
        draft: draftText(reading),
        device: `${server.kind === "other" ? "server" : server.kind} at ${endpoint.shown}`,
        simulated: false,
      },
      served: servedBy(server, reading),
      check: () => {},
      runCell: (spec, options) => runCell(server, { ...options, spec, plan }),
      [Symbol.dispose]() {},
    };
  };
}

/** How the server speculates, in words; undefined if it says that it does not. */
function draftText({ speculation, counters }: Reading): string | undefined {
  if (speculation === undefined) {
    return counters === undefined ? "not reported" : "counted, not named";
  }
  return speculation.draft ?? speculation.algorithm;
}

function servedBy({ kind }: Server, { speculation, maxRunning }: Reading): MeasuredServer {
  const label = settingText(speculation) ?? "as it is served";
  const arm: LoadArm = { label, policy: { policy: "served" }, again: false };
  return { arm, backend: kind === "other" ? "openai" : kind, maxBatch: maxRunning ?? null };
}

async function runCell(server: Server, cell: LoadCell): Promise<LoadCellResult | undefined> {
  const { signal } = cell;
  const answers: Completed[] = [];
  const sender = remoteSender(server, (answer) => void answers.push(answer));
  let before: Reading | undefined;
  const driven = await driveCell(cell, sender, async () => {
    answers.length = 0;
    before = await readServer(server, signal);
  });
  if (driven === undefined) return undefined;
  const after = await readServer(server, signal);
  const acceptance = together(
    total(answers.map((answer) => answer.acceptance)),
    before && acceptanceBetween(before, after),
  );
  return {
    ...driven,
    rounds: [],
    switches: 0,
    preemptions: 0,
    acceptance: acceptance ?? null,
  };
}

/** A sender of greedy requests to a server. @param ended is called with every answer. */
function remoteSender(server: Server, ended: (answer: Completed) => void): RequestSender {
  return {
    prepare(request) {
      const { maxTokens, ignoreEos } = request;
      const prompt = promptOf(request);
      const fields = {
        temperature: 0,
        [server.endpoint.limitField]: maxTokens,
        ...ignoreEos ? { ignore_eos: true } : {},
      };
      return {
        async send(heard, signal) {
          let chunks = 0;
          // It runs as soon as it is sent, as far as can be seen from here.
          heard(0);
          const answer = await complete(server, { prompt, fields, signal }, ({ tokens }) => {
            chunks++;
            heard(tokens ?? 1);
          });
          ended(answer);
          const { promptTokens, outputTokens = chunks, cachedTokens, text, reasoning } = answer;
          return {
            promptTokens,
            outputTokens,
            ...defined({ cachedTokens }),
            outputHash: createHash("sha256").update(reasoning + text).digest("hex").slice(0, 16),
            complete: answer.finishReason !== "interrupt",
          };
        },
      };
    },
  };
}

/** Token ids that every vocabulary has and that are seldom special tokens: above the bytes, below 1024. */
const IDS = { first: 256, count: 768 } as const;

function promptOf({ prompt, promptTokens }: LoadRequest): RemotePrompt {
  if (prompt.kind === "chat") return { messages: prompt.messages };
  if (prompt.kind === "text") return { raw: prompt.text };
  const ids = randomIds(promptTokens, { vocabulary: IDS.count, seed: prompt.seed });
  return { raw: ids.map((id) => IDS.first + id) };
}
