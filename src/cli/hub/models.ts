/** `eyrie models`: what is in the Hugging Face cache, and which of it runs here. */
import { MAIN, modelArgument } from "../../hub/names.ts";
import { type CachedRepo, type CachedRevision, filesUnder, scanCache } from "../../hub/scan.ts";
import { missingFiles } from "../../hub/snapshot.ts";
import { bytesText } from "../../text/numbers.ts";
import { hubOfEnvironment } from "../open/locate.ts";
import type { ModelsOptions } from "../options/options.ts";
import { aligned } from "../terminal/aligned.ts";
import type { TextSink } from "../terminal/io.ts";
import { type Machine, thisMachine, type Verdict, verdictOf } from "./verdict.ts";

/** One revision in the cache. */
interface Entry {
  readonly repo: string;
  /** Undefined where no file is whole yet. */
  readonly commit: string | undefined;
  readonly refs: readonly string[];
  readonly bytes: number;
  readonly usedAt: Date | undefined;
  readonly folder: string;
  readonly verdict: Verdict;
}

/**
 * Writes the table, or with `--json` an object, to `stdout`: of the cache, or with `--known` of the hub.
 * Returns the exit code.
 */
export async function runModels(
  options: ModelsOptions,
  stdout: Pick<TextSink, "isTerminal" | "columns" | "write">,
): Promise<number> {
  const out = stdout.write;
  if (options.known) {
    const { knownModels, runKnownModels } = await import("./known.ts");
    const columns = stdout.isTerminal ? stdout.columns() : Infinity;
    runKnownModels(options, { machine: await thisMachine(), known: knownModels(), out, columns });
    return 0;
  }
  const { cache } = hubOfEnvironment();
  const repos = scanCache(cache);
  const machine = repos.length === 0 ? { adapter: false, bytes: undefined } : await thisMachine();
  const entries = entriesOf(repos, machine);
  if (options.json) out(`${JSON.stringify({ cache, models: entries.map(entryJson) }, null, 2)}\n`);
  else if (entries.length === 0) {
    out(`no models in ${cache}; eyrie pull org/name gets one, eyrie models --known lists some\n`);
  } else out(modelsTable(entries, new Date()));
  return 0;
}

function entriesOf(repos: readonly CachedRepo[], machine: Machine): Entry[] {
  return repos.flatMap((cached) => {
    const { repo, folder, revisions, begunBytes } = cached;
    if (revisions.length === 0 && begunBytes !== undefined) {
      const nothing = { commit: undefined, refs: [], usedAt: undefined };
      return [{ repo, ...nothing, bytes: begunBytes, folder, verdict: incomplete(repo) }];
    }
    return revisions.map((revision): Entry => {
      const entry = { repo, ...revision };
      if (!isIncomplete(cached, revision)) {
        return { ...entry, verdict: verdictOf(revision.folder, machine) };
      }
      const bytes = revision.bytes + (begunBytes ?? 0);
      return { ...entry, bytes, verdict: incomplete(pullName(cached, revision)) };
    });
  });
}

/** Weights that other programs read: a snapshot of them is whole and does not run here. */
const FOREIGN = /\.(gguf|onnx|h5|msgpack|pth?)$/;

/** Whether pull has not fetched everything yet, or a file has been removed since. */
function isIncomplete({ begunBytes }: CachedRepo, { folder }: CachedRevision): boolean {
  if (missingFiles(folder) === undefined) return false;
  return begunBytes !== undefined || !filesUnder(folder).some((file) => FOREIGN.test(file));
}

/** The name for `eyrie pull`. A new revision without a ref counts as main: its ref is written when it is whole. */
function pullName({ repo, revisions }: CachedRepo, { commit, refs }: CachedRevision): string {
  const unnamed = refs.length === 0 && revisions.length === 1;
  const revision = refs.includes(MAIN) || unnamed ? MAIN : refs[0] ?? commit;
  return modelArgument({ repo, revision });
}

function incomplete(name: string): Verdict {
  return { kind: "unusable", reason: `incomplete; eyrie pull ${name} continues the download` };
}

/** A line a revision, and the sum. */
function modelsTable(entries: readonly Entry[], now: Date): string {
  const rows = [
    ["NAME", "REVISION", "SIZE", "LAST USED", "RUNS HERE"],
    ...entries.map(({ repo, commit, refs, bytes, usedAt, verdict }) => [
      repo,
      [commit?.slice(0, 7) ?? "none yet", ...refs].join(" "),
      bytesText(bytes),
      usedAt === undefined ? "never" : ago(now.getTime() - usedAt.getTime()),
      verdictText(verdict),
    ]),
  ];
  return `${aligned(rows)}\n`;
}

function verdictText(verdict: Verdict): string {
  if (verdict.kind === "unusable") return `no: ${verdict.reason}`;
  const { memoryBytes, runs, algorithm, method } = verdict;
  const draft = algorithm === undefined ? "" : `, ${algorithm} draft`;
  const kind = method === undefined ? draft : `${draft}, ${method}`;
  const needs = `needs ${bytesText(memoryBytes)}`;
  if (runs === false) {
    return `no: ${needs}, there are ${bytesText(verdict.machineBytes ?? 0)}${kind}`;
  }
  return `${runs === undefined ? "if it fits" : "yes"}${kind}, ${needs}`;
}

function entryJson({ repo, commit, refs, bytes, usedAt, folder, verdict }: Entry) {
  const usable = verdict.kind === "unusable" ? undefined : verdict;
  return {
    name: repo,
    revision: commit ?? null,
    spelled: modelArgument({ repo, revision: refs.includes(MAIN) ? MAIN : commit ?? MAIN }),
    refs,
    bytes,
    last_used: usedAt?.toISOString() ?? null,
    folder,
    kind: usable?.kind ?? null,
    algorithm: usable?.algorithm ?? null,
    quantization: usable?.method ?? null,
    memory_bytes: usable?.memoryBytes ?? null,
    runs: usable === undefined ? false : usable.runs ?? null,
    reason: verdict.kind === "unusable" ? verdict.reason : null,
  };
}

/** Time since, in the largest unit that is there once. */
function ago(ms: number): string {
  const minutes = Math.max(0, ms) / 60_000;
  const units: [number, string][] = [[60 * 24, "day"], [60, "hour"], [1, "minute"]];
  const [length, unit] = units.find(([length]) => minutes >= length) ?? [1, ""];
  if (unit === "") return "just now";
  const count = Math.floor(minutes / length);
  return `${count} ${unit}${count === 1 ? "" : "s"} ago`;
}
