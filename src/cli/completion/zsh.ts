import type { CompletedCommand, CompletedFlag, CompletedTopics, Values } from "./completed.ts";

/** For a file `_eyrie` in a folder of `fpath`, or to be sourced after compinit. */
export function zshScript(
  commands: readonly CompletedCommand[],
  topics: CompletedTopics,
): string {
  const described = commands.flatMap(({ names, help }) =>
    names.filter((name) => !name.includes(" ")).map((name) => `    ${quoted(`${name}:${help}`)}`)
  );
  const longer = commands.flatMap(({ names }) => names.filter((name) => name.includes(" ")));
  return `#compdef eyrie
# zsh completion of eyrie, from: eyrie completion zsh
_eyrie() {
  local -a commands=(
${described.join("\n")}
    'help:a command, or a topic'
  )
  local -a topics=(
${Object.entries(topics).map(([name, help]) => `    ${quoted(`${name}:${help}`)}`).join("\n")}
  )
  if ((CURRENT == 2)); then
    _describe command commands
    return
  fi
  local command=$words[2]
  shift words
  ((CURRENT--))
  case "$command $words[2]" in
    ${longer.map(quoted).join("|")})
      if ((CURRENT > 2)); then
        command="$command $words[2]"
        shift words
        ((CURRENT--))
      fi ;;
  esac
  case $command in
${commands.map(commandCase).join("\n")}
    help)
      _describe command commands
      _describe topic topics ;;
  esac
}
if [[ $funcstack[1] == _eyrie ]]; then _eyrie "$@"; else compdef _eyrie eyrie; fi
`;
}

function commandCase({ names, flags, longer, operands }: CompletedCommand): string {
  const specs = [
    ...flags.flatMap(flagSpecs),
    ...longer.length === 0 ? [] : [`1:COMMAND:(${longer.join(" ")})`],
    ...operands.map(({ name, values }) => `*:${name}:${action(values)}`).slice(0, 1),
  ];
  return [
    `    ${names.map((name) => name.includes(" ") ? quoted(name) : name).join("|")})`,
    `      _arguments -s \\`,
    `${specs.map((spec) => `        ${quoted(spec)}`).join(" \\\n")} ;;`,
  ].join("\n");
}

/** One for each spelling: \`(-m --model)--model=[help]:MODEL:_files -/\`. */
function flagSpecs({ spellings, help, value, values, repeated, list }: CompletedFlag): string[] {
  const others = repeated ? "*" : `(${spellings.join(" ")})`;
  return spellings.map((spelling) => {
    const attached = value === "" ? "" : spelling.startsWith("--") ? "=" : "+";
    const argument = value === "" ? "" : `:${value}:${action(values, { list })}`;
    return `${others}${spelling}${attached}[${help.replaceAll(/[[\]\\]/g, "\\$&")}]${argument}`;
  });
}

function action(values: Values, { list = false }: { readonly list?: boolean } = {}): string {
  if (values === "unknown") return " ";
  if (values === "folders") return "_files -/";
  if (values === "files") return "_files";
  // _sequence fills in the words between commas.
  return list ? `_sequence compadd - ${values.join(" ")}` : `(${values.join(" ")})`;
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
