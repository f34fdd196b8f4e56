import { WordWrap } from "../terminal/wrap.ts";

const WIDTH = 80;

/**
 * Markdown as plain text of 80 columns, code aside: its marks are left out, a row of a table is its
 * first cell with the others below it, pictures are dropped.
 */
export function plainText(markdown: string): string {
  return blocksOf(markdown).map(blockText).filter((text) => text !== "").join("\n\n");
}

/** Parts between empty lines; code is one of its own. */
function blocksOf(markdown: string): string[] {
  return markdown.match(/^```[^]*?^```$|^(?!```)\S[^]*?(?=\n\n|\n```|$(?![^]))/gm) ?? [];
}

function blockText(block: string): string {
  if (block.startsWith("```")) {
    return block.split("\n").slice(1, -1).map((line) => `  ${line}`.trimEnd()).join("\n");
  }
  if (block.startsWith("|")) return tableText(block);
  if (block.startsWith("#")) return `${inline(block.replace(/^#+ /, ""))}:`;
  const items = block.split(/\n(?=- )/);
  return items.map((item) => wrapped(inline(item), 0, item.startsWith("- ") ? 2 : 0)).join("\n");
}

function tableText(block: string): string {
  const [titles = [], _line, ...rows] = block.split("\n").map(cellsOf);
  return rows.map(([name = "", ...cells]) => {
    const lines = cells.map((cell, at) => {
      const title = cells.length > 1 && titles[at + 1] ? `${titles[at + 1]}: ` : "";
      return cell === "" ? "" : wrapped(title + cell, 6, 6);
    });
    return [wrapped(name, 2, 4), ...lines.filter((each) => each !== "")].join("\n");
  }).join("\n");
}

function cellsOf(row: string): string[] {
  const cells = row.replace(/^\||\|$/g, "").split(/(?<!\\)\|/);
  return cells.map((cell) => inline(cell.replaceAll("\\|", "|").trim()));
}

/** Without marks: the text of a link, and of what is bold, italic or code; no link in parentheses. */
function inline(text: string): string {
  return text.split(/(`[^`]*`)/).map((part) =>
    part.startsWith("`")
      ? part.slice(1, -1)
      : part.replaceAll(/!\[[^\]]*\]\([^)]*\)|\s*\(\[[^\]]*\]\([^)]*\)\)/g, "")
        .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
        .replaceAll(/\*\*|\b_|_\b/g, "")
  ).join("");
}

/** In lines of 80 columns, `indent` of them blank in the first and `hang` in the others. */
function wrapped(text: string, indent: number, hang: number): string {
  const wrap = new WordWrap(() => WIDTH);
  wrap.hang = hang;
  const words = text.split(/\s+/).filter(Boolean);
  wrap.space(" ".repeat(indent));
  return words.map((word, at) => {
    if (at > 0) wrap.space(" ");
    return wrap.word(word);
  }).join("");
}
