/**
 * A section of a Markdown page, without its heading: it ends at the next heading of the same or a higher
 * level. Without `heading` it is the text before the first heading below the first level.
 *
 * @throws Error where the page has no such heading: pages and topics are written together.
 */
export function sectionOf(page: string, heading?: string): string {
  const lines = page.split("\n");
  const marks = headingsOf(lines);
  if (heading === undefined) {
    const end = marks.find(({ level }) => level > 1)?.at;
    return lines.slice((marks[0]?.at ?? -1) + 1, end).join("\n").trim();
  }
  const begin = marks.find(({ text }) => text === heading);
  if (begin === undefined) throw new Error(`no heading "${heading}"`);
  const end = marks.find(({ at, level }) => at > begin.at && level <= begin.level)?.at;
  return lines.slice(begin.at + 1, end).join("\n").trim();
}

interface Heading {
  readonly at: number;
  readonly level: number;
  readonly text: string;
}

/** A line of code may begin with a mark too. */
function headingsOf(lines: readonly string[]): Heading[] {
  let code = false;
  return lines.flatMap((line, at) => {
    if (line.startsWith("```")) code = !code;
    const [, marks = "", text = ""] = /^(#+) (.*)$/.exec(line) ?? [];
    return code || marks === "" ? [] : [{ at, level: marks.length, text }];
  });
}
