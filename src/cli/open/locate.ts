/** Turns what `--model` and `--draft` name into folders before anything is opened. */
import { reason, UsageError } from "../../errors.ts";
import { readText } from "../../hub/cache.ts";
import { NoSuchModelError } from "../../hub/http.ts";
import { nearest } from "../../hub/nearby.ts";
import { searchModels } from "../../hub/search.ts";
import { download, downloadFile, type Hub } from "../../hub/download.ts";
import type { Snapshot } from "../../hub/snapshot.ts";
import { modelText, parseFilePlace, parsePlace, type Place } from "../../hub/names.ts";
import { cachedRepos } from "../../hub/scan.ts";
import { type HubSettings, hubSettings } from "../../hub/settings.ts";
import { DEFAULT_HOST_ALGORITHM, draftsAlone, isHostAlgorithm } from "../../draft/algorithms.ts";
import { didYouMean } from "../options/nearest.ts";
import { draftNextTo, knownDraft, knownModels, unknownDraft } from "./drafts.ts";
import { refuseGguf } from "./gguf.ts";
import { isThere } from "./is_there.ts";
import { checkFolder, meantFolder } from "./missing.ts";
import { refuseTexts } from "./refuse_texts.ts";
import type { Io } from "../terminal/io.ts";
import { type StatusLine, statusLine } from "../terminal/progress.ts";
import { warn } from "../terminal/warn.ts";

/** The options that name models. */
export interface Named {
  readonly model?: string | undefined;
  readonly draft?: string | undefined;
  readonly algorithm?: string | undefined;
  readonly donor?: string | undefined;
  readonly tokenMap?: string | undefined;
}

/** Where progress and notes are written. */
export interface Notices {
  readonly io: Io;
  readonly quiet: boolean;
  /** Where no draft is known for the model, draft from the text itself instead of failing. */
  readonly textDrafts?: boolean;
  /** Where the cache and the hub are; absent: as the environment says. */
  readonly hub?: HubSettings;
}

/** Wraps `open` for options whose models may be names of the hub: it first downloads what is missing. */
export function located<Options extends Named, Opened>(
  open: (options: Options) => Promise<Opened>,
  notices: Notices,
): (options: Options) => Promise<Opened> {
  return async (options) => await open(await locate(options, notices));
}

/** The same for the options of an engine. */
export function locatedModel<Options extends { readonly model?: Named }, Opened>(
  open: (options: Options) => Promise<Opened>,
  notices: Notices,
): (options: Options) => Promise<Opened> {
  return async (options) =>
    await open({ ...options, model: await locate(options.model ?? {}, notices) });
}

/** What the embedded model is called, in the README and by a server. */
const EMBEDDED: readonly string[] = ["fledgling", "fledgling/target"];

/** Replaces the names in the options by folders. @throws UsageError where a model cannot be found or downloaded. */
export async function locate<Options extends Named>(
  options: Options,
  notices: Notices,
): Promise<Options> {
  const { model, algorithm, donor, tokenMap } = options;
  if (model !== undefined && EMBEDDED.includes(model) && !isThere(model)) {
    throw new UsageError(`Cannot use "${model}": it is the model that runs where none is named`);
  }
  const target = model === undefined ? undefined : parsePlace(model, isThere);
  const alone = algorithm === "NONE" || draftsAlone(algorithm);
  const { draft, ...chosen } = alone ? options : draftOf(options, target, notices);
  const places: { -readonly [K in "model" | "draft" | "donor" | "tokenMap"]?: string } = {};
  const status = statusLine(notices.io.stderr, { shown: !notices.quiet });
  try {
    if (target !== undefined) {
      places.model = await folderOf(target, notices, status, { isTarget: true });
    }
    if (draft === "none") places.draft = draft;
    else if (draft !== undefined) {
      places.draft = await folderOf(parsePlace(draft, isThere), notices, status);
    }
    if (donor !== undefined) {
      places.donor = await folderOf(parsePlace(donor, isThere), notices, status);
    }
    if (tokenMap !== undefined) {
      const file = parseFilePlace(tokenMap, isThere);
      const hub = openHub(notices, status);
      places.tokenMap = file ? await downloadFile(file.name, file.path, hub) : tokenMap;
    }
  } finally {
    status.clear();
  }
  const { model: _, draft: __, donor: ___, tokenMap: ____, ...rest } = options;
  return { ...rest, ...chosen, ...places } as Options;
}

/** Where the cache and the hub are. */
export function hubOfEnvironment(): HubSettings {
  return hubSettings((name) => Deno.env.get(name), readText);
}

/** A hub as the environment has it, drawing on `status`. */
function openHub({ io, quiet, hub }: Notices, status: StatusLine): Hub {
  return {
    settings: hub ?? hubOfEnvironment(),
    signal: io.signal,
    onProgress: status.download,
    onWarning: (line) => warn(line, { io, status, quiet }),
  };
}

