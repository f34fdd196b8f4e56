import assert from "node:assert/strict";
import { gpuMemory, hostMemory, type MemorySources, parseNvidia } from "../../src/gpu/memory.ts";

const MIB = 2 ** 20;
const TWO = "NVIDIA H200, 143771, 1000\nNVIDIA H200, 143771, 140000\n";

/** A Linux machine of 8 GB that knows of no card. */
function sources(known: Partial<MemorySources>): MemorySources {
  return {
    os: "linux",
    host: () => ({ total: 8e9, free: 6e9 }),
    nvidia: () => Promise.resolve(undefined),
    amd: () => [],
    ...known,
  };
}

Deno.test("memory: of several cards of one name the one with most free", async () => {
  const asked = sources({ nvidia: () => Promise.resolve(TWO) });
  const found = await gpuMemory({ adapter: "NVIDIA H200", software: false }, Infinity, asked);
  assert.deepEqual(found, { total: 143771 * MIB, free: 140000 * MIB });
});

Deno.test("memory: no process is started for what any card has", async () => {
  const asked = sources({ nvidia: () => Promise.reject(new Error("asked")) });
  assert.equal(await gpuMemory({ adapter: "NVIDIA H200", software: false }, 1e8, asked), undefined);
});

Deno.test("memory: other cards and parts of a card do not count", () => {
  const csv = "NVIDIA T400, 2048, 2000\nNVIDIA H200, [N/A], [N/A]\n\nFailed to initialize NVML\n";
  assert.deepEqual(parseNvidia(csv, "NVIDIA H200"), []);
  assert.deepEqual(parseNvidia(csv, "NVIDIA T400"), [{ total: 2048 * MIB, free: 2000 * MIB }]);
});

Deno.test("memory: a card whose name begins the adapter's is another card", () => {
  const csv = "NVIDIA GeForce RTX 4070 Ti, 12282, 3000\nNVIDIA GeForce RTX 4070, 12282, 12000\n" +
    "NVIDIA A100-SXM4-80GB, 81920, 9000\nNVIDIA A10, 23028, 23000\n";
  const free = (name: string) => parseNvidia(csv, name).map((card) => card.free / MIB);
  assert.deepEqual(free("NVIDIA GeForce RTX 4070 Ti"), [3000]);
  assert.deepEqual(free("nvidia-geforce-rtx-4070, NVIDIA: 595.71"), [12000]);
  assert.deepEqual(free("NVIDIA A100-SXM4-80GB"), [9000]);
  assert.deepEqual(free("NVIDIA A10"), [23000]);
});

Deno.test("memory: software adapters and Apple's GPUs use the system's", async () => {
  const llvmpipe = { adapter: "llvmpipe (LLVM 15.0.6, 256 bits)", software: true };
  assert.deepEqual(
    await gpuMemory(llvmpipe, 1, sources({})),
    { total: 8e9, free: 6e9, shared: true },
  );
  const apple = { adapter: "Apple M4", software: false };
  assert.equal((await gpuMemory(apple, 1, sources({ os: "darwin" })))?.total, 8e9);
});

Deno.test("memory: what a container with a limit has left, caches of files counted as free", () => {
  const machine = { total: 64e9, available: 50e9 };
  const within = (files: Readonly<Record<string, string>>, available = machine.available) =>
    hostMemory({ ...machine, available }, (file) => files[file]);
  assert.deepEqual(within({}), { total: 64e9, free: 50e9 });
  assert.deepEqual(within({ "memory.max": "max\n" }), { total: 64e9, free: 50e9 });
  const limited = {
    "memory.max": "8000000000\n",
    "memory.current": "6000000000\n",
    "memory.stat": "anon 5000000000\ninactive_file 1000000000\nactive_file 0\n",
  };
  assert.deepEqual(within(limited), { total: 8e9, free: 3e9 });
  assert.deepEqual(within(limited, 2e9), { total: 8e9, free: 2e9 });
  assert.deepEqual(within({ ...limited, "memory.current": "9500000000" }), { total: 8e9, free: 0 });
  assert.deepEqual(within({ "memory.max": "8000000000" }), { total: 8e9, free: 8e9 });
});

Deno.test("memory: cards of amdgpu", async () => {
  const card = { total: 16e9, free: 15e9 };
  const radeon = { adapter: "AMD Radeon RX 7800 XT (RADV NAVI32)", software: false };
  assert.deepEqual(await gpuMemory(radeon, 1, sources({ amd: () => [card] })), card);
});

Deno.test("memory: not known where nobody tells", async () => {
  for (const adapter of ["NVIDIA H200", "AMD Radeon Graphics", "Intel(R) Arc(tm) A770 Graphics"]) {
    assert.equal(await gpuMemory({ adapter, software: false }, 1e12, sources({})), undefined);
  }
});
