/**
 * A hub on this machine for tests: the API, redirects of large files to a second server that wants
 * no token, ranges, and faults on demand.
 */
import { createHash } from "node:crypto";

/** A repository: its files by revision name. */
export interface FakeRepo {
  readonly files: Readonly<Record<string, Uint8Array>>;
  readonly commit: string;
  /** Branches and tags that point to this commit; `main` by default. */
  readonly refs?: readonly string[];
  readonly gated?: boolean;
  /** The front matter of its model card. */
  readonly card?: unknown;
}

/** A fault of one request for a file. */
export type Fault =
  | { readonly kind: "status"; readonly status: number; readonly headers?: Record<string, string> }
  /** The connection breaks after this many bytes. */
  | { readonly kind: "cut"; readonly after: number }
  /** No more bytes come after this many. */
  | { readonly kind: "stall"; readonly after: number }
  /** Bytes of the right number and the wrong content. */
  | { readonly kind: "corrupt" }
  /** A page of a proxy instead of the file, with status 200; its length may be in a header or not. */
  | { readonly kind: "page"; readonly bytes: number; readonly headed: boolean }
  /** A file of another length. */
  | { readonly kind: "longer" }
  | { readonly kind: "no-ranges" }
  /** Sends `bytes` at a time, `ms` apart. */
  | { readonly kind: "slow"; readonly bytes: number; readonly ms: number };

export interface Asked {
  readonly method: string;
  readonly path: string;
  readonly range: string | null;
  readonly token: string | null;
}

export interface LocalHub extends AsyncDisposable {
  readonly endpoint: string;
  /** Every request so far, to the hub and the file server. */
  readonly asked: Asked[];
  /** Sets the faults, in order, of coming requests whose path ends with `end`. */
  fail(end: string, ...faults: Fault[]): void;
  /** Bytes of file content that were sent. */
  sent(): number;
}

/** Files above this many bytes are stored by LFS. */
const LFS_ABOVE = 20_000;
const TOKEN = "Bearer hf_right";

export function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

export function gitSha1(bytes: Uint8Array): string {
  return createHash("sha1").update(`blob ${bytes.length}\0`).update(bytes).digest("hex");
}

export function etagOf(bytes: Uint8Array): string {
  return bytes.length > LFS_ABOVE ? sha256(bytes) : gitSha1(bytes);
}

type Repos = Readonly<Record<string, readonly FakeRepo[]>>;

/** The state that the two servers share. */
interface State {
  readonly repos: Repos;
  readonly asked: Asked[];
  readonly faults: Map<string, Fault[]>;
  sent: number;
}

/** Starts the hub with repositories by name, each a list of commits. */
export function startHub(repos: Repos): LocalHub {
  const state: State = { repos, asked: [], faults: new Map(), sent: 0 };
  const stop = new AbortController();
  const options = { port: 0, hostname: "127.0.0.1", signal: stop.signal, onListen: () => {} };
  const files = Deno.serve(options, fileServer(state));
  const hub = Deno.serve(options, hubServer(state, `http://localhost:${files.addr.port}`));
  return {
    endpoint: `http://127.0.0.1:${hub.addr.port}`,
    asked: state.asked,
    fail: (end, ...more) => void state.faults.set(end, [...state.faults.get(end) ?? [], ...more]),
    sent: () => state.sent,
    async [Symbol.asyncDispose]() {
      stop.abort();
      await Promise.all([hub.finished, files.finished]);
    },
  };
}

/** Holds large files by hash, as a storage behind signed URLs does. */
function fileServer(state: State): (request: Request) => Response {
  const contents = new Map(
    Object.values(state.repos).flat().flatMap(({ files }) =>
      Object.values(files).map((bytes) => [etagOf(bytes), bytes] as const)
    ),
  );
  return (request) => {
    const { pathname, searchParams } = note(state, request);
    if (request.headers.has("Authorization")) return refuse(400, "TokenLeaked");
    const bytes = contents.get(searchParams.get("etag") ?? "");
    return bytes ? fileResponse(state, request, bytes, pathname) : refuse(404, "");
  };
}

