import { aliasesOf } from "./aliases.ts";
import type { CommandName } from "./command.ts";
import { EXAMPLES, FIRST_EXAMPLES } from "./examples.ts";
import { allowed, type Flag, placeholder, spellingsOf } from "./flag.ts";
import { COMMANDS, flagsOf } from "./commands.ts";
import { TOPIC_NAMES } from "../help/topics.ts";

const WIDTH = 80;
/** A command with more flags than these has the common ones in its `--help`. */
const FEW_FLAGS = 16;
/** A space that no line ends at. */
const UNBROKEN = "\u00a0";

/** The text of `eyrie --help`. */
export function overview(): string {
  const names = Object.entries(COMMANDS).map(([name, { summary, alias }]) =>
    [alias === undefined ? name : `${name}, ${alias}`, summary] as const
  );
  const width = Math.max(...names.map(([name]) => name.length));
  return [
    "eyrie - language models on WebGPU with EAGLE speculative decoding",
    "",
    ...exampleLines(FIRST_EXAMPLES),
    "",
    "Usage: eyrie COMMAND [flags]",
    "",
    ...names.flatMap(([name, summary]) => {
      const [first, ...rest] = fill(summary, width + 4);
      return [`  ${name.padEnd(width)}  ${first?.trimStart()}`, ...rest];
    }),
    "",
    "  eyrie COMMAND --help  the flags of a command that are needed first",
    "  eyrie COMMAND --help all",
    "                        all flags of a command",
    "  eyrie --version       the version",
    ...topicLines(),
    "",
    "Flags are read from ~/.config/eyrie.json and from variables such as EYRIE_MODEL",
    "too: eyrie help environment",
    "",
  ].join("\n");
}

function topicLines(): string[] {
  const [first = "", ...rest] = fill(TOPIC_NAMES.join(", "), 24);
  const page = `${" ".repeat(24)}(the whole page: eyrie help TOPIC all)`;
  return [`  eyrie help TOPIC      ${first.trimStart()}`, ...rest, page];
}

/**
 * The text of `eyrie COMMAND --help`: two examples, then per flag its type, range and default.
 *
 * @param all also the flags that are not common; where a command has few they are always there.
 */
export function commandHelp(name: CommandName, { all }: { readonly all: boolean }): string {
  const { summary, alias, usage, operands = [], groups } = COMMANDS[name];
  const lines = [...fill(`eyrie ${name} - ${summary}`, 0), "", ...exampleLines(EXAMPLES[name])];
  lines.push("", `Usage: ${usage}`);
  if (alias !== undefined) lines.push(`       eyrie ${alias} means the same`);
  if (operands.length > 0) lines.push("");
  for (const operand of operands) lines.push(`  ${operand.name}`, ...fill(operand.help, 6));
  const count = Object.keys(flagsOf(name)).length;
  const short = !all && count > FEW_FLAGS;
  let shown = 0;
  for (const [title, table] of Object.entries(groups)) {
    const flags = Object.values(table).filter(({ common }) => !short || common);
    shown += flags.length;
    if (flags.length > 0) lines.push("", `${title}:`, ...flags.flatMap(flagHelp));
  }
  if (short) lines.push("", `These are ${shown} of ${count} flags; all: eyrie ${name} --help all`);
  const spellings = all && aliasesOf(name, flagsOf(name)).size > 0;
  if (spellings) lines.push("", "Other spellings, SGLang's among them: eyrie help environment all");
  return [...lines, ""].join("\n");
}

function exampleLines(examples: readonly string[]): string[] {
  return ["Examples:", ...examples.map((example) => `  ${example}`)];
}

function flagHelp(flag: Flag): string[] {
  const names = spellingsOf(flag).join(", ");
  return [
    `  ${names} ${placeholder(flag)}`.trimEnd(),
    ...fill(flag.help, 6),
    ...fill(facts(flag).join("; "), 6),
  ];
}

function facts(flag: Flag): string[] {
  const { example: use } = flag;
  const example = use === undefined ? [] : [`example: ${use}`.replaceAll(" ", UNBROKEN)];
  if (flag.type === "switch") return example;
  const fallback = "default" in flag ? `default ${flag.default}` : `default: ${flag.absent}`;
  // Its placeholder has the choices.
  const range = flag.type === "choice" ? [] : [allowed(flag)];
  return [...range, fallback, ...example];
}

/** Words in lines of at most `WIDTH` columns, `indent` of them blank; a longer word has its own. */
function fill(text: string, indent: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(" ").filter(Boolean)) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= WIDTH) {
      lines[lines.length - 1] = `${last} ${word}`;
    } else lines.push(" ".repeat(indent) + word);
  }
  return lines.map((line) => line.replaceAll(UNBROKEN, " "));
}
