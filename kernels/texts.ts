/** WGSL texts that were read; they do not change while a process runs. */
const texts = new Map<string, string>();

/**
 * The text of kernels/`path`.wgsl. A bundle replaces this module by one that holds all texts
 * (tools/embedded_module.ts).
 *
 * @returns undefined where there is no such file.
 */
export function textOf(path: string): string | undefined {
  const known = texts.get(path);
  if (known !== undefined) return known;
  try {
    const text = Deno.readTextFileSync(new URL(`./${path}.wgsl`, import.meta.url));
    texts.set(path, text);
    return text;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}
