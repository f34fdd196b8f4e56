import type { CommandName, Operand } from "../options/command.ts";
import { type Flag, placeholder, spellingsOf } from "../options/flag.ts";
import { TOPICS } from "../help/topics.ts";
import { COMMANDS, flagsOf } from "../options/commands.ts";
import type { Shell } from "../options/parse.ts";
import { bashScript } from "./bash.ts";
import type { CompletedCommand, CompletedFlag, Values } from "./completed.ts";
import { fishScript } from "./fish.ts";
import { zshScript } from "./zsh.ts";

/** The script that completes `eyrie` in a shell, made from the table of options. */
export function completionScript(shell: Shell): string {
  const commands = (Object.keys(COMMANDS) as CommandName[]).map(completed);
  return { bash: bashScript, zsh: zshScript, fish: fishScript }[shell](commands, TOPICS);
}

function completed(name: CommandName): CompletedCommand {
  const { summary, alias, operands = [] } = COMMANDS[name];
  return {
    names: alias === undefined ? [name] : [name, alias],
    help: summary,
    flags: [...Object.values(flagsOf(name)).map(completedFlag), HELP],
    longer: Object.keys(COMMANDS).filter((other) => other.startsWith(`${name} `))
      .map((other) => other.slice(name.length + 1)),
    operands: operands.map((operand) => ({ name: operand.name, values: operandValues(operand) })),
  };
}

const HELP: CompletedFlag = {
  spellings: ["-h", "--help"],
  help: "the flags of this command",
  value: "",
  values: "unknown",
  repeated: false,
  list: false,
};

function completedFlag(flag: Flag): CompletedFlag {
  return {
    spellings: spellingsOf(flag),
    help: flag.help,
    value: placeholder(flag),
    values: flagValues(flag),
    repeated: flag.type === "list",
    list: flag.type === "names",
  };
}

function flagValues(flag: Flag): Values {
  if (flag.type === "choice") return flag.choices;
  if ("words" in flag && flag.words !== undefined) return flag.words;
  return flag.type === "model" ? "folders" : flag.type === "file" ? "files" : "unknown";
}

function operandValues({ choices, folder }: Operand): Values {
  return choices ?? (folder ? "folders" : "unknown");
}