function hubServer(state: State, storage: string): (request: Request) => Response {
  return (request) => {
    const { pathname, searchParams, origin } = note(state, request);
    if (pathname === "/api/models") {
      return searchResponse(state.repos, searchParams.get("search") ?? "");
    }
    const api = /^\/api\/models\/([^/]+\/[^/]+)\/(revision|tree)\/(.+)$/.exec(pathname);
    const file = /^\/([^/]+\/[^/]+)\/resolve\/([^/]+)\/(.+)$/.exec(pathname);
    const [, name = "", , ref = ""] = api ?? [, file?.[1], , file?.[2]];
    const found = findRepo(state.repos, { name, ref: decodeURIComponent(ref), request });
    if (found instanceof Response) return found;
    if (api?.[2] === "revision") {
      const fault = takeFault(state, pathname);
      if (fault?.kind === "status") return statusOf(fault);
      const info = new TextEncoder().encode(JSON.stringify(infoOf(name, found)));
      const headers = { "Content-Length": `${info.length}` };
      return new Response(faultyStream(info, fault, () => {}), { headers });
    }
    if (api) return treeResponse(found, { cursor: searchParams.get("cursor"), pathname, origin });
    const path = decodeURIComponent(file?.[3] ?? "");
    const bytes = found.files[path];
    if (!bytes) return refuse(404, "EntryNotFound");
    const headers = linked(found.commit, bytes);
    if (bytes.length > LFS_ABOVE) {
      const location = `${storage}/${path}?etag=${etagOf(bytes)}`;
      return new Response(null, { status: 302, headers: { ...headers, location } });
    }
    const response = fileResponse(state, request, bytes, pathname);
    for (const [key, value] of Object.entries(headers)) response.headers.set(key, value);
    return response;
  };
}

/** Models whose names hold the text, as the hub's search answers. */
function searchResponse(repos: Repos, text: string): Response {
  const names = Object.keys(repos).filter((name) =>
    name.toLowerCase().includes(text.toLowerCase())
  );
  return Response.json(names.map((id) => ({ _id: id, id, private: false, downloads: 1 })));
}

function note({ asked }: State, { url, method, headers }: Request): URL {
  const at = new URL(url);
  const [range, token] = [headers.get("Range"), headers.get("Authorization")];
  asked.push({ method, path: at.pathname, range, token });
  return at;
}

function takeFault({ faults }: State, path: string): Fault | undefined {
  return faults.entries().find(([end]) => path.endsWith(end))?.[1].shift();
}

function refuse(status: number, code: string): Response {
  return Response.json({ error: code }, { status, headers: { "X-Error-Code": code } });
}

function statusOf({ status, headers = {} }: Fault & { kind: "status" }): Response {
  return new Response("no", { status, headers });
}

function findRepo(
  repos: Repos,
  { name, ref, request }: { name: string; ref: string; request: Request },
): FakeRepo | Response {
  const token = request.headers.get("Authorization");
  if (token !== null && token !== TOKEN) {
    const headers = { "X-Error-Message": "Invalid credentials in Authorization header" };
    return new Response("no", { status: 401, headers });
  }
  const commits = repos[name];
  // The real hub does not tell strangers which private repositories there are.
  if (!commits) return refuse(token === null ? 401 : 404, "RepoNotFound");
  const names = ref.split("/tree/")[0];
  const found = commits.find(({ commit, refs = ["main"] }) =>
    commit === names || refs.includes(names ?? "")
  );
  if (!found) return refuse(404, "RevisionNotFound");
  if (found.gated && token === null && request.url.includes("/resolve/")) {
    return refuse(401, "GatedRepo");
  }
  return found;
}

