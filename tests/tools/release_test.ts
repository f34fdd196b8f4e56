import { deepEqual, equal, match, rejects, throws } from "node:assert/strict";
import { parser } from "npm:keep-a-changelog@3.1.0";
import denoJson from "../../deno.json" with { type: "json" };
import { targetIn } from "../../tools/compile.ts";
import { checksums } from "../../tools/release/checksums.ts";
import { releaseNotes } from "../../tools/release/notes.ts";
import { outputOf } from "../../tools/release/targets.ts";
import { ANSWER, PROMPT, tryProgram } from "../../tools/release/try.ts";

const ROOT = new URL("../../", import.meta.url);
const CHANGELOG = await Deno.readTextFile(new URL("CHANGELOG.md", ROOT));

const EXAMPLE = `# Changelog

## 0.3.0 - Unreleased

### Added

- A thing.

## [0.2.0] - 2026-11-22

One sentence that goes
on.

### Added

- A flag, \`--flag\`,
  which goes on.
- Another.

### Fixed

- A fault.

## 0.1.0 - 2026-11-01
`;

async function inFolder(test: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "eyrie-release-test-" });
  try {
    await test(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

Deno.test("the changelog's newest version is the one in deno.json, and says what it has", () => {
  const [newest] = parser(CHANGELOG).releases.filter(({ version }) => version !== undefined);
  equal(newest?.version, denoJson.version);
  const dated = CHANGELOG.replace("- Unreleased", "- 2026-11-22");
  match(releaseNotes(dated, `v${denoJson.version}`, denoJson.version), /^[^#]+\n\n### Added\n- \S/);
});

Deno.test("notes are a version's own, in whole lines: GitHub breaks them where they break", () => {
  equal(
    releaseNotes(EXAMPLE, "v0.2.0", "0.2.0"),
    "One sentence that goes on.\n\n### Added\n- A flag, `--flag`, which goes on.\n- Another.\n\n" +
      "### Fixed\n- A fault.",
  );
});

Deno.test("notes that cannot be are refused", () => {
  const refuses = (version: string, built: string, why: RegExp) =>
    throws(() => releaseNotes(EXAMPLE, version, built), why);
  refuses("v0.2.1", "0.2.0", /Cannot release "v0.2.1": deno.json has version 0.2.0/);
  refuses("0.4.0", "0.4.0", /has no such version, but 0.3.0, 0.2.0, 0.1.0/);
  refuses("0.3.0", "0.3.0", /has no date for it/);
  refuses("0.1.0", "0.1.0", /says nothing of it/);
});

Deno.test("checksums are those that sha256sum checks", () =>
  inFolder(async (folder) => {
    await Deno.writeTextFile(`${folder}/b.txt`, "hello\n");
    await Deno.writeFile(`${folder}/a`, new Uint8Array(200_000).fill(7));
    const text = await checksums(folder);
    deepEqual(text.split("\n").map((line) => line.slice(64)), ["  a", "  b.txt", ""]);
    match(text, /^5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03 {2}b\.txt$/m);
    // Its own output counts for nothing.
    await Deno.writeTextFile(`${folder}/SHA256SUMS`, text);
    equal(await checksums(folder), text);
    if (Deno.build.os === "linux") {
      const args = ["--check", "--strict", "SHA256SUMS"];
      equal((await new Deno.Command("sha256sum", { args, cwd: folder }).output()).code, 0);
    }
    await Deno.mkdir(`${folder}/inner`);
    await rejects(() => checksums(folder), /"inner" is no file/);
    await Deno.mkdir(`${folder}/inner/empty`);
    await rejects(() => checksums(`${folder}/inner/empty`), /holds no files/);
  }));

Deno.test("a target is one of the five, and names its file", () => {
  equal(targetIn([]), undefined);
  equal(outputOf(targetIn(["--target", "windows-x64"])), "dist/eyrie-windows-x64.exe");
  equal(outputOf(targetIn(["--target=linux-arm64"])), "dist/eyrie-linux-arm64");
  throws(() => targetIn(["--target", "linux"]), /allowed is one of linux-x64, linux-arm64, macos/);
  throws(() => targetIn(["--taget", "linux-x64"]), /Unknown option '--taget'/);
});

Deno.test("what a release has is started: the right version, the embedded model's answer", async () => {
  const main = new URL("main.ts", ROOT).pathname;
  const config = new URL("deno.json", ROOT).pathname;
  const lines = await tryProgram([Deno.execPath(), "run", "-A", "-c", config, main], true);
  deepEqual(lines, [`eyrie --version: ${denoJson.version}`, `eyrie generate: ${ANSWER.trim()}`]);
});

Deno.test({
  name: "a program that says or does anything else fails",
  ignore: Deno.build.os === "windows",
  async fn() {
    const shell = (script: string) => ["sh", "-c", script, "eyrie"] as const;
    const version = `if [ "$1" = --version ]; then echo eyrie ${denoJson.version}; exit; fi;`;
    await rejects(() => tryProgram(shell("echo eyrie 0.0.9"), false), /printed "eyrie 0.0.9/);
    await rejects(() => tryProgram(shell(`${version} echo 1, 2`), true), /printed "1, 2\\n" for/);
    const right = `for last; do :; done; echo "${ANSWER.trim()}"; [ "$last" = "${PROMPT}" ]`;
    equal((await tryProgram(shell(`${version} ${right}`), true)).length, 2);
    await rejects(() => tryProgram(shell(`${version} ${right}; exit 3`), true), /ended with 3/);
    deepEqual(await tryProgram(shell(version), false), [
      `eyrie --version: ${denoJson.version}`,
      "no WebGPU adapter here: eyrie generate was not tried",
    ]);
  },
});
