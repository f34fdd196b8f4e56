/** `deno task checksums FOLDER`: writes FOLDER/SHA256SUMS, as `sha256sum --check` reads it. */
import { createHash } from "node:crypto";
import { UsageError } from "../../src/errors.ts";
import { operandIn, runTool, say } from "../tool.ts";

const NAME = "SHA256SUMS";

/**
 * Checksums of all files of a folder, by name: a line each of 64 hexadecimal digits and the name.
 *
 * @throws UsageError if the folder holds no files, or holds folders, whose files would be left out.
 */
export async function checksums(folder: string): Promise<string> {
  const entries = (await Array.fromAsync(Deno.readDir(folder))).filter(({ name }) => name !== NAME);
  const inner = entries.find(({ isFile }) => !isFile);
  if (inner !== undefined) {
    throw new UsageError(`Cannot sum "${folder}": "${inner.name}" is no file`);
  }
  if (entries.length === 0) throw new UsageError(`Cannot sum "${folder}": it holds no files`);
  const lines: string[] = [];
  for (const name of entries.map(({ name }) => name).toSorted()) {
    lines.push(`${await sha256(`${folder}/${name}`)}  ${name}\n`);
  }
  return lines.join("");
}

async function sha256(path: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const piece of (await Deno.open(path)).readable) hash.update(piece);
  return hash.digest("hex");
}

if (import.meta.main) {
  await runTool(async (args) => {
    const folder = operandIn(args, "checksums", "FOLDER");
    const text = await checksums(folder);
    await Deno.writeTextFile(`${folder}/${NAME}`, text);
    await say(Deno.stdout, text.trimEnd());
    return 0;
  });
}
