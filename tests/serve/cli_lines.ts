import assert from "node:assert/strict";
import { main } from "../../main.ts";
import { fakeIo } from "../cli/fake.ts";
import type { Json } from "./server.ts";

/** What `eyrie generate --batch` answers to these lines, in their order. */
export async function generated(lines: readonly unknown[]): Promise<Json[]> {
  const stdin = lines.map((line, id) => JSON.stringify({ id, ...line as object })).join("\n");
  const io = fakeIo({ stdin });
  const code = await main(["generate", "--batch", "-", "--num-steps", "3", "--quiet"], io);
  assert.equal(code, 0, io.err());
  const answers: Json[] = io.out().trim().split("\n").map((line) => JSON.parse(line));
  return answers.toSorted((a, b) => a.id - b.id);
}

/** What `eyrie generate --json` answers to a prompt, greedily. */
export async function generatedAlone(prompt: string, ...flags: readonly string[]): Promise<Json> {
  const io = fakeIo({ stdin: "" });
  const greedy = ["--json", "--temperature", "0", "--num-steps", "3", "--quiet"];
  const code = await main(["generate", ...greedy, ...flags, prompt], io);
  assert.equal(code, 0, io.err());
  return JSON.parse(io.out());
}
