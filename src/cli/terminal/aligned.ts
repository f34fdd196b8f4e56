/**
 * The lines of a table whose columns are below each other; the last one is not padded.
 *
 * @param others how the columns between the first and the last are aligned.
 */
export function aligned(
  rows: readonly (readonly string[])[],
  others: "left" | "right" = "left",
): string {
  const widthOf = (at: number) => Math.max(...rows.map((row) => row[at]?.length ?? 0));
  const widths = (rows[0] ?? []).map((_, at) => widthOf(at));
  const lines = rows.map((row) =>
    row.map((cell, at) => {
      const width = at === row.length - 1 ? 0 : widths[at] ?? 0;
      return at > 0 && others === "right" ? cell.padStart(width) : cell.padEnd(width);
    }).join("  ").trimEnd()
  );
  return lines.join("\n");
}
