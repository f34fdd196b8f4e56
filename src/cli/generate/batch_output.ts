import { UsageError } from "../../errors.ts";
import { removeIfThere, sizeOf } from "../../hub/cache.ts";
import type { Io } from "../terminal/io.ts";
import { refuseInput, writing } from "../terminal/output_file.ts";

/** Writes the lines of a batch one by one: lines that were written are kept, whatever ends the batch. */
export interface BatchOutput extends Disposable {
  write(line: Readonly<Record<string, unknown>>): void;
}

/**
 * Opens standard output or a file. A new file is removed again if nothing was written to it.
 *
 * @param of.force a file that is not empty is emptied before the first line is written.
 * @param of.from the file of the prompts, or "-".
 * @throws UsageError where the file cannot be made, or is there and not empty; `write` OutputError where the disk is
 * full.
 */
export function openOutput(
  path: string | undefined,
  { io, force, from }: { readonly io: Io; readonly force: boolean; readonly from: string },
): BatchOutput {
  if (path === undefined) {
    return {
      write: (line) => io.stdout.write(`${JSON.stringify(line)}\n`),
      [Symbol.dispose]: () => {},
    };
  }
  const size = sizeOf(path);
  if (size !== undefined && size > 0 && !force) {
    throw new UsageError(
      `Cannot write "${path}": the file exists already; name another one or give --force to replace it`,
    );
  }
  if (from !== "-") refuseInput(path, [from]);
  const file = writing(path, () => Deno.openSync(path, { write: true, create: true }));
  let written = false;
  return {
    write(line) {
      let bytes = new TextEncoder().encode(`${JSON.stringify(line)}\n`);
      writing(path, () => {
        if (!written && force && size !== undefined) file.truncateSync();
        written = true;
        while (bytes.length > 0) bytes = bytes.subarray(file.writeSync(bytes));
      });
    },
    [Symbol.dispose]() {
      file.close();
      if (size === undefined && !written) removeIfThere(path);
    },
  };
}
