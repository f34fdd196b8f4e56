import { UsageError } from "../../errors.ts";
import { connectionLimits } from "../../serve/http/listener.ts";
import { startServer } from "../../serve/server.ts";
import { type CommandContext, openWithProgress } from "../open/open.ts";
import { shownName } from "../open/reference.ts";
import { samplingChoice } from "../open/sampling.ts";
import { speculateOf } from "../open/speculation.ts";
import { templateArguments } from "../open/template.ts";
import type { ServeOptions } from "../options/options.ts";
import { warn } from "../terminal/warn.ts";
import { withoutAbortWarning } from "./abort_warning.ts";

const LOOPBACK = ["127.0.0.1", "localhost", "::1"];

/**
 * `eyrie serve`: answers HTTP requests until the process is asked to end. It listens before the model
 * is loaded. Prints its address once it answers. Returns the exit code.
 */
export async function runServe(
  options: ServeOptions,
  { open, io, version }: CommandContext & { readonly version: string },
): Promise<number> {
  // Mistakes are told before it listens.
  const given = templateArguments(options);
  speculateOf(options);
  const { host = LOOPBACK[0] as string, quiet, maxBatch, maxQueue } = options;
  const names = namesOf(options.servedModelName);
  using _quiet = withoutAbortWarning();
  const apiKey = options.apiKey ?? (Deno.env.get("EYRIE_API_KEY") || undefined);
  const server = await startServer(
    async (onProgress) =>
      await openWithProgress(options, { open, io }, {
        ...{ constrained: true, predictions: true, onProgress },
      }),
    {
      ...{ host, port: options.port, apiKey, maxBatch, maxQueue, version, shownName },
      hosts: [host, ...LOOPBACK.includes(host) ? [] : [Deno.hostname()], ...options.allowHost],
      origins: options.allowOrigin,
      modelName: names[0],
      otherNames: names.slice(1),
      anyModel: options.anyModel,
      strict: options.strict,
      drainMs: options.drainTimeout * 1000,
      limits: connectionLimits(maxBatch + maxQueue),
      roundMs: options.roundTimeout * 1000,
      sampling: (engine) => samplingChoice(options, engine),
      maxTokens: options.maxTokens,
      templateArguments: given,
      log: (line) => io.stderr.write(`${line}\n`),
    },
  );
  if (apiKey === undefined && !LOOPBACK.includes(host)) {
    // Also with --quiet: whoever did not mean it should know.
    const line = `everybody who reaches ${server.url} may use the model: there is no --api-key`;
    warn(line, { io });
  }
  const say = (line: string) => quiet || io.stderr.write(`${line}\n`);
  say(`${server.url} listens, the model is being loaded`);
  await using engine = await server.ready;
  if (engine !== undefined) {
    say(`${shownName(engine.name)} answers ${maxBatch} requests at once`);
    io.stdout.write(`${server.url}\n`);
    await aborted(io.signal);
    say(`stopping: requests that run have ${options.drainTimeout} s to end`);
  }
  await server.stop();
  return 0;
}

/** @throws UsageError for an empty name. */
function namesOf(given: readonly string[]): string[] {
  const names = given.flatMap((each) => each.split(",")).map((name) => name.trim());
  if (names.includes("")) {
    throw new UsageError(`Cannot use "--served-model-name ${given.join(" ")}": a name is empty`);
  }
  return [...new Set(names)];
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve());
  });
}
