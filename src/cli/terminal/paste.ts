/** What a newline inside a paste looks like in the line editor, which knows one line only. */
export const NEWLINE_SIGN = "\u240A";
/** And a tab, which is the key that completes. */
const TAB_SIGN = "\u2409";
/** A newline sign that was itself pasted must not become a newline. */
const OTHER_SIGN = "\u2424";

const BEGIN = "\x1b[200~";
const END = "\x1b[201~";

/** Makes a terminal mark pastes with `BEGIN` and `END`. */
export const PASTE_ON = "\x1b[?2004h";
export const PASTE_OFF = "\x1b[?2004l";

/**
 * A filter for keyboard input: takes the marks away and turns newlines inside a paste into
 * `NEWLINE_SIGN`, so that a paste never submits, and tabs into a sign too. Other control characters of a paste are
 * dropped: pasted text is text, not keys. Marks may be split over chunks.
 */
export function pasteFilter(): (chunk: string) => string {
  let pasting = false;
  let held = "";
  return (chunk) => {
    let rest = held + chunk;
    let out = "";
    while (rest !== "") {
      const mark = pasting ? END : BEGIN;
      const at = rest.indexOf(mark);
      if (at < 0) break;
      out += pasting ? markNewlines(rest.slice(0, at)) : rest.slice(0, at);
      rest = rest.slice(at + mark.length);
      pasting = !pasting;
    }
    const keep = markBegun(rest, pasting ? END : BEGIN) || (pasting && rest.endsWith("\r") ? 1 : 0);
    held = rest.slice(rest.length - keep);
    rest = rest.slice(0, rest.length - keep);
    return out + (pasting ? markNewlines(rest) : rest);
  };
}

/** The message that an edited line stands for. */
export function unmarkNewlines(line: string): string {
  return line.replaceAll(NEWLINE_SIGN, "\n").replaceAll(TAB_SIGN, "\t");
}

/** The editor's form of a message, as its history keeps it. */
export function markNewlines(text: string): string {
  return text
    .replaceAll(NEWLINE_SIGN, OTHER_SIGN)
    .replace(/\r\n?|\n/g, NEWLINE_SIGN)
    .replaceAll("\t", TAB_SIGN)
    // deno-lint-ignore no-control-regex
    .replace(/[\x00-\x08\x0b-\x1f\x7f]/g, "");
}

/**
 * Length of the beginning of `mark` that `text` ends with. A lone ESC is not held back outside a
 * paste: it may be the Escape key, and what follows a real mark's ESC comes in the same read.
 */
function markBegun(text: string, mark: string): number {
  const least = mark === END ? 1 : 2;
  for (let length = Math.min(mark.length - 1, text.length); length >= least; length--) {
    if (text.endsWith(mark.slice(0, length))) return length;
  }
  return 0;
}
