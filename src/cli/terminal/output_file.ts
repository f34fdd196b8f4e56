import { basename, dirname, join, resolve } from "node:path";
import { replaceFile } from "../../engine/tune/replace_file.ts";
import { reason, UsageError } from "../../errors.ts";
import { OutputError } from "./io.ts";

/** A file that a flag names for a result. */
export interface OutputFile {
  readonly path: string;
  /**
   * Replaces the file's content atomically: a reader finds the old one or the new one.
   *
   * @throws UsageError, OutputError
   */
  write(content: string | Uint8Array): void;
}

/**
 * Checks before hours of work that a result can be written: a file can be created in the folder, and no
 * existing content would be lost. Devices and pipes are written to directly.
 *
 * @param of.force a file that is not empty is replaced, too.
 * @param of.from files that are read, none of which is replaced.
 * @throws UsageError
 */
export function outputFile(
  path: string,
  { force, from = [] }: { readonly force: boolean; readonly from?: readonly string[] },
): OutputFile {
  const there = writing(path, () => statOf(path));
  if (there?.isDirectory) throw cannotWrite(path, "it is a folder");
  if (there !== undefined && !there.isFile) {
    return {
      path,
      write: (content) => writing(path, () => Deno.writeFileSync(path, bytesOf(content))),
    };
  }
  if (there !== undefined && there.size > 0 && !force) {
    throw cannotWrite(
      path,
      "the file exists already; name another one or give --force to replace it",
    );
  }
  refuseInput(path, from);
  // A link is kept: the file that it points to is replaced.
  const target = writing(path, () => there === undefined ? path : Deno.realPathSync(path));
  writing(path, () => {
    Deno.removeSync(Deno.makeTempFileSync({ dir: dirname(target), prefix: ".eyrie-" }));
  });
  return { path, write: (content) => writing(path, () => replaceFile(target, content)) };
}

/** @param from files that are read; the file to write may be none of them, under whatever name. @throws UsageError */
export function refuseInput(path: string, from: readonly string[]): void {
  const written = writing(path, () => statOf(path));
  if (!written?.isFile || written.ino === null) return;
  const read = from.find((file) => {
    try {
      const { ino, dev } = Deno.statSync(file);
      return ino === written.ino && dev === written.dev;
    } catch {
      return false; // reading it says why
    }
  });
  if (read !== undefined) throw cannotWrite(path, `"${read}", which is read, is the same file`);
}

/**
 * Do both paths name one file, whether it is there already or not? Then one result would replace the other. False
 * where a path is absent or leads to a device or a pipe, which takes both.
 */
export function isSameFile(a: string | undefined, b: string | undefined): boolean {
  if (a === undefined || b === undefined) return false;
  const place = placeOf(a);
  return place !== undefined && place === placeOf(b);
}

/** The path without links, also of a file that is not there yet; undefined for a device or a pipe. */
function placeOf(path: string): string | undefined {
  try {
    const there = statOf(path);
    if (there === undefined) return join(Deno.realPathSync(dirname(path)), basename(path));
    return there.isFile ? Deno.realPathSync(path) : undefined;
  } catch {
    return resolve(path); // opening it says why
  }
}

/** `outputFile` for an optional flag. @throws UsageError */
export function optionalOutput(
  path: string | undefined,
  options: { readonly force: boolean },
): OutputFile | undefined {
  return path === undefined ? undefined : outputFile(path, options);
}

/**
 * Writes a result into its file, if it has one, and shows it: also if the disk is full, because measuring it may have
 * taken hours.
 *
 * @throws what the file throws.
 */
export function writeAndShow(
  file: OutputFile | undefined,
  { content, show }: { readonly content: () => string; readonly show: () => void },
): void {
  try {
    file?.write(content());
  } finally {
    show();
  }
}

function bytesOf(content: string | Uint8Array): Uint8Array {
  return typeof content === "string" ? new TextEncoder().encode(content) : content;
}

function statOf(path: string): Deno.FileInfo | undefined {
  try {
    return Deno.statSync(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}

/** A full disk is no mistake in a flag: its error has the exit code of a failure. */
const FULL: readonly string[] = ["ENOSPC", "EDQUOT"];

/** Runs what writes to the file. @throws UsageError `Cannot write "PATH": ...`, OutputError where the disk is full */
export function writing<T>(path: string, write: () => T): T {
  try {
    return write();
  } catch (error) {
    const full = error instanceof Error && "code" in error && FULL.includes(String(error.code));
    if (full) throw new OutputError(`Cannot write "${path}": ${reason(error)}`, { cause: error });
    throw cannotWrite(path, reason(error), error);
  }
}

function cannotWrite(path: string, why: string, cause?: unknown): UsageError {
  return new UsageError(`Cannot write "${path}": ${why}`, { cause });
}
