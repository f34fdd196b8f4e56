/** How much memory the adapter has. WebGPU does not report it, so the operating system is asked where possible. */
import type { DeviceInfo } from "./device.ts";

/** Bytes. */
export interface GpuMemory {
  readonly total: number;
  /** Bytes that are free now. */
  readonly free: number;
  /** True if this is the machine's main memory, which the GPU shares with all programs. */
  readonly shared?: boolean;
}

/** Where the numbers come from; tests pass their own sources. */
export interface MemorySources {
  readonly os: string;
  /** Memory of the whole machine; undefined if it is unknown. */
  host(): GpuMemory | undefined;
  /** What `nvidia-smi` prints for NVIDIA_QUERY; undefined where it is not there or does not answer. */
  nvidia(): Promise<string | undefined>;
  /** Memory of the discrete cards that the amdgpu driver knows. */
  amd(): readonly GpuMemory[];
}

const MIB = 2 ** 20;
const ANSWER_MS = 2000;
/** Bytes that every card has: for less `nvidia-smi` is not run, as it takes up to seconds where no daemon runs. */
export const WORTH_ASKING = 1e9;
/** Fewest bytes of a discrete card. An integrated GPU reserves less of main memory, and can use the rest too. */
const CARD_BYTES = 4 * 2 ** 30;
const NVIDIA_QUERY = [
  "--query-gpu=name,memory.total,memory.free",
  "--format=csv,noheader,nounits",
];

/**
 * The memory that buffers of this adapter are allocated from, undefined where it is not reported. Software
 * adapters and Apple's GPUs use main memory. Among several cards with the adapter's name the one with most
 * free memory counts, because it is not known which of them WebGPU opened.
 *
 * @param need bytes that are wanted; below WORTH_ASKING an NVIDIA card is not asked.
 */
export async function gpuMemory(
  { adapter, software }: Pick<DeviceInfo, "adapter" | "software">,
  need: number = Infinity,
  sources: MemorySources = systemSources(),
): Promise<GpuMemory | undefined> {
  if (software || sources.os === "darwin") {
    const host = sources.host();
    return host && { ...host, shared: true };
  }
  if (/nvidia|geforce|quadro|tesla/i.test(adapter)) {
    if (need < WORTH_ASKING) return undefined;
    return freest(parseNvidia(await sources.nvidia() ?? "", adapter));
  }
  if (/amd|radeon/i.test(adapter)) return freest(sources.amd());
  return undefined;
}

/**
 * Cards called `name` in what NVIDIA_QUERY prints: `NVIDIA H200, 143771, 143000` (MiB) a line. The name may say more
 * than a card's, so of several kinds of cards those with the longest name count: an RTX 4070 is no RTX 4070 Ti.
 */
export function parseNvidia(csv: string, name: string): GpuMemory[] {
  const cards = csv.split("\n").flatMap((line) => {
    const [card = "", total, free] = line.split(/, */);
    // For a part of a partitioned card (MIG) the numbers are "[N/A]".
    const memory = { total: Number(total) * MIB, free: Number(free) * MIB };
    const known = Number.isFinite(memory.total) && Number.isFinite(memory.free);
    const called = plain(card);
    return known && called !== "" && ` ${plain(name)} `.includes(` ${called} `)
      ? [{ called, memory }]
      : [];
  });
  const longest = Math.max(...cards.map(({ called }) => called.length));
  return cards.filter(({ called }) => called.length === longest).map(({ memory }) => memory);
}

/** The words of a name: Dawn calls a card "nvidia-h200". */
function plain(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]+/g, " ").trim();
}

function freest(cards: readonly GpuMemory[]): GpuMemory | undefined {
  return cards.toSorted((a, b) => b.free - a.free)[0];
}

function systemSources(): MemorySources {
  const host = () => {
    const machine = Deno.systemMemoryInfo();
    // macOS compresses and swaps out the memory of other programs, so all of it can be allocated.
    const available = Deno.build.os === "darwin" ? machine.total : machine.available;
    return hostMemory({ ...machine, available }, (file) => readText(`/sys/fs/cgroup/${file}`));
  };
  return { os: Deno.build.os, host, nvidia: askNvidia, amd: amdCards };
}

/**
 * The machine's memory, or that of the container that this process is in, if it has a limit. Caches of files, which
 * Linux takes back when memory is needed, count as free.
 *
 * @param cgroup reads a file of the container's control group (version 2).
 */
export function hostMemory(
  { total, available }: Pick<Deno.SystemMemoryInfo, "total" | "available">,
  cgroup: (file: string) => string | undefined,
): GpuMemory {
  const limit = Number(cgroup("memory.max") ?? NaN);
  if (!Number.isFinite(limit)) return { total, free: available };
  const [, caches = 0] = /^inactive_file (\d+)$/m.exec(cgroup("memory.stat") ?? "") ?? [];
  const used = Number(cgroup("memory.current") ?? 0) - Number(caches);
  return { total: Math.min(total, limit), free: Math.max(0, Math.min(available, limit - used)) };
}

async function askNvidia(): Promise<string | undefined> {
  if (Deno.build.os !== "linux" && Deno.build.os !== "windows") return undefined;
  try {
    const command = new Deno.Command("nvidia-smi", {
      args: NVIDIA_QUERY,
      stdin: "null",
      stderr: "null",
      signal: AbortSignal.timeout(ANSWER_MS),
    });
    const { success, stdout } = await command.output();
    return success ? new TextDecoder().decode(stdout) : undefined;
  } catch {
    return undefined; // Not installed, or not allowed: then it is not known.
  }
}

function amdCards(): GpuMemory[] {
  const folders = Array.from({ length: 16 }, (_, card) => `/sys/class/drm/card${card}/device`);
  return folders.flatMap((folder) => {
    const [total, used] = ["total", "used"].map((which) =>
      Number(readText(`${folder}/mem_info_vram_${which}`) ?? NaN)
    ) as [number, number];
    return total >= CARD_BYTES && used >= 0 ? [{ total, free: total - used }] : [];
  });
}

function readText(path: string): string | undefined {
  try {
    return Deno.readTextFileSync(path);
  } catch {
    return undefined;
  }
}
