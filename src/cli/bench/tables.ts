/** `eyrie bench`: each table has a module of its own, which is loaded when it is asked for. */
import type { EngineOptions } from "../../engine/options.ts";
import type { BenchOptions } from "../options/options.ts";
import type { Io } from "../terminal/io.ts";

/** Runs the bench that `--table` and `--webgpu` ask for. @param of.args as typed, without the command. */
export async function runTable(
  options: BenchOptions,
  { io, args, version }: {
    readonly io: Io;
    readonly args: readonly string[];
    readonly version: string;
  },
): Promise<number> {
  const { locatedModel } = await import("../open/locate.ts");
  const { namedBandwidth } = await import("./bandwidth.ts");
  const { quiet, table, webgpu } = options;
  const located = locatedModel((model: EngineOptions) => Promise.resolve(model), { io, quiet });
  if (table === "profile") {
    const { openProfile } = await import("../../measure/profile/profile_session.ts");
    const { runProfile } = await import("./profile.ts");
    const open = locatedModel(openProfile, { io, quiet });
    return await runProfile(options, { open, io, bandwidth: namedBandwidth() });
  }
  if (webgpu.length > 1) {
    const { refuseMissing, runBackends } = await import("./backends.ts");
    refuseMissing(webgpu);
    const { startChild } = await import("./child.ts");
    return await runBackends(options, {
      start: startChild,
      io,
      args,
      version,
      bandwidth: namedBandwidth(),
    });
  }
  if (table === "growth") {
    const { growth } = await import("../../measure/growth/session.ts");
    const { runGrowth } = await import("./growth.ts");
    return await runGrowth(options, {
      growth,
      io,
      args,
      version,
      bandwidth: namedBandwidth(),
      located,
    });
  }
  if (table === "rewrites") {
    const { rewrites } = await import("../../measure/rewrites/session.ts");
    const { runRewrites } = await import("./rewrites.ts");
    const { rewritesWithout } = await import("../../model/lower/without.ts");
    return await runRewrites(options, {
      rewrites,
      without: rewritesWithout(),
      io,
      located,
    });
  }
  const { openBench } = await import("../../measure/session.ts");
  if (table === "llama-bench") {
    const { runLlama } = await import("./llama.ts");
    const open = locatedModel(openBench, { io, quiet });
    return await runLlama(options, { open, io, args, version });
  }
  const { runBench } = await import("./bench.ts");
  const { openTurns, TURNS_VARIABLE } = await import("./turns.ts");
  return await runBench(options, {
    open: locatedModel(openBench, { io, quiet }),
    io,
    args,
    version,
    ...Deno.env.get(TURNS_VARIABLE) ? openTurns(io) : {},
  });
}
