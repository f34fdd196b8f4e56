/** What NVIDIA's shader cache in the folder of the first argument holds: bytes of code by pipeline, in order. */
import { zstdDecompressSync } from "node:zlib";
function* files(dir: string): Generator<string> {
  for (const e of Deno.readDirSync(dir)) {
    const path = `${dir}/${e.name}`;
    if (e.isDirectory) yield* files(path);
    else yield path;
  }
}
const dir = Deno.args[0]!;
for (const path of files(dir)) {
  if (!path.endsWith(".toc")) continue;
  const toc = Deno.readFileSync(path);
  const bin = Deno.readFileSync(path.replace(/toc$/, "bin"));
  const t = new DataView(toc.buffer), b = new DataView(bin.buffer);
  for (let at = 0x20, i = 0; at + 0x18 <= toc.length; at += 0x18, i++) {
    const offset = t.getUint32(at + 16, true), size = t.getUint32(at + 20, true);
    const unpacked = b.getUint32(offset + 0x20, true);
    let data = bin.subarray(offset + 0x24, offset + 0x20 + size);
    let how = "raw";
    try {
      if (data[0] === 0x28 && data[1] === 0xb5) {
        data = new Uint8Array(zstdDecompressSync(data));
        how = "zstd";
      }
    } catch (e) {
      how = `bad zstd ${e}`;
    }
    Deno.mkdirSync(`${dir}/objs`, { recursive: true });
    Deno.writeFileSync(`${dir}/objs/${i}.bin`, data);
    const code = codeOf(data);
    if (!code) continue;
    const path1 = `${dir}/objs/${i}.bin`;
    Deno.writeFileSync(path1, code);
    const sass = new Deno.Command("/usr/local/cuda-13.0/bin/nvdisasm", {
      args: ["--binary", "SM90", path1],
    }).outputSync();
    const lines = new TextDecoder().decode(sass.stdout).split("\n");
    const ops = lines.flatMap((l) =>
      /\/\*[0-9a-f]{4,}\*\/\s+(?:@!?U?P\d+ )?([A-Z0-9]+)(\.\S*)?/.exec(l)?.slice(1, 2) ?? []
    );
    const wide = lines.flatMap((l) =>
      /\/\*[0-9a-f]{4,}\*\/\s+(?:@!?U?P\d+ )?([A-Z0-9]+\S*)/.exec(l)?.[1] ?? []
    );
    const shown = new Set([
      "LDG",
      "STG",
      "LDS",
      "STS",
      "BAR",
      "BRA",
      "MUFU",
      "EXIT",
      "BSSY",
      "BSYNC",
      "LDC",
      "ULDC",
      "ATOMG",
      "RED",
      "SHFL",
      "CALL",
      "WARPSYNC",
      "LD",
      "ST",
      "CCTL",
      "MEMBAR",
      "ERRBAR",
    ]);
    const runs: [string, number][] = [];
    for (const op of ops) {
      const name = shown.has(op) ? op : op === "FFMA" ? "f" : op === "FADD" ? "a" : "";
      const last = runs.at(-1);
      if (last && last[0] === name) last[1]++;
      else runs.push([name, 1]);
    }
    const short: Record<string, string> = {
      LDG: "G",
      STG: "SG",
      LDS: "L",
      STS: "SL",
      BAR: "|",
      BRA: "b",
      BSSY: "{",
      BSYNC: "}",
      MUFU: "M",
      EXIT: "X",
      LDC: "c",
      ULDC: "u",
    };
    // Little runs of the rest are joined with what follows.
    console.log(
      `#${i} ${code.length} bytes, ${ops.length} instr: ${
        count(
          wide.map((o) =>
            o.split(".").slice(0, o.startsWith("LDG") || o.startsWith("LDS") ? 9 : 1).join(".")
          ),
        )
      }`,
    );
    console.log(runs.map(([n, c]) => `${short[n] ?? n}${n === "" || c > 1 ? c : ""}`).join(" "));
  }
}
function count(all: string[]): string {
  const n = new Map<string, number>();
  for (const a of all) n.set(a, (n.get(a) ?? 0) + 1);
  return [...n].toSorted((a, b) => b[1] - a[1]).slice(0, 16).map(([k, c]) => `${k} ${c}`).join(
    ", ",
  );
}
function codeOf(data: Uint8Array): Uint8Array | undefined {
  const text = Array.from({ length: 24 }, (_, i) => String.fromCharCode(data[i] ?? 0)).join("");
  const v = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const nvuc = text.indexOf("NVuc");
  if (nvuc < 0) return undefined;
  const n = v.getUint32(nvuc + 8, true) & 0xffff;
  for (let i = 0; i < n; i++) {
    const at = nvuc + 32 + 32 * i;
    if (v.getUint32(at, true) !== 1) continue;
    const size = v.getUint32(at + 4, true), from = nvuc + v.getUint32(at + 8, true);
    return data.slice(from, from + size);
  }
  return undefined;
}
function sections(data: Uint8Array): string {
  const text = Array.from({ length: 24 }, (_, i) => String.fromCharCode(data[i] ?? 0)).join("");
  const v0 = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const nvuc = text.indexOf("NVuc");
  const out: string[] = [];
  if (nvuc >= 0) {
    const n = v0.getUint32(nvuc + 8, true) & 0xffff;
    for (let i = 0; i < n; i++) {
      const at = nvuc + 32 + 32 * i;
      out.push(`${v0.getUint32(at, true).toString(16)}:${v0.getUint32(at + 4, true)}`);
    }
    return out.join(" ");
  }
  const elf = text.indexOf("ELF") - 1;
  if (elf < 0) return "";
  const v = new DataView(data.buffer, data.byteOffset + elf, data.byteLength - elf);
  const shoff = Number(v.getBigUint64(0x28, true)),
    each = v.getUint16(0x3a, true),
    n = v.getUint16(0x3c, true),
    str = v.getUint16(0x3e, true);
  const strs = Number(v.getBigUint64(shoff + str * each + 0x18, true));
  for (let i = 0; i < n; i++) {
    const at = shoff + i * each;
    let name = "";
    for (let c = elf + strs + v.getUint32(at, true); data[c]; c++) {
      name += String.fromCharCode(data[c]!);
    }
    const size = Number(v.getBigUint64(at + 0x20, true));
    if (size > 400) out.push(`${name}:${size}`);
  }
  return out.join(" ");
}
