/** Compiles kernels in order; with a folder of NVIDIA's shader cache as argument tells the bytes of their code. */
import { zstdDecompressSync } from "node:zlib";
import { openGpu } from "../../src/gpu/device.ts";
import { compiler } from "../../src/gpu/program.ts";
import { openAllocations } from "../allocations.ts";
import { latentLayers, latentSizes } from "../cases/latent_layer.ts";
const [dir] = Deno.args;
if (!dir) {
  using opened = await openGpu();
  const gpu: typeof opened = { ...opened, info: { ...opened.info, software: false } };
  using of0 = openAllocations(gpu);
  const of = of0;
  const { compile } = compiler(gpu);
  const X = globalThis as unknown as Record<string, unknown>;
  const seen = new Set<string>();
  let at = 0;
  const made: unknown[] = [];
  const again = <T>(make: () => T): T => {
    if (at === made.length) made.push(make());
    return made[at++] as T;
  };
  const replay = {
    ...of,
    words: (v: never) => again(() => of.words(v)),
    random: (n: number) => again(() => of.random(n)),
    matrix: (r: number, c: number, f: never) =>
      again(() => {
        const m = of.matrix(2, c, f);
        return { ...m, rows: r, shards: m.shards.map((s) => ({ ...s, rows: r })) };
      }),
  };
  void replay;
  for (const format of ["bf16", "q8"] as const) {
    at = 0;
    made.length = 0;
    for (const values of [{}]) {
      at = 0;
      Object.assign(X, values);
      const plan = latentLayers(replay as never, latentSizes(false), {
        rows: 1,
        format,
        cells: 512,
      })[0]!;
      for (const key of Object.keys(values)) delete X[key];
      for (const one of plan) {
        if (seen.has(one.kernel.name)) continue;
        seen.add(one.kernel.name);
        await compile([one]);
        console.log(`${one.label.replace("layers.0.", "")} ${one.kernel.name}`);
      }
    }
  }
} else {
  const names = Deno.readTextFileSync(Deno.args[1]!).trim().split("\n");
  const sizes: string[] = [];
  const ops: string[] = [];
  for (const path of files(dir)) {
    if (!path.endsWith(".toc")) continue;
    const toc = Deno.readFileSync(path), bin = Deno.readFileSync(path.replace(/toc$/, "bin"));
    const t = new DataView(toc.buffer);
    for (let i = 0x20; i + 0x18 <= toc.length; i += 0x18) {
      const offset = t.getUint32(i + 16, true), size = t.getUint32(i + 20, true);
      let data = bin.subarray(offset + 0x24, offset + 0x20 + size);
      if (data[0] === 0x28 && data[1] === 0xb5) data = new Uint8Array(zstdDecompressSync(data));
      const text = String.fromCharCode(...data.subarray(0, 24));
      const v = new DataView(data.buffer, data.byteOffset, data.byteLength);
      const nvuc = text.indexOf("NVuc");
      if (nvuc < 0) continue;
      const n = v.getUint32(nvuc + 8, true) & 0xffff;
      const parts = Array.from(
        { length: n },
        (_, k) => [v.getUint32(nvuc + 32 + 32 * k, true), v.getUint32(nvuc + 36 + 32 * k, true)],
      );
      sizes.push(parts.filter(([k]) => k === 1).map(([, b]) => b).join("+"));
      const from = Array.from({ length: n }, (_, k) => nvuc + 32 + 32 * k).find((p) =>
        v.getUint32(p, true) === 1
      )!;
      const start = nvuc + v.getUint32(from + 8, true);
      const code = data.slice(start, start + v.getUint32(from + 4, true));
      Deno.writeFileSync("/tmp/xl.bin", code);
      const sass = new Deno.Command("/usr/local/cuda-13.0/bin/nvdisasm", {
        args: ["--binary", "SM90", "/tmp/xl.bin"],
      }).outputSync();
      const counts = new Map<string, number>();
      for (const l of new TextDecoder().decode(sass.stdout).split("\n")) {
        const op = /\/\*[0-9a-f]{4,}\*\/\s+(?:@!?U?P\d+ )?([A-Z0-9]+)/.exec(l)?.[1];
        if (op) counts.set(op, (counts.get(op) ?? 0) + 1);
      }
      ops.push(
        [...counts].toSorted((a, b) => b[1] - a[1]).slice(0, 15).map(([k, c]) => `${k} ${c}`).join(
          " ",
        ),
      );
    }
  }
  const skip = sizes.length - names.length;
  console.log(`${sizes.length} codes, ${names.length} names`);
  sizes.slice(0, skip).forEach((s) => console.log(s));
  names.forEach((n, i) => console.log(`${sizes[i + skip]} ${n.slice(0, 60)}: ${ops[i + skip]}`));
}
function* files(dir: string): Generator<string> {
  for (const e of Deno.readDirSync(dir)) {
    const path = `${dir}/${e.name}`;
    if (e.isDirectory) yield* files(path);
    else yield path;
  }
}
