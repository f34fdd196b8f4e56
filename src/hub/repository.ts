/** What the hub says about a model: which commit a revision is, and the files of it. */
import { reason, UsageError } from "../errors.ts";
import { type Ask, withoutToken } from "./http.ts";
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

const ANSWER_MS = 30_000;
/** What all answers about a model may come to: a page lists 1000 files in about 350 kB. */
const MOST_BYTES = 64 << 20;
const MOST_ANSWERS = 1000;

/**
 * Asks which commit the revision is and what files it has.
 * @throws UsageError where the hub refuses, UnreachableError where it does not answer.
 */
export async function listRepository(
  name: ModelName,
  { endpoint, token, ask, persistence }: Pick<HubSettings, "endpoint" | "token"> & {
    readonly ask: Ask;
    readonly persistence: Persistence;
  },
): Promise<Listing> {
  const cannot = `Cannot get "${modelText(name)}"`;
  const answer = (url: string, init: RequestInit = {}) =>
    persist(
      cannot,
      () => ask(url, { ...init, signal: limited(persistence.signal) }),
      persistence,
    );
  // The package knows the API; our `fetch` gives it the token, retries, limits and words.
  const options = { hubUrl: endpoint, fetch: bounded(answer, `${cannot}: ${endpoint}`) };
  const { listFiles, modelInfo } = await import("@huggingface/hub");
  try {
    const additionalFields = ["sha", "cardData"] as const;
    const { repo, revision } = name;
    const { sha, cardData } = await modelInfo({
      ...options,
      name: repo,
      revision,
      additionalFields: [...additionalFields],
    });
    if (typeof sha !== "string" || !isCommit(sha)) throw new TypeError("it names no commit");
    const entries = await Array.fromAsync(
      listFiles({
        ...options,
        repo: { type: "model", name: repo },
        revision: sha,
        recursive: true,
      }),
    );
    return {
      commit: sha,
      files: entries.filter(({ type }) => type === "file").map(remoteFile),
      madeFrom: baseModel(cardData),
    };
  } catch (error) {
    persistence.signal?.throwIfAborted();
    if (error instanceof UsageError) throw error;
    const why = withoutToken(reason(error), { token }).replace(/\s+/g, " ");
    throw new UsageError(`${cannot}: ${endpoint} does not answer as a hub does (${why})`, {
      cause: error,
    });
  }
}

/** One name, or the first of several. */
function baseModel(card: unknown): string | undefined {
  const named = (card as { base_model?: unknown } | null | undefined)?.base_model;
  return namedRepo(Array.isArray(named) ? named[0] : named);
}

/** `fetch` that gives up on answers without end; the package would hold them all in memory. */
function bounded(
  ask: (url: string, init?: RequestInit) => Promise<Response>,
  who: string,
): typeof fetch {
  let [bytes, answers] = [0, 0];
  const endless = () => new UsageError(`${who} answers without end`);
  const fetchBounded = async (url: string, init?: RequestInit): Promise<Response> => {
    answers += 1;
    if (answers > MOST_ANSWERS) throw endless();
    const { body, status, headers } = await ask(url, init);
    const counted = body?.pipeThrough(
      new TransformStream<Uint8Array, Uint8Array>({
        transform(part, controller) {
          bytes += part.length;
          if (bytes > MOST_BYTES) throw endless();
          controller.enqueue(part);
        },
      }),
    );
    return new Response(counted ?? null, { status, headers });
  };
  return fetchBounded as typeof fetch;
}

function limited(signal: AbortSignal | undefined): AbortSignal {
  const limit = AbortSignal.timeout(ANSWER_MS);
  return signal === undefined ? limit : AbortSignal.any([signal, limit]);
}

/** @throws TypeError for an entry whose path or hash would leave the cache. */
function remoteFile(
  { path, size, oid, lfs }: {
    path: string;
    size: number;
    oid?: string;
    lfs?: { oid: string; size: number };
  },
): RemoteFile {
  const file = lfs === undefined
    ? { path, size, etag: oid ?? "", hash: "git-sha1" as const }
    : { path, size: lfs.size, etag: lfs.oid, hash: "sha256" as const };
  const inside = path.split("/").every((part) => !["", ".", ".."].includes(part));
  const digits = file.hash === "sha256" ? 64 : 40;
  const hashed = file.etag.length === digits && /^[0-9a-f]+$/.test(file.etag);
  if (inside && !/[\\:\0]/.test(path) && hashed && Number.isSafeInteger(file.size)) return file;
  throw new TypeError(`a file is listed as ${JSON.stringify({ path, size, oid, lfs })}`);
}
