/** What the hub says about a model: which commit a revision is, and the files of it. */
import { reason, UsageError } from "../errors.ts";
import { type Ask, lost, RefusedError, withoutToken } from "./http.ts";
import { isCommit, type ModelName, modelText, namedRepo } from "./names.ts";
import type { RemoteFile } from "./needed.ts";
import { persist, type Persistence } from "./retry.ts";
import type { HubSettings } from "./settings.ts";

/** A model at one commit. */
export interface Listing {
  readonly commit: string;
  readonly files: readonly RemoteFile[];
  /** The model that the card names as its base. */
  readonly madeFrom: string | undefined;
}

/** A file or folder of a repository, as the hub's API lists it. */
interface Entry {
  readonly type: string;
  readonly path: string;
  readonly size: number;
  /** Git's hash of a small file. */
  readonly oid?: string;
  /** Where a large file is stored: its SHA-256 and length. */
  readonly lfs?: { readonly oid: string; readonly size: number };
}

/** What the hub is to say of a revision. */
const FIELDS = "expand=sha&expand=cardData";
/** What all answers about a model may come to: a page lists 1000 files in about 350 kB. */
const MAX_BYTES = 64 << 20;
const MAX_ANSWERS = 1000;

/**
 * Asks which commit the revision is and what files it has.
 * @throws RefusedError where the hub refuses, UnreachableError where it does not answer.
 */
export async function listRepository(
  name: ModelName,
  { endpoint, token, ask, persistence, answerMs }: Pick<HubSettings, "endpoint" | "token"> & {
    readonly ask: Ask;
    readonly persistence: Persistence;
    /** Limit of one answer. */
    readonly answerMs: number;
  },
): Promise<Listing> {
  const cannot = `Cannot get "${modelText(name)}"`;
  const open = bounded(
    (url) => ask(url, { signal: limited(persistence.signal, answerMs) }),
    `${cannot}: ${endpoint}`,
  );
  // An answer that breaks off is asked for again, like one that does not begin.
  const read = (url: string) =>
    persist(cannot, async () => bodyOf(url, await open(url)), persistence);
  const repository = `${endpoint}/api/models/${name.repo}`;
  try {
    const info = await read(
      `${repository}/revision/${encodeURIComponent(name.revision)}?${FIELDS}`,
    );
    const { sha, cardData } = JSON.parse(info.text);
    if (typeof sha !== "string" || !isCommit(sha)) throw new TypeError("it names no commit");
    const entries: Entry[] = [];
    let page: string | undefined = `${repository}/tree/${sha}?recursive=true`;
    while (page !== undefined) {
      const part: Answer = await read(page);
      entries.push(...JSON.parse(part.text));
      page = nextPage(part.headers);
    }
    return {
      commit: sha,
      files: entries.filter(({ type }) => type === "file").map(remoteFile),
      madeFrom: baseModel(cardData),
    };
  } catch (error) {
    persistence.signal?.throwIfAborted();
    if (error instanceof UsageError) throw error;
    const why = withoutToken(reason(error), { token });
    throw new RefusedError(`${cannot}: ${endpoint} does not answer as a hub does (${why})`, {
      cause: error,
    });
  }
}

interface Answer {
  readonly text: string;
  readonly headers: Headers;
}

async function bodyOf(url: string, response: Response): Promise<Answer> {
  const text = await response.text().catch((error) => {
    throw error instanceof UsageError ? error : lost(new URL(url).host, error);
  });
  return { text, headers: response.headers };
}

/** The page after this one, as a Link header names it. */
function nextPage(headers: Headers): string | undefined {
  return /<(https?:[^>]+)>;\s*rel="next"/.exec(headers.get("Link") ?? "")?.[1];
}

/** One name, or the first of several. */
function baseModel(card: unknown): string | undefined {
  const named = (card as { base_model?: unknown } | null | undefined)?.base_model;
  return namedRepo(Array.isArray(named) ? named[0] : named);
}

/** Requests that together give up on answers without end: all of them are held in memory. */
function bounded(
  ask: (url: string) => Promise<Response>,
  who: string,
): (url: string) => Promise<Response> {
  let [bytes, answers] = [0, 0];
  const endless = () => new UsageError(`${who} answers without end`);
  return async (url) => {
    answers += 1;
    if (answers > MAX_ANSWERS) throw endless();
    const { body, status, headers } = await ask(url);
    const counted = body?.pipeThrough(
      new TransformStream<Uint8Array, Uint8Array>({
        transform(part, controller) {
          bytes += part.length;
          if (bytes > MAX_BYTES) throw endless();
          controller.enqueue(part);
        },
      }),
    );
    return new Response(counted ?? null, { status, headers });
  };
}

function limited(signal: AbortSignal | undefined, ms: number): AbortSignal {
  const limit = AbortSignal.timeout(ms);
  return signal === undefined ? limit : AbortSignal.any([signal, limit]);
}

/** @throws TypeError for an entry whose path or hash would leave the cache. */
function remoteFile({ path, size, oid, lfs }: Entry): RemoteFile {
  const file = lfs === undefined
    ? { path, size, etag: oid ?? "", hash: "git-sha1" as const }
    : { path, size: lfs.size, etag: lfs.oid, hash: "sha256" as const };
  const inside = path.split("/").every((part) => !["", ".", ".."].includes(part));
  const digits = file.hash === "sha256" ? 64 : 40;
  const hashed = file.etag.length === digits && /^[0-9a-f]+$/.test(file.etag);
  if (inside && !/[\\:\0]/.test(path) && hashed && Number.isSafeInteger(file.size)) return file;
  throw new TypeError(`a file is listed as ${JSON.stringify({ path, size, oid, lfs })}`);
}