interface Fetching extends Pick<Hub, "waits" | "onWeights"> {
  /** Whether the model is to be the target: see `refuseTexts`; default false. */
  readonly isTarget?: boolean;
}

/** Downloads; where Ctrl+C stops it, says that nothing is lost. */
export async function fetchModel(
  name: Snapshot["name"],
  notices: Notices,
  status: StatusLine,
  { isTarget = false, ...how }: Fetching = {},
): Promise<Snapshot> {
  const { io } = notices;
  const onTexts = (folder: string) => refuseTexts(folder, { name: modelText(name), isTarget });
  try {
    return await download(name, { ...openHub(notices, status), onTexts, ...how });
  } catch (error) {
    if (io.signal.aborted) {
      status.clear();
      io.stderr.write(
        "stopped; what has been downloaded is kept, and the same command continues\n",
      );
    }
    if (!(error instanceof UsageError)) throw error;
    const meant = meantFolder(name.repo) ||
      (error instanceof NoSuchModelError ? await meantModels(name, notices) : "");
    throw meant === "" ? error : new UsageError(error.message + meant, { cause: error });
  }
}

/** Suggests names for one that the hub does not have: similar ones of the hub, the cache and the known drafts. */
async function meantModels(name: Snapshot["name"], { hub, io }: Notices): Promise<string> {
  const settings = hub ?? hubOfEnvironment();
  const here = [...knownModels(), ...cachedNames(settings.cache)];
  const same = (other: string) => other.toLowerCase() === name.repo.toLowerCase();
  if (here.some(same)) return "";
  const all = new Set([...here, ...await searchModels(name, settings, io.signal)]);
  const near = nearest(name.repo, [...all].filter((each) => !same(each)));
  const short = near.toSorted((a, b) => a.length - b.length).slice(0, 3);
  return didYouMean(short.map((each) => `"${each}"`));
}

/** Names to suggest: none where the cache cannot be read, which is not what the message is about. */
function cachedNames(cache: string): readonly string[] {
  try {
    return cachedRepos(cache);
  } catch (error) {
    if (error instanceof UsageError) return [];
    throw error;
  }
}

/** The folder of a model, which is downloaded where it is not there. */
export async function folderOf(
  place: Place,
  notices: Notices,
  status: StatusLine,
  how: Fetching = {},
): Promise<string> {
  if (place.kind === "hub") return (await fetchModel(place.name, notices, status, how)).folder;
  const { cache, offline } = notices.hub ?? hubOfEnvironment();
  checkFolder(place.path, { cached: () => cachedNames(cache), offline });
  refuseGguf(place.path);
  return place.path;
}

/** The draft; if `auto` finds none, the algorithm that drafts without a model. */
function draftOf(
  { model, draft, algorithm }: Named,
  target: Place | undefined,
  { io, quiet, textDrafts = false }: Notices,
): Pick<Named, "draft" | "algorithm"> {
  if (draft !== "auto") return draft === undefined ? {} : { draft };
  // The embedded model has its own heads: one of them is the default.
  if (model === undefined || target === undefined) return {};
  const tell = (line: string) => quiet || io.stderr.write(`draft: ${line}\n`);
  const any = isHostAlgorithm(algorithm) ? undefined : algorithm;
  const found = autoDraft(target, { model, algorithm: any });
  if ("draft" in found) {
    tell(`${found.draft} (${found.source})`);
    return { draft: found.draft };
  }
  if (!textDrafts || any !== undefined) throw unknownDraft(found.why);
  const instead = algorithm ?? DEFAULT_HOST_ALGORITHM;
  tell(`from the text itself (${instead}; ${found.why})`);
  return { algorithm: instead };
}

/** The draft that `auto` stands for and how it was found, or why there is none. */
export function autoDraft(
  target: Place,
  { model, algorithm }: { readonly model: string; readonly algorithm: string | undefined },
): { readonly draft: string; readonly source: string } | { readonly why: string } {
  const name = target.kind === "hub" ? target.name.repo : nameInConfig(target.path);
  const found = knownDraft(name, { model, algorithm });
  if ("draft" in found) return { draft: found.draft, source: `known for ${name}` };
  const near = target.kind === "folder" ? draftNextTo(target.path, algorithm) : undefined;
  return near === undefined ? found : { draft: near, source: "the folder next to the model's" };
}

/** The model's name in config.json: transformers writes there what a model was loaded from before it was saved. */
function nameInConfig(folder: string): string | undefined {
  const path = `${folder}/config.json`;
  const text = readText(path);
  if (text === undefined) return undefined;
  try {
    const name: unknown = JSON.parse(text)?._name_or_path;
    const place = typeof name === "string" ? parsePlace(name, () => false) : undefined;
    return place?.kind === "hub" ? modelText({ ...place.name, revision: "main" }) : undefined;
  } catch (error) {
    throw new UsageError(`Cannot read "${path}": not JSON (${reason(error)})`, { cause: error });
  }
}
