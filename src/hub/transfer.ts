/** One file from the hub into the cache: resumed, checked, and only then given its name. */
import { UsageError } from "../errors.ts";
import { cannotWrite, isAbsent, lstatOf, sizeOf, writing } from "./cache.ts";
import { startDigest } from "./digest.ts";
import { type Ask, lost } from "./http.ts";
import { lock } from "./lock.ts";
import type { RemoteFile } from "./needed.ts";
import { persist, type Persistence, TransientError } from "./retry.ts";

/** Where a file comes from and goes to. */
export interface Route {
  readonly file: RemoteFile;
  readonly url: string;
  /** Path of the blob; `.incomplete` is added while it is being received. */
  readonly blob: string;
  readonly lock: string;
}

/** How to get it. */
export interface Transport {
  readonly ask: Ask;
  readonly persistence: Persistence;
  /** Milliseconds without a byte after which a connection counts as lost. */
  readonly idleMs: number;
  /** Called with the number of new bytes; negative if some turned out to be wrong. */
  readonly onBytes: (bytes: number) => void;
}

const READ_BYTES = 1 << 20;

/**
 * Receives the file, unless another process has done so meanwhile. An interrupted call leaves the blob as
 * it was and the bytes received so far in `.incomplete`; the next call continues from them.
 * @throws UsageError for a full disk, for content that is not what the hub lists, for a refusal.
 */
export async function transfer(route: Route, transport: Transport): Promise<void> {
  const { file, blob } = route;
  using _held = await lock(route.lock, transport.persistence.signal);
  if (sizeOf(blob) === file.size) return transport.onBytes(file.size);
  const path = `${blob}.incomplete`;
  using partial = await openPartial(path, file, transport.persistence.signal);
  transport.onBytes(partial.size());
  const { resumed } = await receive(partial, route, transport);
  let hash = partial.hash();
  if (hash !== file.etag && resumed) {
    // What was there may be wrong, such as a proxy's page of an error: download the file once more from the start.
    transport.onBytes(-file.size);
    partial.restart();
    await receive(partial, route, transport);
    hash = partial.hash();
  }
  if (hash !== file.etag) {
    writing(path, () => Deno.removeSync(path));
    throw new UsageError(
      `Cannot download "${route.url}": its ${file.hash} is ${hash}, the hub lists ${file.etag}; ` +
        `the downloaded bytes were thrown away`,
    );
  }
  await partial.flush();
  writing(blob, () => {
    try {
      Deno.renameSync(path, blob);
    } catch (error) {
      // Where locks lock nobody out, another process that received the same bytes may have been first.
      if (!isAbsent(error) || sizeOf(blob) !== file.size) throw error;
    }
  });
}

/** The bytes received so far, and their hash. */
interface Partial extends Disposable {
  size(): number;
  append(bytes: Uint8Array): void;
  restart(): void;
  /** Returns the hash of all bytes; called once, when they are complete. */
  hash(): string;
  flush(): Promise<void>;
}

async function openPartial(
  path: string,
  file: RemoteFile,
  signal: AbortSignal | undefined,
): Promise<Partial> {
  using stack = new DisposableStack();
  const handle = stack.use(writing(path, () => {
    Deno.mkdirSync(path.slice(0, path.lastIndexOf("/")), { recursive: true });
    return openOwn(path);
  }));
  let digest = startDigest(file);
  let size = 0;
  const restart = (): void => {
    digest = startDigest(file);
    size = 0;
    writing(path, () => handle.truncateSync(0));
    handle.seekSync(0, Deno.SeekMode.Start);
  };
  const there = handle.statSync().size;
  if (there > file.size) restart();
  const buffer = new Uint8Array(READ_BYTES);
  // Awaited reads: hashing gigabytes must not keep Ctrl+C from being handled.
  while (there <= file.size && size < there) {
    signal?.throwIfAborted();
    const count = await handle.read(buffer.subarray(0, there - size));
    if (count === null) break;
    digest.update(buffer.subarray(0, count));
    size += count;
  }
  stack.move();
  return {
    size: () => size,
    restart,
    append(bytes) {
      writing(path, () => {
        for (let done = 0; done < bytes.length;) done += handle.writeSync(bytes.subarray(done));
      });
      digest.update(bytes);
      size += bytes.length;
    },
    hash: () => digest.finish(),
    async flush() {
      await handle.syncData().catch((error) => {
        throw cannotWrite(path, error);
      });
    },
    [Symbol.dispose]: () => handle.close(),
  };
}

