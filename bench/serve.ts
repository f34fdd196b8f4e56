import { createInterface } from "node:readline";
import process from "node:process";
import { openGpu } from "../src/gpu/device.ts";
import { attentionCases } from "./cases/attention.ts";
import { matmulCases } from "./cases/matmul.ts";
import { rowCases } from "./cases/rows.ts";
import { type OpenCase, openCase } from "./measure.ts";

/** What a server says of a case. */
export interface CaseInfo {
  readonly name: string;
  readonly bytes: number;
  readonly flops: number;
}

/** What a server says first. */
export interface ServerInfo {
  readonly device: string;
  readonly software: boolean;
  readonly cases: readonly CaseInfo[];
}

/**
 * Measures the kernels of this checkout on request. First a `ServerInfo` line is written; then each
 * line of input is a case's name, answered by a line with its microseconds. The last case stays
 * open, so that asking again costs no compilation. Other checkouts ask this one: keep the protocol.
 */
export async function serve(): Promise<void> {
  using gpu = await openGpu();
  const { software, adapter, backend } = gpu.info;
  const cases = [...matmulCases(software), ...attentionCases(software), ...rowCases(software)];
  const infos = cases.map(({ name, bytes, flops }) => ({ name, bytes, flops }));
  const info: ServerInfo = { device: `${adapter}, ${backend}`, software, cases: infos };
  say(JSON.stringify(info));
  let open: { readonly name: string; readonly made: OpenCase } | undefined;
  for await (const name of createInterface({ input: process.stdin })) {
    if (open?.name !== name) {
      open?.made[Symbol.dispose]();
      const one = cases.find((one) => one.name === name);
      if (one === undefined) throw new Error(`no case ${name}`);
      open = { name, made: await openCase(gpu, one) };
    }
    say(String(await open.made.measure()));
  }
  open?.made[Symbol.dispose]();
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
