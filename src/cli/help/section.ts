/**
 * A part of a Markdown page: below a heading up to the next one of its level or above; without one
 * what is before the first heading of the second level. Its own heading is left out.
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
