/** Errors of batch lines, which may hold whatever a line holds: a value is cut, and so is the whole. */

/** Characters of a value that an error repeats. */
const LONGEST_VALUE = 200;
/** Characters of a whole error whose value has quotes in it. */
const LONGEST_ERROR = 1000;

/** A value of a line as an error repeats it. */
export function shortened(value: string): string {
  return value.length <= LONGEST_VALUE ? value : `${value.slice(0, LONGEST_VALUE)}…`;
}

/** An error with each quoted value cut; where quotes within a value hide its ends, the middle of the whole. */
export function shortError(message: string): string {
  const cut = message.replace(/"([^"]*)"/g, (_, value: string) => `"${shortened(value)}"`);
  if (cut.length <= LONGEST_ERROR) return cut;
  return `${cut.slice(0, LONGEST_ERROR - LONGEST_VALUE)} … ${cut.slice(-LONGEST_VALUE)}`;
}
