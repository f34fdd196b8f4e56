/** `deno task licences`: prints the licences of the bundled packages, which must be distributed with their code. */
import { fileURLToPath } from "node:url";
import { runTool, say } from "../tool.ts";

/** The output of `deno info --json` for a program. */
interface Info {
  readonly modules: readonly { readonly kind?: string; readonly npmPackage?: string }[];
  readonly npmPackages: Readonly<Record<string, NpmPackage>>;
}

interface NpmPackage {
  readonly name: string;
  readonly version: string;
  /** Keys of `npmPackages`. */
  readonly dependencies: readonly string[];
  readonly localPath: string;
}

/**
 * The text of all licences, package after package. A text that several packages share appears once.
 *
 * @throws Error if a package neither contains a licence nor names one.
 */
export async function thirdParty(root: URL): Promise<string> {
  const byText = new Map<string, string[]>();
  for (const each of reachable(await infoOf(root))) {
    const text = await licenceOf(each);
    byText.set(text, [...byText.get(text) ?? [], `${each.name} ${each.version}`]);
  }
  const parts = [...byText].map(([text, names]) => `${names.join("\n")}\n\n${text}\n`);
  return parts.join(`\n${"-".repeat(80)}\n\n`);
}

async function infoOf(root: URL): Promise<Info> {
  // Listed packages may not have been downloaded yet.
  await deno(root, ["cache", "--quiet", "main.ts"]);
  return JSON.parse(await deno(root, ["info", "--json", "main.ts"])) as Info;
}

async function deno(root: URL, args: string[]): Promise<string> {
  const cwd = fileURLToPath(root);
  const child = new Deno.Command(Deno.execPath(), { args, cwd, stdin: "null", stderr: "inherit" });
  const { code, stdout } = await child.output();
  if (code !== 0) throw new Error(`Cannot list packages: deno ${args[0]} ended with code ${code}`);
  return new TextDecoder().decode(stdout);
}

/** The packages that the program imports, and the packages that these import. Packages of types contain no code. */
function reachable({ modules, npmPackages }: Info): NpmPackage[] {
  const seen = new Set<string>();
  const queue = modules.flatMap(({ npmPackage }) => npmPackage === undefined ? [] : [npmPackage]);
  for (let id = queue.pop(); id !== undefined; id = queue.pop()) {
    const found = npmPackages[id];
    if (found === undefined || seen.has(id) || found.name.startsWith("@types/")) continue;
    seen.add(id);
    queue.push(...found.dependencies);
  }
  return [...seen].toSorted().flatMap((id) => npmPackages[id] ?? []);
}

async function licenceOf({ name, localPath }: NpmPackage): Promise<string> {
  const files = await Array.fromAsync(Deno.readDir(localPath), ({ name }) => name);
  const own = files.filter((file) => /^(licen[cs]e|notice|copying)/i.test(file)).toSorted();
  if (own.length > 0) {
    const texts = own.map((file) => Deno.readTextFile(`${localPath}/${file}`));
    return (await Promise.all(texts)).map((text) => text.trim()).join("\n\n");
  }
  const { license, author } = JSON.parse(await Deno.readTextFile(`${localPath}/package.json`));
  if (typeof license !== "string") throw new Error(`Cannot pack "${name}": it names no licence`);
  return [license, personOf(author)].filter(Boolean).join(", by ");
}

function personOf(author: unknown): string {
  return typeof author === "string"
    ? author
    : (author as { name?: string } | undefined)?.name ?? "";
}

if (import.meta.main) {
  await runTool(async () => {
    const text = await thirdParty(new URL("../../", import.meta.url));
    await say(Deno.stdout, text.trimEnd());
    return 0;
  });
}
