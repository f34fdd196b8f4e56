// Imported before all other modules: it ends the program where Deno is too old for them.
import "./src/cli/old_deno.ts";
import denoJson from "./deno.json" with { type: "json" };
import type { OpenLoad } from "./src/measure/load/session.ts";
import type { OpenEngine } from "./src/engine/engine.ts";
import { denoIo, INTERRUPTED, type Io, OutputError } from "./src/cli/terminal/io.ts";
import { visible } from "./src/cli/terminal/visible.ts";
import { endSignals } from "./src/cli/terminal/signals.ts";
import type { Invocation } from "./src/cli/options/parse.ts";
import type { Settings } from "./src/cli/options/settings.ts";
import type { DraftCheck } from "./src/engine/check/check_draft.ts";
import { workerPort } from "./src/engine/worker/port.ts";
import { GpuFailure, RemoteError, UsageError, withoutPermission } from "./src/errors.ts";

/**
 * Runs the command line and returns its exit code. Only this function turns errors into exit codes.
 *
 * @param settings reads the flags that the config file and EYRIE_* variables set; absent: there are none.
 */
export async function main(
  args: readonly string[],
  io: Io,
  settings?: () => Settings,
): Promise<number> {
  try {
    const { parseArguments } = await import("./src/cli/options/parse.ts");
    return await run(parseArguments(args, settings), { io, args });
  } catch (thrown) {
    const error = withoutPermission(thrown);
    // The reader of stdout has gone, as in `eyrie generate | head -1`: there is nothing left to do.
    if (error instanceof Deno.errors.BrokenPipe) return 0;
    // The code that Ctrl+C stopped has already reported it.
    if (error instanceof Error && error.name === "AbortError") return INTERRUPTED;
    const mistake = error instanceof UsageError;
    const failure = error instanceof OutputError || error instanceof RemoteError ||
      error instanceof GpuFailure;
    const oneLine = mistake || failure;
    say(oneLine ? `eyrie: ${await spelledAsTyped(error.message, args)}` : stackOf(error), io);
    return mistake ? 2 : 1;
  }
}

/** Messages name flags by their first spelling; the person may have typed another one. */
async function spelledAsTyped(message: string, args: readonly string[]): Promise<string> {
  const { messageAsTyped } = await import("./src/cli/options/parse.ts");
  return messageAsTyped(message, args);
}

function stackOf(error: unknown): string {
  return error instanceof Error ? error.stack ?? error.message : String(error);
}

function say(line: string, { stderr }: Io): void {
  try {
    stderr.write(`${visible(line)}\n`);
  } catch {
    // stderr cannot be written either: only the exit code reports the error.
  }
}

