/**
 * Ends the program where Deno is too old for it. main.ts imports this module before any other, and
 * modules are evaluated in the order of their imports, so no newer API has been called by then. For
 * that it imports nothing, and it keeps to syntax that every Deno 2 reads.
 */

/** Oldest major and minor version that the tests have passed on. */
const OLDEST: readonly [number, number] = [2, 9];

/** Why Eyrie cannot run on a version of Deno; undefined where it can. */
export function oldDeno(version: string): string | undefined {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const [oldMajor, oldMinor] = OLDEST;
  if (major > oldMajor || major === oldMajor && minor >= oldMinor) return undefined;
  return `Cannot run on Deno ${version}: it needs ${OLDEST.join(".")} or newer; deno upgrade`;
}

const refusal = oldDeno(Deno.version.deno);
if (refusal !== undefined) {
  Deno.stderr.writeSync(new TextEncoder().encode(`eyrie: ${refusal}\n`));
  Deno.exit(1);
}
