import assert from "node:assert/strict";
import { main } from "../../main.ts";
import { fakeIo } from "../cli/fake.ts";
import type { Json } from "./server.ts";

const answered = new Map<string, Promise<Json[]>>();

/** The answers of `eyrie generate --batch` to these lines, in their order. */
export function generated(lines: readonly unknown[]): Promise<Json[]> {
  const stdin = lines.map((line, id) => JSON.stringify({ id, ...line as object })).join("\n");
  return answered.getOrInsertComputed(stdin, answersOf);
}

async function answersOf(stdin: string): Promise<Json[]> {
  const io = fakeIo({ stdin });
  const code = await main(["generate", "--batch", "-", "--num-steps", "3", "--quiet"], io);
  assert.equal(code, 0, io.err());
  const answers: Json[] = io.out().trim().split("\n").map((line) => JSON.parse(line));
  return answers.toSorted((a, b) => a.id - b.id);
}

/** The answer of `eyrie generate --json` to a prompt, which is greedy if no temperature is given. */
export async function generatedAlone(prompt: string, ...flags: readonly string[]): Promise<Json> {
  const io = fakeIo({ stdin: "" });
  const sampled = flags.includes("--temperature") ? [] : ["--temperature", "0"];
  const own = ["--json", "--num-steps", "3", "--quiet", ...sampled];
  const code = await main(["generate", ...own, ...flags, prompt], io);
  assert.equal(code, 0, io.err());
  return JSON.parse(io.out());
}
