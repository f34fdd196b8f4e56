/** The draft of `run`, `chat` and `serve` where none is named: a known head, else the text itself. */
import { reason, UsageError } from "../../errors.ts";
import { DEFAULT_HOST_ALGORITHM, draftsAlone, isHostAlgorithm } from "../../draft/algorithms.ts";
import type { NamedPolicy, SpeculationChoice } from "../../engine/schedule/speculation_choice.ts";
import { parsePlace } from "../../hub/names.ts";
import { bytesText } from "../../text/numbers.ts";
import { statusLine } from "../terminal/progress.ts";
import { unknownDraft } from "./drafts.ts";
import { isThere } from "./is_there.ts";
import { autoDraft, folderOf, locate, type Named, type Notices } from "./locate.ts";

/** The options that say who drafts. */
interface Drafting {
  readonly model?: Named;
  readonly speculation?: { readonly speculate?: SpeculationChoice | NamedPolicy };
}

/** One way to draft, and how it is described to the person. */
interface Attempt {
  readonly draft?: string;
  readonly algorithm?: string;
  readonly text: string;
}

/** Kinds of draft models for which none is looked for: there is none, or it must be named. */
const WITHOUT_HEAD = ["NONE", "NEXTN", "STANDALONE"];
/** Short waits: a head that the user did not name is not worth a long wait for a network that does not answer. */
const PATIENCE_MS: readonly number[] = [500];
const TEXT_ALONE = "from the text itself";

/**
 * Wraps `open` for options that may name no draft. The draft is then the head that is known for the model, or
 * drafts come from the text itself; a line on stderr says which. Where that way cannot be downloaded, does not
 * fit or cannot be opened, the next simpler one is tried, at last plain decoding. So whatever starts with
 * `--draft none` starts without the flag too.
 */
export function draftingByDefault<Options extends Drafting, Opened>(
  open: (options: Options) => Promise<Opened>,
  notices: Notices,
): (options: Options) => Promise<Opened> {
  return async (options) => {
    const model = await locate(options.model ?? {}, notices);
    if (!takesDefault(options)) return await open({ ...options, model });
    const tell = (line: string) => notices.quiet || notices.io.stderr.write(`draft: ${line}\n`);
    const attempts = await attemptsFor(options.model ?? {}, notices, tell);
    let unused: string | undefined;
    for (const [at, { text, ...drafting }] of attempts.entries()) {
      try {
        const opened = await open({ ...options, model: { ...model, ...drafting } });
        if (unused !== undefined) tell(`${text}; not ${unused}`);
        return opened;
      } catch (error) {
        const last = at === attempts.length - 1;
        if (last || notices.io.signal.aborted || !(error instanceof UsageError)) throw error;
        unused ??= `${text}: ${reason(error)}`;
      }
    }
    throw new Error("there is no way to open the model"); // attempts are never empty
  };
}

/** Whether the options ask for drafting but do not say what drafts. */
function takesDefault({ model: named = {}, speculation = {} }: Drafting): boolean {
  const { model, draft, algorithm } = named;
  const { speculate } = speculation;
  if (model === undefined || draft !== undefined) return false;
  if (draftsAlone(algorithm) || WITHOUT_HEAD.includes(algorithm ?? "")) return false;
  const off = speculate !== undefined && "policy" in speculate && speculate.policy === "off";
  return !off && speculate?.numSteps !== 0;
}

/**
 * Ways to draft, the best one first; the last is one that was allowed before there was a default. Writes
 * the line about the first.
 *
 * @throws UsageError where a kind of head was asked for and none is known.
 */
async function attemptsFor(
  { model = "", algorithm }: Named,
  notices: Notices,
  tell: (line: string) => void,
): Promise<Attempt[]> {
  const head = isHostAlgorithm(algorithm) ? undefined : algorithm;
  const found = autoDraft(parsePlace(model, isThere), { model, algorithm: head });
  const instead = algorithm ?? DEFAULT_HOST_ALGORITHM;
  const without: Attempt[] = head !== undefined ? [] : [
    { algorithm: instead, text: `${TEXT_ALONE} (${instead})` },
    ...algorithm === undefined ? [{ text: "none" }] : [],
  ];
  if (!("draft" in found)) {
    if (head !== undefined) throw unknownDraft(found.why);
    tell(`${TEXT_ALONE} (${instead}; ${found.why})`);
    return without;
  }
  try {
    const folder = await headFolder(found, notices, tell);
    return [{ draft: folder, text: found.draft }, ...without];
  } catch (error) {
    const only = without.length === 0;
    if (only || notices.io.signal.aborted || !(error instanceof UsageError)) throw error;
    tell(`${without[0]?.text}; not ${found.draft}: ${reason(error)}`);
    return without;
  }
}

/** The head's folder; before it is downloaded, the line says how large it is. */
async function headFolder(
  { draft, source }: { readonly draft: string; readonly source: string },
  notices: Notices,
  tell: (line: string) => void,
): Promise<string> {
  const { io, quiet } = notices;
  const status = statusLine(io.stderr, { shown: !quiet });
  let printed = false;
  const onWeights = (bytes: number) => {
    status.clear();
    tell(`${draft} (${source}), ${bytesText(bytes)} to download; --draft none does without it`);
    printed = true;
  };
  try {
    const how = { waits: PATIENCE_MS, onWeights };
    const folder = await folderOf(parsePlace(draft, isThere), notices, status, how);
    status.clear();
    if (!printed) tell(`${draft} (${source})`);
    return folder;
  } finally {
    status.clear();
  }
}