/** Runs one command. Each command imports its own modules, so the others start without loading them. */
async function run(
  invocation: Invocation,
  { io, args }: { io: Io; args: readonly string[] },
): Promise<number> {
  switch (invocation.command) {
    case "print":
      io.stdout.write(invocation.text);
      return 0;
    case "topic": {
      const { helpTopic } = await import("./src/cli/help/help_topic.ts");
      io.stdout.write(helpTopic(invocation.topic, invocation));
      return 0;
    }
    case "version":
      io.stdout.write(`eyrie ${denoJson.version}\n`);
      return 0;
    case "generate": {
      const { remote } = invocation.options;
      if (remote !== undefined) {
        const { runRemoteGenerate } = await import("./src/cli/remote/generate.ts");
        return await runRemoteGenerate({ ...invocation, remote }, io);
      }
      const { runGenerate } = await import("./src/cli/generate/generate.ts");
      const open = await engineOpener(invocation.options, io, invocation);
      return await runGenerate(invocation, { open, io });
    }
    case "chat": {
      const { remote } = invocation.options;
      if (remote !== undefined) {
        const { runRemoteChat } = await import("./src/cli/remote/chat.ts");
        const { historyPath } = await import("./src/cli/terminal/history.ts");
        return await runRemoteChat(invocation.options, { remote, io, historyFile: historyPath() });
      }
      const { runChat } = await import("./src/cli/chat/chat.ts");
      const open = await engineOpener(invocation.options, io, DRAFTS);
      const { historyPath } = await import("./src/cli/terminal/history.ts");
      return await runChat(invocation.options, { open, io, historyFile: historyPath() });
    }
    case "serve": {
      const { runServe } = await import("./src/cli/serve/serve.ts");
      const open = await engineOpener(invocation.options, io, DRAFTS);
      return await runServe(invocation.options, { open, io, version: denoJson.version });
    }
    case "serve-command": {
      const { runServeCommand } = await import("./src/cli/serve_command/serve_command.ts");
      return runServeCommand(invocation.engine, invocation.options, io);
    }
    case "bench": {
      const { runTable } = await import("./src/cli/bench/tables.ts");
      const { version } = denoJson;
      return await runTable(invocation.options, { io, args: args.slice(1), version });
    }
    case "bench load": {
      const { locatedModel } = await import("./src/cli/open/locate.ts");
      const { openLoad } = await import("./src/measure/load/session.ts");
      const { runLoad } = await import("./src/cli/bench/load.ts");
      const { remote, quiet } = invocation.options;
      const open = remote === undefined
        ? locatedModel(openLoad, { io, quiet })
        : await remoteOpener(remote, io);
      const { version } = denoJson;
      return await runLoad(invocation.options, { open, io, args: args.slice(2), version });
    }
    case "breakeven": {
      const { locatedModel } = await import("./src/cli/open/locate.ts");
      const { openBench } = await import("./src/measure/session.ts");
      const { runBreakeven } = await import("./src/cli/bench/breakeven.ts");
      const open = locatedModel(openBench, { io, quiet: invocation.options.quiet });
      const { version } = denoJson;
      return await runBreakeven(invocation.options, { open, io, args: args.slice(1), version });
    }
    case "simulate": {
      const { runSimulate } = await import("./src/cli/simulate/simulate.ts");
      return await runSimulate(invocation.options, io);
    }
    case "profile": {
      const { locatedModel } = await import("./src/cli/open/locate.ts");
      const { openCostsSession } = await import("./src/measure/costs/costs_session.ts");
      const { runCosts } = await import("./src/cli/bench/costs.ts");
      const open = locatedModel(openCostsSession, { io, quiet: invocation.options.quiet });
      return await runCosts(invocation.options, { open, io });
    }
    case "check": {
      const { located, locatedModel } = await import("./src/cli/open/locate.ts");
      const { checkModel } = await import("./src/engine/check/check.ts");
      const { checkQuantized } = await import("./src/engine/check/check_quantized.ts");
      const { checkDraft } = await import("./src/engine/check/check_draft.ts");
      const { openEngine } = await import("./src/engine/open.ts");
      const { runCheck } = await import("./src/cli/checkpoint/check.ts");
      const { quiet } = invocation.options;
      return await runCheck(invocation.options, {
        check: located(checkModel, { io, quiet }),
        checkQuantized: locatedModel(checkQuantized, { io, quiet }),
        checkDraft: locatedModel((options: DraftCheck) => checkDraft(options, openEngine), {
          io,
          quiet,
        }),
        io,
      });
    }
    case "inspect": {
      const { runInspect } = await import("./src/cli/checkpoint/inspect.ts");
      const { locate } = await import("./src/cli/open/locate.ts");
      const options = await locate(invocation.options, { io, quiet: false });
      runInspect(options, io.stdout.write);
      return 0;
    }
    case "pull": {
      const { runPull } = await import("./src/cli/hub/pull.ts");
      return await runPull(invocation, io);
    }
    case "models": {
      const { runModels } = await import("./src/cli/hub/models.ts");
      return await runModels(invocation.options, io.stdout);
    }
    case "rm": {
      const { runRemove } = await import("./src/cli/hub/rm.ts");
      return await runRemove(invocation, io);
    }
    case "convert": {
      const { convertCheckpoint } = await import("./src/model/checkpoint/convert.ts");
      const { runConvert } = await import("./src/cli/checkpoint/convert.ts");
      const { locate } = await import("./src/cli/open/locate.ts");
      const { quiet } = invocation.options;
      const { model: from } = await locate({ model: invocation.from }, { io, quiet });
      return await runConvert({ ...invocation, from }, { convert: convertCheckpoint, io });
    }
    case "token-map": {
      const { runTokenMap } = await import("./src/cli/checkpoint/token_map.ts");
      const { locate } = await import("./src/cli/open/locate.ts");
      const { quiet } = invocation.options;
      return runTokenMap(invocation.names, await locate(invocation.options, { io, quiet }), io);
    }
    case "completion": {
      const { completionScript } = await import("./src/cli/completion/completion.ts");
      io.stdout.write(completionScript(invocation.shell));
      return 0;
    }
    case "doctor": {
      const { runDoctor } = await import("./src/cli/doctor/doctor.ts");
      return await runDoctor(invocation.options, io.stdout.write);
    }
  }
}

