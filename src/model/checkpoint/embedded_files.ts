/**
 * The files of the embedded model. A bundle replaces this module, through an import map, by a
 * generated one with the same export that holds the bytes itself.
 */

/**
 * Bytes of a file under models/fledgling (`target/config.json`), undefined when absent.
 * Found from this module, so that a clone works from any directory.
 */
export function embeddedFile(path: string): Uint8Array | undefined {
  try {
    return Deno.readFileSync(new URL(`../../../models/fledgling/${path}`, import.meta.url));
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}
