/** Errors of batch lines. They may quote anything of a line, so long values and long errors are cut. */

/** Characters of a value that an error repeats. */
const LONGEST_VALUE = 200;
/** Characters of a whole error whose value has quotes in it. */
const LONGEST_ERROR = 1000;

/** A value of a line as an error repeats it. */
export function shortened(value: string): string {
  return value.length <= LONGEST_VALUE ? value : `${value.slice(0, LONGEST_VALUE)}…`;
}

/** Cuts each quoted value. If quotes within a value hide where it ends, the error's middle is cut out instead. */
export function shortError(message: string): string {
  const cut = message.replace(/"([^"]*)"/g, (_, value: string) => `"${shortened(value)}"`);
  if (cut.length <= LONGEST_ERROR) return cut;
  return `${cut.slice(0, LONGEST_ERROR - LONGEST_VALUE)} … ${cut.slice(-LONGEST_VALUE)}`;
}
