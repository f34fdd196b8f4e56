/** What `--model` and `--draft` may be: a folder, or a model of the Hugging Face hub. Pure. */
import { UsageError } from "../errors.ts";

/** A model of the hub at one of its revisions. */
export interface ModelName {
  /** `org/name`; a few old models have no organisation. */
  readonly repo: string;
  /** A branch, a tag, `refs/pr/1` or a commit. */
  readonly revision: string;
}

/** Where a model is to be looked for. */
export type Place =
  | { readonly kind: "folder"; readonly path: string }
  | { readonly kind: "hub"; readonly name: ModelName };

export const MAIN = "main";

const SCHEME = "hf://";
/** The hub's own rule for each of the two parts; `--` joins them in the cache. */
const PART = /^(?!.*(--|\.\.))[A-Za-z0-9_](?:[\w.-]{0,94}[A-Za-z0-9_])?$/;
const COMMIT = /^[0-9a-f]{40}$/;

/** Whether a revision is a full commit: such a one never moves. */
export function isCommit(revision: string): boolean {
  return COMMIT.test(revision);
}

/** `org/name`, with `@revision` where that is not main and a commit cut to 7 digits. */
export function modelText({ repo, revision }: ModelName): string {
  if (revision === MAIN) return repo;
  return `${repo}@${isCommit(revision) ? revision.slice(0, 7) : revision}`;
}

/** The same in full, as a command takes it. */
export function modelArgument({ repo, revision }: ModelName): string {
  return revision === MAIN ? repo : `${repo}@${revision}`;
}

/**
 * Reads `org/name`, `org/name@revision` and `hf://` before either; `name` alone too, as the cache
 * may hold such a model.
 * @throws UsageError
 */
export function parseModelName(text: string): ModelName {
  const name = readName(text.startsWith(SCHEME) ? text.slice(SCHEME.length) : text);
  if (name !== undefined) return name;
  throw new UsageError(
    `Cannot use "${text}": not the name of a model; allowed is org/name or org/name@revision`,
  );
}

/**
 * What a person means by a model: a folder where one is there or the text can be nothing else, a
 * model of the hub for `hf://` and for two names with a slash between them.
 * @throws UsageError for a broken `hf://` name.
 */
export function parsePlace(text: string, isFolder: (path: string) => boolean): Place {
  if (text.startsWith(SCHEME)) return { kind: "hub", name: parseModelName(text) };
  const name = isFolder(text) ? undefined : readName(text);
  return name === undefined || !name.repo.includes("/")
    ? { kind: "folder", path: text }
    : { kind: "hub", name };
}

/**
 * What a person means by a file: one that is there or whose path can be nothing else, or
 * `org/name/FILE` of the hub, also `org/name@revision/FILE`.
 */
export function parseFilePlace(
  text: string,
  isFile: (path: string) => boolean,
): { readonly name: ModelName; readonly path: string } | undefined {
  const [org, repo, ...rest] = text.startsWith(SCHEME)
    ? text.slice(SCHEME.length).split("/")
    : isFile(text)
    ? []
    : text.split("/");
  const name = rest.length > 0 ? readName(`${org}/${repo}`) : undefined;
  return name && { name, path: rest.join("/") };
}

/** The model that a card or a file names, by `org/name` or its page; undefined where it names none. */
export function namedRepo(text: unknown): string | undefined {
  if (typeof text !== "string") return undefined;
  const repo = text.replace(/^https?:\/\/(huggingface\.co|hf\.co)\//, "").replace(/\/+$/, "");
  return repo.includes("/") ? readName(repo)?.repo : undefined;
}

function readName(text: string): ModelName | undefined {
  const at = text.indexOf("@");
  const repo = at < 0 ? text : text.slice(0, at);
  const revision = at < 0 ? MAIN : text.slice(at + 1);
  const parts = repo.split("/");
  const whole = parts.length <= 2 && parts.every((part) => PART.test(part));
  return whole && isRevision(revision) ? { repo, revision } : undefined;
}

/** A revision becomes a path under refs/, which it must not leave. */
function isRevision(revision: string): boolean {
  const parts = revision.split("/");
  return parts.every((part) => /^[\w.+-]+$/.test(part) && !/^\.+$/.test(part));
}
