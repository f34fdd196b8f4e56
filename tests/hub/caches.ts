/** Caches and models for tests of the hub. */
import type { DownloadProgress, Hub } from "../../src/hub/download.ts";
import type { LocalHub } from "./hub.ts";

export const COMMIT: string = "1".repeat(40);
export const SECOND: string = "2".repeat(40);

/** An address at which nothing listens. */
const NOBODY = "http://127.0.0.1:2";

/** Pseudo-random bytes, the same every time. */
export function noise(count: number, seed = 1): Uint8Array<ArrayBuffer> {
  const words = new Uint32Array(Math.ceil(count / 4));
  let state = seed;
  for (let i = 0; i < words.length; i++) words[i] = state = Math.imul(state, 1664525) + 1013904223;
  return new Uint8Array(words.buffer).slice(0, count);
}

export function text(content: string): Uint8Array {
  return new TextEncoder().encode(content);
}

/** Small texts, weights of 300 kB, and a file that no one needs. */
export function toyFiles(seed = 1): Record<string, Uint8Array> {
  return {
    "README.md": text("# toy"),
    "config.json": text(`{"seed":${seed}}`),
    "tokenizer.json": noise(50_000, seed + 10),
    "model.safetensors": noise(300_000, seed),
    "original/consolidated.safetensors": noise(300_000, 99),
  };
}

/** A cache in its own folder, which is removed when the cache is disposed. */
export interface TestCache extends Disposable {
  readonly path: string;
  readonly warnings: string[];
  readonly progress: DownloadProgress[];
  /** Paths of the files and links in the cache, with the targets of links. */
  tree(): string[];
  /** A hub over the cache, with short waits. */
  hub(server: LocalHub | undefined, more?: Partial<Hub & Hub["settings"]>): Hub;
}

export function testCache(): TestCache {
  const path = Deno.makeTempDirSync({ prefix: "eyrie-hub-" });
  const warnings: string[] = [];
  const progress: DownloadProgress[] = [];
  return {
    path,
    warnings,
    progress,
    tree: () => walk(path).map((file) => file.slice(path.length + 1)).toSorted(),
    hub(
      server,
      { token, tokenFrom, offline = false, cache = path, endpoint = NOBODY, ...more } = {},
    ) {
      return {
        settings: {
          cache,
          endpoint: server?.endpoint ?? endpoint,
          token,
          offline,
          ...tokenFrom === undefined ? {} : { tokenFrom },
        },
        waits: [1, 1, 1],
        idleMs: 30_000,
        onWarning: (line) => warnings.push(line),
        onProgress: (each) => progress.push(each),
        ...more,
      };
    },
    [Symbol.dispose]: () => Deno.removeSync(path, { recursive: true }),
  };
}

function walk(folder: string): string[] {
  return [...Deno.readDirSync(folder)].flatMap(({ name, isDirectory, isSymlink }) => {
    const path = `${folder}/${name}`;
    if (isSymlink) return [`${path} -> ${Deno.readLinkSync(path)}`];
    return isDirectory ? walk(path) : [path];
  });
}
