import { deepEqual, equal, match, ok } from "node:assert/strict";
import denoJson from "../../deno.json" with { type: "json" };
import { thirdParty } from "../../tools/npm/licences.ts";
import { packageJson, tarball, writePackage } from "../../tools/npm/pack.ts";
import { tryPackage } from "../../tools/npm/try.ts";
import { ANSWER, runIn } from "../../tools/release/try.ts";
import { exhaustive } from "../exhaustive.ts";

const ROOT = new URL("../../", import.meta.url);

exhaustive.test("npx eyrie, from the packed tarball in an empty folder", async (t) => {
  const folder = await Deno.makeTempDir({ prefix: "eyrie-npm-test-" });
  try {
    await writePackage(`${folder}/package`);
    const path = await tarball(`${folder}/package`, folder);
    await t.step("the tarball has what is run, and nothing else", async () => {
      equal(path, `${folder}/eyrie-${denoJson.version}.tgz`);
      const { out } = await runIn(folder, ["tar"], ["tzf", path]);
      deepEqual(out.trim().split("\n").toSorted(), [
        "package/LICENSE",
        "package/README.md",
        "package/THIRD-PARTY.txt",
        "package/bin/eyrie.mjs",
        "package/eyrie.js",
        "package/package.json",
      ]);
    });
    await t.step("it is installed and used", async () => {
      const lines = await tryPackage(path, true);
      ok(lines.includes(`npx eyrie generate: ${ANSWER.trim()}`), lines.join("\n"));
      match(lines.at(-1) ?? "", /^signals: /);
    });
    await t.step("without its Deno it says so", async () => {
      const { code, out, err } = await runIn(folder, ["node"], ["package/bin/eyrie.mjs"]);
      deepEqual([code, out], [1, ""]);
      match(err, /^eyrie: Cannot start Deno: Cannot find module 'deno\/install_api.cjs'\n$/);
    });
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("the package brings the Deno that it was packed with", () => {
  const { name, version, dependencies } = packageJson();
  const deno = Deno.version.deno;
  deepEqual({ name, version, dependencies }, {
    name: "eyrie",
    version: denoJson.version,
    dependencies: { deno },
  });
});

Deno.test("licences of what is bundled go along, those of what tests use do not", async () => {
  const text = await thirdParty(ROOT);
  for (const name of ["hono", "zod", "@mlc-ai/web-xgrammar", "@huggingface/tokenizers"]) {
    match(text, new RegExp(`^${name} \\d`, "m"));
  }
  for (const name of ["puppeteer-core", "openai", "fast-check", "@types/"]) {
    equal(new RegExp(`^${name}`, "m").test(text), false, name);
  }
  match(text, /Permission is hereby granted/);
});