function infoOf(name: string, { commit, gated, card }: FakeRepo) {
  const siblings: unknown[] = [];
  return {
    _id: "1",
    id: name,
    sha: commit,
    cardData: card,
    private: false,
    gated: gated ? "manual" : false,
    downloads: 0,
    likes: 0,
    lastModified: "2026-01-01T00:00:00.000Z",
    siblings,
  };
}

/** Two entries a page, to have pages. */
function treeResponse(
  { files }: FakeRepo,
  { cursor, pathname, origin }: { cursor: string | null; pathname: string; origin: string },
): Response {
  const entries = Object.entries(files).map(([path, bytes]) => ({
    type: "file",
    path,
    size: bytes.length,
    oid: gitSha1(bytes),
    ...bytes.length > LFS_ABOVE
      ? {
        lfs: { oid: sha256(bytes), size: bytes.length, pointerSize: 134 },
        xetHash: "f".repeat(64),
      }
      : {},
  }));
  const from = Number(cursor ?? 0);
  const next = `<${origin}${pathname}?recursive=true&cursor=${from + 2}>; rel="next"`;
  const headers: HeadersInit = from + 2 < entries.length ? { Link: next } : {};
  return Response.json(entries.slice(from, from + 2), { headers });
}

function linked(commit: string, bytes: Uint8Array): Record<string, string> {
  const headers: Record<string, string> = {
    "X-Repo-Commit": commit,
    ETag: `"${etagOf(bytes)}"`,
  };
  if (bytes.length <= LFS_ABOVE) return headers;
  return {
    ...headers,
    "X-Linked-ETag": `"${sha256(bytes)}"`,
    "X-Linked-Size": `${bytes.length}`,
  };
}

function fileResponse(
  state: State,
  request: Request,
  whole: Uint8Array,
  path: string,
): Response {
  const fault = takeFault(state, path);
  if (fault?.kind === "status") return statusOf(fault);
  if (fault?.kind === "page") {
    const page = new Uint8Array(fault.bytes);
    return new Response(fault.headed ? page : ReadableStream.from([page]));
  }
  const bytes = fault?.kind === "corrupt"
    ? whole.map((byte) => byte ^ 1)
    : fault?.kind === "longer"
    ? new Uint8Array([...whole, 0])
    : whole;
  const asked = /^bytes=(\d+)-(\d*)$/.exec(request.headers.get("Range") ?? "");
  const ranged = asked && fault?.kind !== "no-ranges" ? asked : null;
  const from = Number(ranged?.[1] ?? 0);
  if (ranged && from >= bytes.length) return new Response(null, { status: 416 });
  const end = ranged?.[2] ? Math.min(bytes.length, Number(ranged[2]) + 1) : bytes.length;
  const body = bytes.slice(from, end);
  const headers = new Headers({ "Content-Length": `${body.length}`, "Accept-Ranges": "bytes" });
  if (ranged) headers.set("Content-Range", `bytes ${from}-${end - 1}/${bytes.length}`);
  const status = ranged ? 206 : 200;
  if (request.method === "HEAD") return new Response(null, { status, headers });
  const stream = faultyStream(body, fault, (count) => state.sent += count);
  return new Response(stream, { status, headers });
}

const CHUNK = 16 << 10;

function faultyStream(
  body: Uint8Array<ArrayBuffer>,
  fault: Fault | undefined,
  onSent: (bytes: number) => void,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  const step = fault?.kind === "slow" ? fault.bytes : CHUNK;
  const most = fault?.kind === "cut" || fault?.kind === "stall" ? fault.after : Infinity;
  let at = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  return new ReadableStream({
    async pull(controller) {
      if (at >= most && fault?.kind === "stall") return await new Promise(() => {});
      // Fewer bytes than Content-Length said: the server drops the connection.
      if (at >= most || at >= body.length) return controller.close();
      if (fault?.kind === "slow") await new Promise((go) => timer = setTimeout(go, fault.ms));
      const piece = body.slice(at, Math.min(at + step, most));
      at += piece.length;
      onSent(piece.length);
      controller.enqueue(piece);
    },
    cancel: () => clearTimeout(timer),
  });
}
