import { dirname } from "node:path";
import { replaceFile } from "../../engine/tune/replace_file.ts";
import { reason, UsageError } from "../../errors.ts";

/** A file that a flag names for a result. */
export interface OutputFile {
  readonly path: string;
  /** Replaces the file's content atomically: a reader finds the old text or the new one. @throws UsageError */
  write(text: string): void;
}

/**
 * Checks before hours of work that a result can be written: a file can be created in the folder, and no
 * existing content would be lost. Devices and pipes are written to directly.
 *
 * @param of.force a file that is not empty is replaced, too.
 * @throws UsageError
 */
export function outputFile(path: string, { force }: { readonly force: boolean }): OutputFile {
  const there = writing(path, () => statOf(path));
  if (there?.isDirectory) throw cannotWrite(path, "it is a folder");
  if (there !== undefined && !there.isFile) {
    return { path, write: (text) => writing(path, () => Deno.writeTextFileSync(path, text)) };
  }
  if (there !== undefined && there.size > 0 && !force) {
    throw cannotWrite(
      path,
      "the file exists already; name another one or give --force to replace it",
    );
  }
  // A link is kept: the file that it points to is replaced.
  const target = writing(path, () => there === undefined ? path : Deno.realPathSync(path));
  writing(path, () => {
    Deno.removeSync(Deno.makeTempFileSync({ dir: dirname(target), prefix: ".eyrie-" }));
  });
  return { path, write: (text) => writing(path, () => replaceFile(target, text)) };
}

/** The same for an optional flag. @throws UsageError */
export function optionalOutput(
  path: string | undefined,
  options: { readonly force: boolean },
): OutputFile | undefined {
  return path === undefined ? undefined : outputFile(path, options);
}

function statOf(path: string): Deno.FileInfo | undefined {
  try {
    return Deno.statSync(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}

function writing<T>(path: string, write: () => T): T {
  try {
    return write();
  } catch (error) {
    throw cannotWrite(path, reason(error), error);
  }
}

function cannotWrite(path: string, why: string, cause?: unknown): UsageError {
  return new UsageError(`Cannot write "${path}": ${why}`, { cause });
}
