import { equal, match } from "node:assert/strict";
import { compileAdvice } from "../../tools/compile.ts";

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
