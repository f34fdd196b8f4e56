import { equal, match } from "node:assert/strict";
import { compile, compileAdvice } from "../../tools/compile.ts";
import { EXHAUSTIVE } from "../exhaustive.ts";

Deno.test("a base that cannot be downloaded is explained", () => {
  const url = "https://dl.deno.land/release/v2.9.6/denort-x86_64-unknown-linux-gnu.zip";
  const advice = compileAdvice(`Check main.ts
Download ${url}
error: Writing deno compile executable to temporary file 'dist/eyrie.tmp-5fea'

Caused by:
    0: Setting up base binary.
    1: error sending request for url (${url}): client error (Connect): dns error
`);
  match(advice ?? "", /could not be downloaded\n {2}from https:\S+denort\S+\.zip\n/);
  match(advice ?? "", /DENORT_BIN=/);
});

Deno.test("other failures speak for themselves", () => {
  equal(compileAdvice('error: Module not found "main.ts"'), undefined);
  equal(compileAdvice(""), undefined);
});

Deno.test({
  name: "a compiled program is whole, whatever runtime it is put behind",
  // Only behind ELF is anything put without reading it.
  ignore: Deno.build.os !== "linux",
  async fn(t) {
    const folder = await Deno.makeTempDir({ prefix: "eyrie-compile-test-" });
    // Deno itself stands for its runtime, denort, which is in no registry of packages.
    Deno.env.set("DENORT_BIN", Deno.execPath());
    try {
      for (const target of ["linux-x64", ...EXHAUSTIVE ? ["linux-arm64"] : []]) {
        await t.step(target, async () => {
          const output = `${folder}/${target}`;
          equal(await compile(target, output), 0);
          const base = await Deno.stat(Deno.execPath());
          using file = await Deno.open(output);
          await file.seek(base.size, Deno.SeekMode.Start);
          const text = await new Response(file.readable).text();
          // The bundle's last function holds the package of grammars.
          match(text, /function eyrieGrammar\(\) \{\n\/\/[A-Za-z0-9+/]{500000}/);
          match(text, /"no-legacy-abort"/);
        });
      }
    } finally {
      Deno.env.delete("DENORT_BIN");
      await Deno.remove(folder, { recursive: true });
    }
  },
});
