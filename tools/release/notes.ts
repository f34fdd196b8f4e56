/** `deno task release:notes VERSION`: the section of CHANGELOG.md about a version, in Markdown. */
import { parser } from "npm:keep-a-changelog@3.1.0";
import denoJson from "../../deno.json" with { type: "json" };
import { UsageError } from "../../src/errors.ts";
import { operandIn, runTool, say } from "../tool.ts";

/**
 * The notes of a release, without their heading.
 *
 * @param version as in deno.json, also as a tag: `v0.1.0`.
 * @param built the version that would be released: another one's notes are a mistake.
 * @throws UsageError if the two versions differ, or if the changelog has no dated notes of the version.
 */
export function releaseNotes(changelog: string, version: string, built: string): string {
  const plain = version.replace(/^v/, "");
  const refuse = (why: string) => new UsageError(`Cannot release "${version}": ${why}`);
  if (plain !== built) throw refuse(`deno.json has version ${built}`);
  const { releases } = parser(changelog);
  const release = releases.find(({ version }) => version === plain);
  if (release === undefined) {
    const there = releases.map(({ version = "Unreleased" }) => version).join(", ");
    throw refuse(`CHANGELOG.md has no such version, but ${there || "none"}`);
  }
  if (release.date === undefined) throw refuse("CHANGELOG.md has no date for it");
  if (release.isEmpty()) throw refuse("CHANGELOG.md says nothing of it");
  return unbroken(release.toString().replace(/^## .*\n+/, "").trim());
}

/** Joins wrapped lines: GitHub would show every line break of a release's notes. */
function unbroken(markdown: string): string {
  return markdown.replaceAll(/(?<=\S)\n *(?=[^\s#-])/g, " ");
}

if (import.meta.main) {
  await runTool(async (args) => {
    const version = operandIn(args, "release:notes", "VERSION");
    const changelog = await Deno.readTextFile(new URL("../../CHANGELOG.md", import.meta.url));
    await say(Deno.stdout, releaseNotes(changelog, version, denoJson.version));
    return 0;
  });
}
