import { allowed, type Flag, placeholder } from "./flag.ts";
import { type CommandName, COMMANDS } from "./options.ts";

/** The text of `eyrie --help`. */
export function overview(): string {
  const names = Object.entries(COMMANDS);
  const width = Math.max(...names.map(([name]) => name.length));
  return [
    "eyrie - language models on WebGPU with EAGLE speculative decoding",
    "",
    "Usage: eyrie COMMAND [flags]",
    "",
    ...names.map(([name, { summary }]) => `  ${name.padEnd(width)}  ${summary}`),
    "",
    "  eyrie COMMAND --help  the flags of a command",
    "  eyrie --version       the version",
    "",
  ].join("\n");
}

/** The text of `eyrie COMMAND --help`: per flag its type, range, default and one example. */
export function commandHelp(name: CommandName): string {
  const { summary, usage, operands = [], groups } = COMMANDS[name];
  const lines = [`eyrie ${name} - ${summary}`, "", `Usage: ${usage}`];
  if (operands.length > 0) lines.push("");
  for (const operand of operands) lines.push(`  ${operand.name}`, `      ${operand.help}`);
  for (const [title, flags] of Object.entries(groups)) {
    lines.push("", `${title}:`, ...Object.values(flags).flatMap(flagHelp));
  }
  return [...lines, ""].join("\n");
}

function flagHelp(flag: Flag): string[] {
  const names = flag.alias === undefined ? flag.flag : `${flag.flag}, ${flag.alias}`;
  const facts = [flag.type === "switch" ? "switch" : allowed(flag)];
  if (flag.type === "switch") facts.push("default off");
  else if ("default" in flag) facts.push(`default ${flag.default}`);
  else facts.push(`default: ${flag.absent}`);
  return [
    `  ${names} ${placeholder(flag)}`.trimEnd(),
    `      ${flag.help}`,
    `      ${facts.join("; ")}`,
    `      example: ${flag.example}`,
  ];
}
