import { createInterface } from "node:readline";
import process from "node:process";
import { openGpu } from "../src/gpu/device.ts";
import { attentionCases } from "./cases/attention.ts";
import { latentCases } from "./cases/latent.ts";
import { latentLayerCases } from "./cases/latent_layer.ts";
import { matmulCases } from "./cases/matmul.ts";
import { mixtureCases } from "./cases/mixture.ts";
import { mixtureLayerCases } from "./cases/mixture_layer.ts";
import { adjustCases } from "./cases/adjust.ts";
import { draftHeadCases } from "./cases/draft_head.ts";
import { roundEndCases } from "./cases/round_end.ts";
import { layerCases } from "./cases/layer.ts";
import { recurrentCases } from "./cases/recurrent.ts";
import { rowCases } from "./cases/rows.ts";
import { type OpenCase, openCase } from "./measure.ts";

/** What a server says first. */
export interface ServerInfo {
  readonly device: string;
  /** Names of the cases. */
  readonly cases: readonly string[];
}

/**
 * Measures the kernels of this checkout on request. It first writes a `ServerInfo` line. Then each line of input is
 * the name of a case, which is answered by a `Measured` line. The last case stays open, so that asking for it again
 * compiles nothing. The protocol must not change, because other checkouts ask this one.
 */
export async function serve(): Promise<void> {
  using gpu = await openGpu();
  const { software, adapter, backend } = gpu.info;
  const cases = [
    ...matmulCases(software),
    ...mixtureCases(software),
    ...attentionCases(software),
    ...latentCases(software),
    ...draftHeadCases(software),
    ...roundEndCases(software),
    ...rowCases(software),
    ...recurrentCases(software),
    ...layerCases(software),
    ...mixtureLayerCases(software),
    ...latentLayerCases(software),
    ...adjustCases(),
  ];
  const names = cases.map(({ name }) => name);
  const info: ServerInfo = { device: `${adapter}, ${backend}`, cases: names };
  say(JSON.stringify(info));
  let open: { readonly name: string; readonly made: OpenCase } | undefined;
  for await (const name of createInterface({ input: process.stdin })) {
    if (open?.name !== name) {
      open?.made[Symbol.dispose]();
      const one = cases.find((one) => one.name === name);
      if (one === undefined) throw new Error(`no case ${name}`);
      open = { name, made: await openCase(gpu, one) };
    }
    say(JSON.stringify(await open.made.measure()));
  }
  open?.made[Symbol.dispose]();
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
