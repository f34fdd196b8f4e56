import { UsageError } from "../../errors.ts";
import type { ServeCommandOptions } from "../options/options.ts";
import type { OtherEngine } from "../options/parse.ts";
import type { Io } from "../terminal/io.ts";
import { outputFile } from "../terminal/output_file.ts";
import { warn } from "../terminal/warn.ts";
import { launchRequestOf } from "./launch_request.ts";
import { type Flag, shellText, writingText } from "./command.ts";
import { CONFIG_FLAG, sglangCommand } from "./sglang.ts";
import { vllmCommand } from "./vllm.ts";

/** The file that the printed command writes itself. */
const CONFIG_FILE = "eyrie-adaptive.json";

/** A line for each entry. */
function configText(config: Readonly<Record<string, unknown>>): string {
  const lines = Object.entries(config).map(([key, value]) =>
    `  ${JSON.stringify(key)}: ${JSON.stringify(value)}`
  );
  return `{\n${lines.join(",\n")}\n}`;
}

/**
 * `eyrie serve-command`: prints what a shell has to run so that SGLang or vLLM speculates alike, and
 * lists on stderr what has no equivalent there. Returns the exit code.
 */
export function runServeCommand(
  engine: OtherEngine,
  options: ServeCommandOptions,
  io: Io,
): number {
  const { emitConfig, quiet } = options;
  const asked = launchRequestOf(options);
  const { program, flags, config, notes } = engine === "sglang"
    ? sglangCommand(asked)
    : vllmCommand(asked);
  if (emitConfig !== undefined && config === undefined) {
    throw new UsageError(
      `Cannot use "--emit-config ${emitConfig}": this command has no config file; ` +
        "--policy ema makes one of SGLang's",
    );
  }
  const text = config && configText(config);
  if (emitConfig !== undefined) outputFile(emitConfig, options).write(`${text}\n`);
  const named: Flag[] = text === undefined ? [] : [[CONFIG_FLAG, emitConfig ?? CONFIG_FILE]];
  const written = text !== undefined && emitConfig === undefined;
  io.stdout.write(
    `${written ? writingText(CONFIG_FILE, text) : ""}${shellText(program, [...flags, ...named])}\n`,
  );
  for (const note of [...asked.notes, ...notes]) warn(note, { io, quiet });
  return 0;
}
