/** `eyrie doctor`: can this machine run Eyrie, and how fast does its GPU answer. */
import { reason, UsageError } from "../../errors.ts";
import { costsPath, lookAtCosts } from "../../engine/tune/costs/costs_file.ts";
import { lookAtTuning, tuningPath } from "../../engine/tune/tuning_file.ts";
import type { DoctorOptions } from "../options/options.ts";
import { openWebGpu, type WebGpuName } from "../../gpu/webgpu.ts";
import { lookAtAdapter } from "./adapter.ts";
import { countSettings, readSettings } from "../options/settings.ts";
import { cacheFolders, cacheState } from "./caches.ts";
import { installDebianDriver } from "./install.ts";
import { chooseFix, DAWN_FIX, type Machine, parseOsRelease } from "./machine.ts";
import {
  type ConfigState,
  type DoctorReport,
  isHealthy,
  renderReport,
  reportJson,
} from "./report.ts";

/**
 * Writes the report to `out`, each text with its line end.
 *
 * @returns the exit code: 0 where Eyrie can run, else 1
 */
export async function runDoctor(
  options: DoctorOptions,
  out: (text: string) => void,
): Promise<number> {
  const machine = thisMachine();
  const report = await examine(machine, options.webgpu);
  if (options.fix && report.fix.kind === "install") {
    if (await install(report)) return await examineAfresh(options, out);
  }
  out(options.json ? `${JSON.stringify(reportJson(report), null, 2)}\n` : renderReport(report));
  return isHealthy(report) ? 0 : 1;
}

/**
 * Whether the driver was installed.
 * @throws UsageError when it cannot be and nothing answers; OpenGL does without it, slowly.
 */
async function install({ adapter }: DoctorReport): Promise<boolean> {
  try {
    await installDebianDriver(
      adapter ? "OpenGL answers but no Vulkan driver" : "No WebGPU adapter",
    );
    return true;
  } catch (error) {
    if (adapter === null || !(error instanceof UsageError)) throw error;
    await Deno.stderr.write(new TextEncoder().encode(`warning: ${error.message}\n`));
    return false;
  }
}

/** Looks at everything; opens the adapter when there is one. */
async function examine(
  machine: Machine,
  asked: WebGpuName | undefined,
): Promise<DoctorReport> {
  const webgpu = openWebGpu(asked);
  const adapter = await lookAtAdapter(webgpu);
  const env = (name: string): string | undefined => Deno.env.get(name);
  const forced = env("DENO_WEBGPU_BACKEND");
  const tuning = tuningPath(env, machine.os);
  return {
    deno: {
      version: Deno.version.deno,
      v8: Deno.version.v8,
      typescript: Deno.version.typescript,
      target: Deno.build.target,
    },
    system: machine.release?.name ?? machine.os,
    webgpu: webgpu.name,
    adapter,
    caches: cacheFolders(env, machine.os).map(cacheState),
    tuning: lookAtTuning(tuning),
    costs: lookAtCosts(costsPath(tuning)),
    config: configState(env, machine.os),
    fix: adapter === null && webgpu.name === "dawn"
      ? DAWN_FIX
      : chooseFix(machine, adapter, forced),
  };
}

/** The config file, whose keys were checked when the command began. */
function configState(env: (name: string) => string | undefined, os: Machine["os"]): ConfigState {
  const settings = readSettings(env, os);
  const there = settings.text !== undefined;
  return { path: settings.path, flags: there ? countSettings(settings) : undefined };
}

// WebGPU loads its drivers once a process, so a new driver is seen by a new process only.
async function examineAfresh(
  options: DoctorOptions,
  out: (text: string) => void,
): Promise<number> {
  const program = Deno.build.standalone ? [] : ["run", "-A", Deno.mainModule];
  const args = [...program, "doctor", ...(options.json ? ["--json"] : [])];
  if (options.webgpu !== undefined) args.push("--webgpu", options.webgpu);
  const child = new Deno.Command(Deno.execPath(), { args, stdin: "null", stderr: "inherit" });
  const { code, stdout } = await child.output();
  out(new TextDecoder().decode(stdout));
  return code;
}

function thisMachine(): Machine {
  return { os: Deno.build.os, release: readOsRelease(), root: Deno.uid() === 0 };
}

function readOsRelease(): Machine["release"] {
  if (Deno.build.os !== "linux") return undefined;
  try {
    return parseOsRelease(Deno.readTextFileSync("/etc/os-release"));
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw new UsageError(`Cannot read "/etc/os-release": ${reason(error)}`, { cause: error });
  }
}
