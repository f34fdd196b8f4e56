import { deepEqual, equal, match } from "node:assert/strict";
import plugin, { importFault } from "./layers.ts";

function lint(file: string, source: string): string[] {
  const url = new URL(`../${file}`, import.meta.url);
  return Deno.lint.runPlugin(plugin, url.pathname, source).map(({ id }) => id);
}

Deno.test("imports go down the layers only", () => {
  const allowed: [string, string][] = [
    ["main.ts", "./src/cli/options/parse.ts"],
    ["src/cli/generate/generate.ts", "../../engine/schedule/events.ts"],
    ["src/cli/chat/state.ts", "../../text/stream.ts"],
    ["src/cli/chat/state.ts", "../terminal/io.ts"],
    ["src/engine/round.ts", "../../kernels/accept.ts"],
    ["src/model/lower/rewrites/norm_sum.ts", "../norms.ts"],
    ["src/model/lower/rewrites.ts", "./rewrites/norm_sum.ts"],
    ["src/model/graph/draft.ts", "../../../kernels/round/round.ts"],
    ["src/text/tokenizer.ts", "@huggingface/tokenizers"],
    ["src/text/tokenizer.ts", "../errors.ts"],
    ["src/speculate/choose.ts", "../defined.ts"],
    ["src/speculate/choose.ts", "../objects.ts"],
    ["kernels/accept.ts", "./accept.wgsl"],
    ["kernels/accept.ts", "../src/gpu/kernel.ts"],
    ["src/gpu/device.ts", "../errors.ts"],
    ["tests/anything_test.ts", "../src/gpu/device.ts"],
    ["tools/bundle.ts", "../src/model/folder.ts"],
  ];
  for (const [file, specifier] of allowed) equal(importFault(file, specifier), undefined, file);
  const refused: [string, string][] = [
    ["src/engine/open.ts", "../cli/generate/generate.ts"],
    ["src/model/graph/target.ts", "../../engine/schedule/events.ts"],
    ["src/text/stream.ts", "../model/config.ts"],
    ["src/text/stream.ts", "../speculate/noise.ts"],
    ["src/speculate/choose.ts", "../errors.ts"],
    ["src/speculate/choose.ts", "node:fs"],
    ["src/gpu/device.ts", "../model/config.ts"],
    ["src/gpu/device.ts", "../../kernels/accept.ts"],
    ["kernels/accept.ts", "../src/model/config.ts"],
    ["src/cli/generate/generate.ts", "../../../kernels/round/accept.ts"],
    ["src/errors.ts", "./gpu/device.ts"],
    ["src/cli/generate/generate.ts", "../../../tests/statistics.ts"],
    ["src/model/lower/rewrites/norm_sum.ts", "./branch_in_norm.ts"],
  ];
  for (const [file, specifier] of refused) {
    match(importFault(file, specifier) ?? "", /import/, file);
  }
});

Deno.test("the plugin sees every way to import", () => {
  const rule = "eyrie/layers";
  deepEqual(lint("src/gpu/x.ts", 'import { a } from "../model/a.ts"; a;'), [rule]);
  deepEqual(lint("src/gpu/x.ts", 'import type { A } from "../model/a.ts";'), [rule]);
  deepEqual(lint("src/gpu/x.ts", 'export { a } from "../model/a.ts";'), [rule]);
  deepEqual(lint("src/gpu/x.ts", 'export * from "../model/a.ts";'), [rule]);
  deepEqual(lint("src/gpu/x.ts", 'await import("../model/a.ts");'), [rule]);
  deepEqual(lint("src/gpu/x.ts", 'import { reason } from "../errors.ts"; reason;'), []);
});

Deno.test("default exports are refused in src and kernels only", () => {
  const rule = "eyrie/named-exports";
  deepEqual(lint("src/model/x.ts", "export default 1;"), [rule]);
  deepEqual(lint("kernels/x.ts", "const a = 1; export { a as default };"), [rule]);
  deepEqual(lint("kernels/x.ts", "export const a = 1;"), []);
  deepEqual(lint("tests/x.ts", "export default 1;"), []);
});

Deno.test("a literal is not spread into a literal", () => {
  const rule = "eyrie/spread-literals";
  deepEqual(lint("src/model/x.ts", "f({ ...{ a, b }, c });"), [rule]);
  deepEqual(lint("tests/x.ts", "f({ ...{ a } as const });"), [rule]);
  deepEqual(lint("src/model/x.ts", "f({ ...a, ...b && { c } });"), []);
});

Deno.test("a list of words is not spread into a list, in src and kernels", () => {
  const rule = "eyrie/spread-words";
  deepEqual(lint("kernels/x.ts", 'f([...["A", "B"], c]);'), [rule]);
  deepEqual(lint("src/model/x.ts", 'f([...a, ...["b"] as const]);'), [rule]);
  deepEqual(lint("src/model/x.ts", 'f([...a, ...b ? ["c"] : [], ...["d"].map(e), ...[g]]);'), []);
  deepEqual(lint("tests/x.ts", 'f([...["A", "B"], c]);'), []);
});
