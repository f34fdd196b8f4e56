import type { OpenEngine } from "../../engine/engine.ts";
import { UsageError } from "../../errors.ts";
import { modelArgument, parsePlace } from "../../hub/names.ts";
import { maxRequestTokens } from "../../serve/answers/limits.ts";
import { connectionLimits } from "../../serve/http/listener.ts";
import { type Log, type LogFormat, openLog } from "../../serve/service/log.ts";
import { startServer } from "../../serve/server.ts";
import { isThere } from "../open/is_there.ts";
import { type CommandContext, openWithProgress } from "../open/open.ts";
import { shownName } from "../open/reference.ts";
import { samplingChoice } from "../open/sampling.ts";
import { speculateOf } from "../open/speculation.ts";
import { templateArguments } from "../open/template.ts";
import type { ServeOptions } from "../options/options.ts";
import { type Io, unlessAborted } from "../terminal/io.ts";
import { writeLine } from "../terminal/progress.ts";
import { warn } from "../terminal/warn.ts";
import { startLines } from "./start_lines.ts";
import { withoutAbortWarning } from "./abort_warning.ts";

const LOOPBACK = ["127.0.0.1", "localhost", "::1"];

/**
 * `eyrie serve`: answers HTTP requests until the process is asked to end. It listens before the model
 * is loaded. Prints its address once it answers. Returns the exit code.
 */
export async function runServe(
  options: ServeOptions,
  context: CommandContext & { readonly version: string },
): Promise<number> {
  // Mistakes are reported before it listens.
  const given = templateArguments(options);
  speculateOf(options);
  const { host = LOOPBACK[0] as string, quiet, maxBatch, maxQueue } = options;
  const names = namesOf(options);
  const format = (options.logFormat ?? (quiet ? "none" : "text")) as LogFormat;
  const log = openLog({ format, write: (line) => writeLine(context.io.stderr, line) });
  const { version } = context;
  let opening: ReturnType<OpenEngine> | undefined;
  const open: OpenEngine = (asked) => opening = context.open(asked);
  const io = format === "json" ? loggedIo(context.io, log) : context.io;
  using _quiet = withoutAbortWarning();
  const apiKey = usedKey(options.apiKey);
  const server = await startServer(
    async (onProgress) =>
      await openWithProgress(options, { open, io }, {
        constrained: true,
        predictions: true,
        preparePrompts: true,
        onProgress,
      }),
    {
      host,
      port: options.port,
      apiKey,
      maxBatch,
      maxQueue,
      version,
      shownName,
      hosts: [host, ...LOOPBACK.includes(host) ? [] : [Deno.hostname()], ...options.allowHost],
      origins: options.allowOrigin,
      modelName: names[0],
      otherNames: names.slice(1),
      anyModel: served(options).includes("*"),
      strict: options.strict,
      drainDelayMs: options.drainDelay * 1000,
      drainMs: options.drainTimeout * 1000,
      limits: connectionLimits(maxBatch + maxQueue),
      maxQueueMs: options.maxQueueMs,
      roundMs: options.roundTimeout * 1000,
      stallMs: options.roundTimeout * 1000 / 4,
      sampling: ({ info }) => samplingChoice(options, info),
      maxTokens: options.maxTokens,
      templateArguments: given,
      log,
      logPrompts: options.logPrompts,
    },
  );
  if (apiKey === undefined && !LOOPBACK.includes(host)) {
    // Also with --quiet: whoever did not mean it should know.
    const line = `everybody who reaches ${server.url} may use the model: there is no --api-key`;
    warn(line, { io, quiet: false });
  }
  const say = (line: string) => void (quiet || log.line(line));
  say(`${server.url} listens, the model is being loaded`);
  await using engine = await server.ready;
  if (engine !== undefined) {
    const { phase } = server.service;
    const model = phase.kind === "ready" ? phase.ready.model : engine.info.name;
    const draft = engine.info.draftName && shownName(engine.info.draftName);
    const { info } = engine;
    const { kvTokens } = info;
    const requestTokens = maxRequestTokens(info);
    startLines({ url: server.url, model, draft, maxBatch, kvTokens, requestTokens }).forEach(say);
    io.stdout.write(`${server.url}\n`);
    await aborted(io.signal);
    say(stoppingLine(options, server.service.table.live.size));
  }
  await server.stop();
  if (engine === undefined && opening !== undefined) await givenUp(opening);
  return 0;
}

function stoppingLine({ drainDelay, drainTimeout }: ServeOptions, running: number): string {
  if (drainDelay === 0 && running === 0) return "stopping";
  const before = drainDelay > 0 ? `new requests are accepted for ${drainDelay} s more; then ` : "";
  return `stopping: ${before}running requests have ${drainTimeout} s to end`;
}

/** How long an interrupted opening may take to end. */
const GIVE_UP_MS = 5000;

/** If the process exits while the engine's thread still loads, Mesa's driver may crash. */
async function givenUp(opening: ReturnType<OpenEngine>): Promise<void> {
  const ended = opening.then((engine) => engine[Symbol.asyncDispose](), () => {});
  await unlessAborted(ended, AbortSignal.timeout(GIVE_UP_MS));
}

/** Sends what commands write to stderr to the log, line by line, so that a JSON log stays all JSON. */
function loggedIo(io: Io, log: Log): Io {
  const write = (text: string) => {
    for (const line of text.split("\n")) if (line !== "") log.line(line);
  };
  return { ...io, stderr: { ...io.stderr, isTerminal: false, write } };
}

/** All that `--served-model-name` names; `*` is any. */
function served({ servedModelName }: Pick<ServeOptions, "servedModelName">): string[] {
  return servedModelName.flatMap((each) => each.split(",")).map((name) => name.trim());
}

/**
 * The model's names in requests. Where none is given, a model of the hub gets the name that was typed: its
 * folder in the cache is named after a commit, which clients do not know. For other models the list is empty.
 *
 * @throws UsageError for an empty name.
 */
function namesOf(options: Pick<ServeOptions, "servedModelName" | "model">): string[] {
  const names = served(options).filter((name) => name !== "*");
  if (names.includes("")) {
    throw new UsageError(
      `Cannot use "--served-model-name ${options.servedModelName.join(" ")}": a name is empty`,
    );
  }
  if (names.length > 0) return [...new Set(names)];
  const place = options.model === undefined ? undefined : parsePlace(options.model, isThere);
  return place?.kind === "hub" ? [modelArgument(place.name)] : [];
}

/**
 * The key that requests need, without space around it: files of secrets end with a newline.
 *
 * @throws UsageError for a key that no client could send in a header.
 */
export function usedKey(given: string | undefined): string | undefined {
  const name = given === undefined ? "EYRIE_API_KEY" : "--api-key";
  const key = given ?? (Deno.env.get("EYRIE_API_KEY") || undefined);
  const trimmed = key?.trim();
  if (trimmed === "") throw new UsageError(`Cannot use ${name}: it is empty`);
  if (trimmed !== undefined && !/^[\x21-\x7e]+$/.test(trimmed)) {
    const allowed = "allowed are letters, digits and signs of ASCII, without spaces";
    throw new UsageError(`Cannot use ${name}: ${allowed}`);
  }
  return trimmed;
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve());
  });
}
