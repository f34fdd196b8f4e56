import type { CompletedCommand, CompletedTopics, Values } from "./completed.ts";

/** For bash 3.2 and later: macOS has no newer one. */
export function bashScript(
  commands: readonly CompletedCommand[],
  topics: CompletedTopics,
): string {
  const names = commands.flatMap(({ names }) => names).filter((name) => !name.includes(" "))
    .join(" ");
  const longer = commands.flatMap(({ names: [name = ""], longer }) =>
    longer.map((word) => `'${name} ${word}'`)
  );
  return `# bash completion of eyrie, from: eyrie completion bash
_eyrie() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]}
  COMPREPLY=()
  # bash takes --flag=value for three words.
  if [[ $cur == = ]]; then cur=; elif [[ $prev == = ]]; then prev=\${COMP_WORDS[COMP_CWORD-2]}; fi
  if ((COMP_CWORD == 1)); then
    _eyrie_words '${names} help --help --version'
    return
  fi
  local command=\${COMP_WORDS[1]}
  if ((COMP_CWORD > 2)); then
    case "$command \${COMP_WORDS[2]}" in
      ${longer.join("|")}) command+=" \${COMP_WORDS[2]}" ;;
    esac
  fi
  case $command in
${commands.map(commandCase).join("\n")}
    help) _eyrie_words '${names} ${Object.keys(topics).join(" ")}' ;;
  esac
}
_eyrie_words() {
  COMPREPLY=($(compgen -W "$1" -- "$cur"))
}
# The last word of a list with commas.
_eyrie_list() {
  local before=
  if [[ $cur == *,* ]]; then before=\${cur%,*},; fi
  COMPREPLY=($(compgen -P "$before" -W "$1" -- "\${cur##*,}"))
}
_eyrie_paths() {
  local IFS=$'\\n'
  compopt -o filenames 2> /dev/null
  COMPREPLY=($(compgen "$1" -- "$cur"))
}
complete -F _eyrie eyrie
`;
}

function commandCase({ names, flags, longer, operands }: CompletedCommand): string {
  const [first = longer.length > 0 ? longer : "unknown"] = operands.map(({ values }) => values);
  const valued = flags.filter(({ value }) => value !== "");
  const cases = [...Map.groupBy(valued, ({ values, list }) => offer(values, { list }))].map((
    [call, flags],
  ) => `        ${flags.flatMap(({ spellings }) => spellings).join("|")}) ${call}; return ;;`);
  const spellings = flags.flatMap(({ spellings }) => spellings).join(" ");
  return [
    `    ${names.map((name) => name.includes(" ") ? `'${name}'` : name).join("|")})`,
    ...cases.length === 0 ? [] : ["      case $prev in", ...cases, "      esac"],
    `      if [[ $cur == -* ]]; then _eyrie_words '${spellings}'`,
    `      else ${offer(first)}`,
    "      fi ;;",
  ].join("\n");
}

/** The call that fills in. */
function offer(values: Values, { list = false }: { readonly list?: boolean } = {}): string {
  if (values === "unknown") return ":";
  if (values === "folders") return "_eyrie_paths -d";
  if (values === "files") return "_eyrie_paths -f";
  return `_eyrie_${list ? "list" : "words"} '${values.join(" ")}'`;
}
