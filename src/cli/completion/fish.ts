import type { CompletedCommand, CompletedFlag, CompletedTopics, Values } from "./completed.ts";

export function fishScript(
  commands: readonly CompletedCommand[],
  topics: CompletedTopics,
): string {
  const names = commands.flatMap(({ names, help }) =>
    names.map((name) => {
      const [first, second] = name.split(" ");
      const where = second === undefined
        ? "__fish_use_subcommand"
        : `'${seen([first ?? ""])}; and not ${seen([second])}'`;
      return `complete -c eyrie -n ${where} -a ${second ?? name} -d ${quoted(help)}`;
    })
  );
  return [
    "# fish completion of eyrie, from: eyrie completion fish",
    LIST,
    "complete -c eyrie -f",
    ...names,
    ...commands.flatMap(commandLines),
    ...helpLines(commands, topics),
    "",
  ].join("\n");
}

/** Words that continue a list with commas, after those that it has; fish itself puts `--flag=` before them. */
const LIST = `function __eyrie_list
  set -l before (commandline -ct | string replace -r '^-[^=]*=' '' | string replace -r '[^,]*$' '')
  printf '%s\\n' $before$argv
end`;

/** `eyrie help`, and what may follow it. */
function helpLines(commands: readonly CompletedCommand[], topics: CompletedTopics): string[] {
  const helped = commands.flatMap(({ names: [name = ""], help }) =>
    name.includes(" ") ? [] : [[name, help] as const]
  );
  return [
    "complete -c eyrie -n __fish_use_subcommand -a help -d 'a command, or a topic'",
    ...[...helped, ...Object.entries(topics)].map(([name, help]) =>
      `complete -c eyrie -n '${seen(["help"])}' -a ${name} -d ${quoted(help)}`
    ),
  ];
}

/** Whether one of these words stands on the line. */
function seen(words: readonly string[]): string {
  return `__fish_seen_subcommand_from ${words.join(" ")}`;
}

function commandLines({ names, flags, longer, operands }: CompletedCommand): string[] {
  const [first = "", second] = (names[0] ?? "").split(" ");
  const where = [
    seen(second === undefined ? names : [first]),
    ...second === undefined ? [] : [`and ${seen([second])}`],
    ...longer.length === 0 ? [] : [`and not ${seen(longer)}`],
  ];
  const start = `complete -c eyrie -n '${where.join("; ")}'`;
  const offered = operands.slice(0, 1).map(({ values }) => offer(values)).filter(Boolean);
  return [
    ...flags.map((flag) => `${start} ${flagArguments(flag)}`),
    ...offered.map((each) => `${start} ${each}`),
  ];
}

function flagArguments({ spellings, help, value, values, list }: CompletedFlag): string {
  const names = spellings.map((spelling) =>
    spelling.startsWith("--") ? `-l ${spelling.slice(2)}` : `-s ${spelling.slice(1)}`
  );
  // A value, and no files in addition to what is offered.
  const takes = values === "files" ? "-r" : "-x";
  const offered = value === "" ? [] : [takes, offer(values, { list })].filter(Boolean);
  return [...names, ...offered, `-d ${quoted(help)}`].join(" ");
}

function offer(values: Values, { list = false }: { readonly list?: boolean } = {}): string {
  if (values === "unknown") return "";
  if (values === "folders") return "-a '(__fish_complete_directories)'";
  if (values === "files") return "-F";
  const words = values.join(" ");
  return `-a ${quoted(list ? `(__eyrie_list ${words})` : words)}`;
}

function quoted(text: string): string {
  return `'${text.replaceAll(/['\\]/g, "\\$&")}'`;
}
