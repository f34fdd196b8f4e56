/**
 * `deno task npm:pack`: the package that `npx eyrie` runs, as a folder, dist/npm, and a tarball beside
 * it: the bundle with the embedded model, and a launcher that starts it in npm's deno.
 */
import { fileURLToPath } from "node:url";
import denoJson from "../../deno.json" with { type: "json" };
import { bundle } from "../bundle.ts";
import { runTool, say } from "../tool.ts";
import { thirdParty } from "./licences.ts";
import { npmProgram } from "./npm.ts";

const ROOT = new URL("../../", import.meta.url);

/** The contents of package.json. The package depends on the version of Deno that packs it. */
export function packageJson(): Record<string, unknown> {
  return {
    name: "eyrie",
    version: denoJson.version,
    description: "Language models on WebGPU with EAGLE speculative decoding",
    license: "Apache-2.0",
    type: "module",
    bin: { eyrie: "bin/eyrie.mjs" },
    files: ["bin", "eyrie.js", "THIRD-PARTY.txt"],
    dependencies: { deno: Deno.version.deno },
    engines: { node: ">=20" },
    os: ["linux", "darwin", "win32"],
    cpu: ["x64", "arm64"],
  };
}

/** Creates a folder and writes the package into it. */
export async function writePackage(folder: string): Promise<void> {
  await Deno.mkdir(`${folder}/bin`, { recursive: true });
  const copy = (from: string, to: string) => Deno.copyFile(new URL(from, ROOT), `${folder}/${to}`);
  await copy("tools/npm/launcher.mjs", "bin/eyrie.mjs");
  if (Deno.build.os !== "windows") await Deno.chmod(`${folder}/bin/eyrie.mjs`, 0o755);
  await copy("tools/npm/README.md", "README.md");
  await copy("LICENSE", "LICENSE");
  const json = `${JSON.stringify(packageJson(), null, 2)}\n`;
  await Deno.writeTextFile(`${folder}/package.json`, json);
  await Deno.writeTextFile(`${folder}/THIRD-PARTY.txt`, await thirdParty(ROOT));
  await bundle(`${folder}/eyrie.js`);
}

/** Makes the tarball of a package's folder. @throws Error if npm cannot make it. */
export async function tarball(folder: string, destination: string): Promise<string> {
  const [npm, ...first] = npmProgram("npm");
  const args = [...first, "pack", "--silent", folder, "--pack-destination", destination];
  const child = new Deno.Command(npm, { args, stdin: "null", stderr: "inherit" });
  const { code, stdout } = await child.output().catch((cause) => {
    throw new Error('Cannot run "npm": it is not installed', { cause });
  });
  if (code !== 0) throw new Error(`Cannot pack "${folder}": npm ended with code ${code}`);
  return `${destination}/${new TextDecoder().decode(stdout).trim()}`;
}

if (import.meta.main) {
  await runTool(async () => {
    const dist = fileURLToPath(new URL("dist", ROOT));
    const folder = `${dist}/npm`;
    await Deno.remove(folder, { recursive: true }).catch(() => {}); // not there yet
    await writePackage(folder);
    const path = await tarball(folder, dist);
    const { size } = await Deno.stat(path);
    await say(Deno.stdout, `${path}, ${(size / 1e6).toFixed(1)} MB: npm install ${path}`);
    return 0;
  });
}
