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
  console.log(path.slice(dir.length), Deno.statSync(path).size);
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
      if (data[0] === 0x28 && data[1] === 0xb5) { data = new Uint8Array(zstdDecompressSync(data)); how = "zstd"; }
    } catch (e) { how = `bad zstd ${e}`; }
    Deno.mkdirSync(`${dir}/objs`, { recursive: true });
    Deno.writeFileSync(`${dir}/objs/${i}.bin`, data);
    const head = String.fromCharCode(...data.subarray(0, 16)).replace(/[^ -~]/g, ".");
    console.log(i, how, `packed ${size} unpacked ${unpacked} of ${data.length}: ${head} ${sections(data)}`);
  }
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
  const shoff = Number(v.getBigUint64(0x28, true)), each = v.getUint16(0x3a, true), n = v.getUint16(0x3c, true), str = v.getUint16(0x3e, true);
  const strs = Number(v.getBigUint64(shoff + str * each + 0x18, true));
  for (let i = 0; i < n; i++) {
    const at = shoff + i * each;
    let name = "";
    for (let c = elf + strs + v.getUint32(at, true); data[c]; c++) name += String.fromCharCode(data[c]!);
    const size = Number(v.getBigUint64(at + 0x20, true));
    if (size > 400) out.push(`${name}:${size}`);
  }
  return out.join(" ");
}
