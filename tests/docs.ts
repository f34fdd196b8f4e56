/**
 * What README.md, CONTRIBUTING.md, CHANGELOG.md, docs/ and lab/notebook/ say that can be checked: links, paths, flags,
 * conflict markers.
 */

const ROOT = new URL("../", import.meta.url);

/** Pages by path from the root. */
export async function readPages(): Promise<Map<string, string>> {
  const paths = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "models/fledgling/README.md"];
  for (const folder of ["docs/", "docs/kernels/", "lab/notebook/"]) {
    for await (const { name } of Deno.readDir(new URL(folder, ROOT))) {
      if (name.endsWith(".md")) paths.push(folder + name);
    }
  }
  const texts = paths.map((path) => Deno.readTextFile(new URL(path, ROOT)));
  return new Map((await Promise.all(texts)).map((text, index) => [paths[index] as string, text]));
}

/** Conflict markers of git that a page has, also where a formatter has moved them into a sentence. */
export function conflictMarkers(page: string, text: string): string[] {
  return [...text.matchAll(/(?<![<>=|])(?:<{7}|\|{7}|={7}|>{7})(?![<>=|]).*/g)].map(([line]) =>
    `${page}: ${line}`
  );
}

/** The anchor that GitHub gives a heading. */
export function anchorOf(heading: string): string {
  return heading.toLowerCase().replaceAll(/[^\p{L}\p{N} _-]/gu, "").replaceAll(" ", "-");
}

/** A text without its blocks of code. */
const prose = (text: string): string => text.replaceAll(/^```[^]*?^```$/gm, "");

/** Links and pictures of a page that lead nowhere: a file that is not there, or no such heading. */
export async function brokenLinks(page: string, text: string): Promise<string[]> {
  const broken: string[] = [];
  for (const [, target = ""] of prose(text).matchAll(/\]\(([^()\s]+)\)/g)) {
    if (/^[a-z]+:/.test(target)) continue;
    const url = new URL(target, new URL(page, ROOT));
    const anchor = url.hash.slice(1);
    url.hash = "";
    const found = await Deno.stat(url).then(() => true, () => false);
    if (!found || (anchor !== "" && !anchors(await Deno.readTextFile(url)).has(anchor))) {
      broken.push(`${page}: ${target}`);
    }
  }
  return broken;
}

function anchors(text: string): Set<string> {
  return new Set([...prose(text).matchAll(/^#+ (.*)$/gm)].map(([, title = ""]) => anchorOf(title)));
}

/** Files and folders of the checkout, folders with a slash at their end. */
export async function checkoutPaths(): Promise<string[]> {
  const paths: string[] = [];
  const visit = async (folder: string): Promise<void> => {
    for await (const { name, isDirectory } of Deno.readDir(new URL(folder, ROOT))) {
      if (/^(\.git|\.gpu|node_modules|dist)$/.test(name)) continue;
      paths.push(`${folder}${name}${isDirectory ? "/" : ""}`);
      if (isDirectory) await visit(`${folder}${name}/`);
    }
  };
  await visit("./");
  return paths.map((path) => path.slice("./".length));
}

/**
 * Paths in a page's code that end no path of the checkout. `COMMIT:path` names a file of a commit and
 * is left alone, as is a form with a word in capitals (`src/draft/NAME.ts`).
 */
export function brokenPaths(page: string, text: string, paths: readonly string[]): string[] {
  const known = new Set(paths.flatMap((path) => {
    const parts = path.replace(/\/$/, "").split("/");
    return parts.map((_, from) => parts.slice(from).join("/"));
  }));
  const found = codeOf(text).flatMap((line) =>
    line.match(
      /(?<![\w/:.@-])(?:(?:src|kernels|lab|tests|tools|presets)\/[\w./-]*\w(?=\/?(?![\w/-]))|(?:[\w-]+\/)*[\w.-]+\.(?:ts|wgsl|py)(?![\w/-]))/g,
    ) ?? []
  );
  return found.filter((path) => !/\b[A-Z]{4,}/.test(path) && !known.has(path))
    .map((path) => `${page}: ${path}`);
}

/**
 * Each `COMMIT:path` of a page's code that is no file of that commit, by `git`. A commit that this
 * clone does not have, as a shallow one, says nothing.
 */
export async function brokenRevisions(page: string, text: string): Promise<string[]> {
  const found = codeOf(text).flatMap((line) =>
    line.match(/(?<![\w/:.-])[0-9a-f]{7,40}:[\w./-]*\w/g) ?? []
  );
  const broken: string[] = [];
  for (const revision of new Set(found)) {
    const [commit = ""] = revision.split(":");
    if (await isObject(`${commit}^{commit}`) && !await isObject(revision)) {
      broken.push(`${page}: ${revision}`);
    }
  }
  return broken;
}

/** Whether git has an object; false where there is no git. */
async function isObject(name: string): Promise<boolean> {
  const git = new Deno.Command("git", {
    args: ["cat-file", "-e", name],
    cwd: ROOT,
    stdout: "null",
    stderr: "null",
  });
  return await git.output().then(({ success }) => success, () => false);
}

/** Code of a page: blocks for a shell, line by line, and spans. */
function codeOf(text: string): string[] {
  const blocks = [...text.matchAll(/^```sh\n([^]*?)^```$/gm)];
  const spans = [...prose(text).matchAll(/`([^`]+)`/g)];
  return [
    ...blocks.flatMap(([, each = ""]) => each.replaceAll(/\\\n/g, "").split("\n")),
    ...spans.map(([, each = ""]) => each.replaceAll(/\s+/g, " ")),
  ];
}

/** Arguments of each `eyrie ...` in a page's code; not of forms, such as `eyrie rm NAME...`. */
export function commandsIn(text: string): string[][] {
  return codeOf(text).filter((line) =>
    /^eyrie [a-z]/.test(line) && !/[$[]|\.\.\.|q8\|q4/.test(line)
  )
    .map((line) => words(line).slice(1));
}

/** Words as a shell parts them, up to a comment, a pipe or a redirection. */
function words(command: string): string[] {
  const found = command.match(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g) ?? [];
  const end = found.findIndex((word) => /^[#|>]/.test(word));
  return (end < 0 ? found : found.slice(0, end)).map((word) =>
    word.replace(/'([^']*)'|"([^"]*)"/g, "$1$2")
  );
}

/** All flags that a page's code has. */
export function flagsIn(text: string): string[] {
  return codeOf(text).flatMap((line) => line.match(/(?<![\w-])--[a-z][\w-]*/g) ?? []);
}