/** Returns the opener for `--remote`: a server takes the place of the engine. */
async function remoteOpener(remote: string, { signal }: Io): Promise<OpenLoad> {
  const { remoteLoad } = await import("./src/measure/load/remote.ts");
  const { remoteEndpoint } = await import("./src/cli/remote/request.ts");
  return remoteLoad(remoteEndpoint(remote), signal);
}

/** For commands that look for a draft where none is named. */
const DRAFTS = { drafts: true };

/**
 * Returns an opener that runs the engine in a worker. The worker runs this same module, so that one file
 * is the whole program.
 *
 * @param options.drafts a draft is looked for where none is named.
 */
async function engineOpener(
  { quiet }: { quiet: boolean },
  io: Io,
  { drafts }: { readonly drafts: boolean },
): Promise<OpenEngine> {
  checkReadable(import.meta.url);
  const { engineInWorker } = await import("./src/engine/worker/client.ts");
  const open = engineInWorker(import.meta.url);
  const notices = { io, quiet, textDrafts: true };
  if (drafts) {
    const { draftingByDefault } = await import("./src/cli/open/default_draft.ts");
    return draftingByDefault(open, notices);
  }
  const { locatedModel } = await import("./src/cli/open/locate.ts");
  return locatedModel(open, notices);
}

/** Checks that a worker may read this module; otherwise Deno would print its own report. @throws NotCapable */
function checkReadable(module: string): void {
  try {
    if (module.startsWith("file:")) Deno.statSync(new URL(module));
  } catch (error) {
    if (error instanceof Deno.errors.NotCapable) throw error;
  }
}

/** Returns an environment variable; undefined also where Deno has no permission to read it. */
function variable(name: string): string | undefined {
  try {
    return Deno.env.get(name);
  } catch (error) {
    if (error instanceof Deno.errors.NotCapable) return undefined;
    throw error;
  }
}

/** Runs the command line, then ends the process. */
async function runToExit(): Promise<never> {
  const { take, die } = endSignals();
  const { readSettings } = await import("./src/cli/options/settings.ts");
  const settings = () => readSettings(variable, Deno.build.os);
  const code = await main(Deno.args, denoIo(take), settings);
  if (code === INTERRUPTED) await die();
  // Deno caches the code that V8 compiled of a module only if the event loop turns after the module was
  // evaluated. With that cache, later starts of a bundle take a third less.
  await new Promise((resolve) => setTimeout(resolve, 0));
  Deno.exit(code);
}

const port = workerPort();
if (port) {
  const { serveThread } = await import("./src/engine/worker/thread.ts");
  await serveThread(port);
} else if (import.meta.main) {
  runToExit();
}
