/**
 * The text without what a terminal obeys: a model, a file name or another machine may not move the
 * cursor, set the title or fill the clipboard. Line ends and tabs stay.
 */
export function visible(text: string): string {
  // deno-lint-ignore no-control-regex
  return text.replaceAll("\r", "").replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/g, "\uFFFD");
}
