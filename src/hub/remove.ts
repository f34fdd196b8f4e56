/** Takes a model, or one revision of it, out of the cache. */
import { UsageError } from "../errors.ts";
import { ifThere, lstatOf, removeIfThere, repoFolders, writing } from "./cache.ts";
import { isCommit, MAIN, type ModelName, modelText, parseModelName } from "./names.ts";
import { type CachedRepo, type CachedRevision, filesUnder, scanRepo } from "./scan.ts";

/** What would go. */
export interface Removal {
  readonly name: ModelName;
  readonly revisions: readonly CachedRevision[];
  /** Whole repository: its folder goes. */
  readonly whole: boolean;
  /** Files that go and leave nothing that another snapshot needs. */
  readonly blobs: readonly string[];
  readonly freedBytes: number;
}

/**
 * What each of the names stands for in the cache: all of a model, or the revision after the `@` (a branch, a tag or
 * the beginning of a commit). Content that several of these revisions share goes with the last of them.
 * @throws UsageError where the cache has no such thing.
 */
export function planRemovals(cache: string, names: readonly string[]): Removal[] {
  const planned: Removal[] = [];
  for (const text of names) planned.push(planRemoval(cache, text, planned));
  return distinctRemovals(planned);
}

function planRemoval(cache: string, text: string, before: readonly Removal[]): Removal {
  const name = parseModelName(text);
  const repo = scanRepo(cache, name.repo);
  const there = filesUnder(repo.folder).length > 0;
  if (!there) throw new UsageError(`Cannot remove "${text}": it is not in "${cache}"`);
  if (name.revision === MAIN && !text.endsWith(`@${MAIN}`)) return wholeRemoval(repo, name);
  const revisions = repo.revisions.filter(({ commit, refs }) =>
    refs.includes(name.revision) || /^[0-9a-f]{4,}$/.test(name.revision) &&
      commit.startsWith(name.revision)
  );
  if (revisions.length === 1) {
    const gone = before.filter((other) => other.name.repo === name.repo)
      .flatMap((other) => other.revisions.map(({ commit }) => commit));
    return revisionRemoval(repo, name, revisions, new Set(gone));
  }
  const has = repo.revisions.map(({ commit, refs }) => [...refs, commit.slice(0, 7)].join(" = "));
  const why = revisions.length === 0 ? "no such revision is in the cache" : "it is not unique";
  throw new UsageError(`Cannot remove "${text}": ${why}; there is ${has.join(", ") || "none"}`);
}

/** Leaves out removals that another one includes, because a name may be given twice. */
function distinctRemovals(removals: readonly Removal[]): Removal[] {
  return removals.filter((one, at) =>
    !removals.some((other, i) => i !== at && covers(other, one) && (i < at || !covers(one, other)))
  );
}

function covers(other: Removal, one: Removal): boolean {
  if (other.name.repo !== one.name.repo) return false;
  if (other.whole) return true;
  const commits = new Set(other.revisions.map(({ commit }) => commit));
  return !one.whole && one.revisions.every(({ commit }) => commits.has(commit));
}

function wholeRemoval(repo: CachedRepo, name: ModelName): Removal {
  const blobs = ["blobs", "snapshots"].flatMap((part) => filesUnder(`${repo.folder}/${part}`));
  return { name, revisions: repo.revisions, whole: true, blobs, freedBytes: bytesOf(blobs) };
}

function revisionRemoval(
  repo: CachedRepo,
  name: ModelName,
  revisions: readonly CachedRevision[],
  gone: ReadonlySet<string>,
): Removal {
  const kept = new Set(
    repo.revisions.filter((each) => !revisions.includes(each) && !gone.has(each.commit))
      .flatMap(({ blobs }) => [...blobs]),
  );
  // Python may keep content in a store that all repositories share: only our links to it are removed.
  const blobs = filesUnder(`${repo.folder}/blobs`)
    .filter((path) => {
      const real = ifThere(path, () => Deno.realPathSync(path)); // absent: the link leads nowhere
      return real !== undefined && !kept.has(real) &&
        revisions.some(({ blobs }) => blobs.has(real));
    });
  const copies = revisions.flatMap(({ folder }) => filesUnder(folder));
  const files = [...blobs, ...copies];
  return { name, revisions, whole: false, blobs: files, freedBytes: bytesOf(files) };
}

/** Bytes that removing these files frees. Links free none; a file with two hard links counts once. */
function bytesOf(files: readonly string[]): number {
  const seen = new Set<string>();
  return files.reduce((total, path) => {
    const found = lstatOf(path);
    if (!found?.isFile) return total;
    const { size, ino, dev } = found;
    const key = ino === null ? path : `${dev}:${ino}`;
    if (seen.has(key)) return total;
    seen.add(key);
    return total + size;
  }, 0);
}

/** Removes the files, links before their content: a failure leaves no dangling link behind. */
export function remove(cache: string, { name, revisions, whole, blobs }: Removal): void {
  const { root, refs } = repoFolders(cache, name.repo);
  writing(root, () => {
    for (const { commit, folder, refs: named } of revisions) {
      Deno.removeSync(folder, { recursive: true });
      removeIfThere(`${root}/trees/${commit}.json`); // Python's list of what belongs to it
      for (const ref of named) removeIfThere(`${refs}/${ref}`);
    }
    for (const path of blobs) removeIfThere(path);
    if (whole) Deno.removeSync(root, { recursive: true });
  });
}

/** For messages. */
export function removalText({ name, revisions, whole }: Removal): string {
  const [only] = revisions;
  const commit = only?.commit ?? name.revision;
  if (!whole) return modelText({ ...name, revision: isCommit(commit) ? commit : name.revision });
  return revisions.length === 1 ? name.repo : `${name.repo} (${revisions.length} revisions)`;
}