/** Opens an existing file or a new one. Anything else at the path (a link out of the cache) is removed first. */
function openOwn(path: string): Deno.FsFile {
  const found = lstatOf(path);
  if (found && !found.isFile) Deno.removeSync(path);
  return Deno.openSync(path, { read: true, write: true, createNew: !found?.isFile });
}

/** Asks for what is missing until nothing is. Returns whether the bytes are of several answers or calls. */
async function receive(
  partial: Partial,
  { file, url }: Route,
  { ask, persistence, idleMs, onBytes }: Transport,
): Promise<{ readonly resumed: boolean }> {
  let received = 0;
  let resumed = partial.size() > 0;
  const attempt = async (): Promise<void> => {
    if (partial.size() === file.size) return;
    using watch = watchIdle(idleMs);
    const signals = [watch.signal, ...persistence.signal ? [persistence.signal] : []];
    const response = await ask(url, {
      headers: { Range: `bytes=${partial.size()}-` },
      signal: AbortSignal.any(signals),
    });
    let isRest: boolean;
    try {
      isRest = continues(response, partial.size(), file);
    } catch (error) {
      await response.body?.cancel();
      throw error;
    }
    if (!isRest) {
      onBytes(-partial.size());
      partial.restart();
    }
    resumed = partial.size() > 0;
    for await (const bytes of bodyOf(response, url)) {
      watch.reset();
      if (partial.size() + bytes.length > file.size) throw tooLong(url, file);
      partial.append(bytes);
      received += bytes.length;
      onBytes(bytes.length);
    }
    const { size } = file;
    if (partial.size() < size) {
      throw new TransientError(`the transfer ended at ${partial.size()} of ${size} bytes`);
    }
  };
  const cannot = `Cannot download "${url}"`;
  await persist(cannot, attempt, { ...persistence, received: () => received });
  return { resumed };
}

/**
 * Whether the body continues at `offset`; otherwise it holds the file from its start.
 * @throws UsageError for another file than the hub lists, TransientError for something else than a file.
 */
function continues(response: Response, offset: number, file: RemoteFile): boolean {
  if (response.status !== 206) {
    const length = response.headers.get("Content-Length");
    // A proxy's page of an error, for example: what has been received is kept.
    if (length !== null && Number(length) !== file.size) {
      throw new TransientError(`the server sent ${length} bytes instead of ${file.size}`);
    }
    return offset === 0;
  }
  const range = /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(response.headers.get("Content-Range") ?? "");
  if (range?.[2] !== undefined && range[2] !== "*" && Number(range[2]) !== file.size) {
    throw new UsageError(
      `Cannot download "${response.url}": it has ${range[2]} bytes, the hub lists ${file.size}`,
    );
  }
  if (Number(range?.[1]) === offset) return true;
  throw new TransientError(`the server sent another range than the one asked for`);
}

async function* bodyOf(response: Response, url: string): AsyncGenerator<Uint8Array> {
  const reader = response.body?.getReader();
  try {
    while (reader !== undefined) {
      const { done, value } = await reader.read().catch((error) => {
        throw lost(new URL(url).host, error);
      });
      if (done) return;
      yield value;
    }
  } finally {
    await reader?.cancel().catch(() => {});
  }
}

function tooLong(url: string, { size }: RemoteFile): UsageError {
  return new UsageError(`Cannot download "${url}": it has more than the ${size} bytes listed`);
}

/** A signal that aborts when nothing was received for `idleMs`. */
function watchIdle(idleMs: number) {
  const silence = new AbortController();
  const stop = () => silence.abort(new Error(`no data for ${idleMs / 1000} s`));
  let timer = setTimeout(stop, idleMs);
  return {
    signal: silence.signal,
    reset(): void {
      clearTimeout(timer);
      timer = setTimeout(stop, idleMs);
    },
    [Symbol.dispose]: () => clearTimeout(timer),
  };
}
