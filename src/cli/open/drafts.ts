import { join } from "node:path";
import pairs from "../../../presets/drafts.json" with { type: "json" };
import { UsageError } from "../../errors.ts";
import { nearest } from "../../hub/nearby.ts";
import { isFile } from "./is_there.ts";

/** A published draft and the model that it was trained for. */
interface Pair {
  readonly target: string;
  readonly draft: string;
  readonly algorithm: string;
}

/** The hub takes names in any case. */
const PAIRS: readonly Pair[] = pairs;

/**
 * The draft that `--draft auto` stands for: the first one known for the target, or why there is none.
 *
 * @param target `org/name`; undefined where a folder does not name it.
 * @param algorithm the draft's algorithm, where one was asked for.
 */
export function knownDraft(
  target: string | undefined,
  { model, algorithm }: { readonly model: string; readonly algorithm?: string | undefined },
): { readonly draft: string } | { readonly why: string } {
  const wanted = target?.toLowerCase();
  const found = PAIRS.filter((pair) => pair.target.toLowerCase() === wanted);
  const pair = found.find((pair) => algorithm === undefined || pair.algorithm === algorithm);
  if (pair !== undefined) return { draft: pair.draft };
  if (target === undefined) return { why: `the folder "${model}" does not say which model it is` };
  const kind = found.length > 0 ? `${algorithm} draft` : "draft";
  return { why: `no ${kind} for "${target}" is known` };
}

/** Models of the hub that are targets or drafts of the known pairs. */
export function knownModels(): string[] {
  return [...new Set(PAIRS.flatMap(({ target, draft }) => [target, draft]))];
}

/** Models of the hub that may have been meant by `text`, of those known with their drafts; most alike first. */
export function knownLike(text: string): string[] {
  const end = (name: string) => name.slice(name.lastIndexOf("/") + 1).length;
  return nearest(text, knownModels()).toSorted((a, b) => end(a) - end(b)).slice(0, 3);
}

/**
 * Finds a known pair: by the draft where one is named, else the first pair of the target.
 *
 * @param draft `org/name`; absent: the first one for the target.
 */
export function knownPair(
  target: string,
  { draft, algorithm }: {
    readonly draft?: string | undefined;
    readonly algorithm?: string | undefined;
  },
): Pick<Pair, "draft" | "algorithm"> | undefined {
  const same = (a: string, b: string) => a.toLowerCase() === b.toLowerCase();
  return PAIRS.find((pair) =>
    (draft === undefined ? same(pair.target, target) : same(pair.draft, draft)) &&
    (algorithm === undefined || pair.algorithm === algorithm)
  );
}

/** Folders of heads that come next to their target's folder, as models/fledgling has them. */
const NEAR = ["eagle3", "eagle1"];

/**
 * The head that lies next to a target's folder: `eagle3`, or `eagle1`.
 *
 * @param algorithm what the draft must be, where that was said.
 */
export function draftNextTo(folder: string, algorithm?: string): string | undefined {
  const wanted = algorithm === "EAGLE" ? NEAR.slice(1) : algorithm ? NEAR.slice(0, 1) : NEAR;
  return wanted.map((name) => join(folder, "..", name))
    .find((path) => isFile(join(path, "config.json")));
}

/** Says how to name a draft. */
export function unknownDraft(why: string): UsageError {
  return new UsageError(
    `Cannot use "--draft auto": ${why}; name one with --draft org/name or --draft FOLDER, ` +
      `or go without by --draft none (presets/drafts.json lists the known ones)`,
  );
}
