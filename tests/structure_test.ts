import { deepEqual, equal, ok } from "node:assert/strict";
import { circles, folderImports, longComments, readImports } from "./structure.ts";

Deno.test("no file leads back to itself through its imports", async () => {
  const imports = await readImports();
  ok(imports.size > 250, `${imports.size} files`);
  deepEqual(circles(imports), []);
});

Deno.test("imports go one way between folders", async () => {
  deepEqual(circles(folderImports(await readImports())), []);
});

Deno.test("comments keep to 120 columns", async () => {
  deepEqual(await longComments(), []);
});

Deno.test("circles are found, also through several steps", () => {
  const edges = new Map([["a", ["b"]], ["b", ["c"]], ["c", ["a", "d"]], ["d", ["e"]], ["e", [
    "d",
  ]]]);
  deepEqual(circles(edges).toSorted(), [["a", "b", "c"], ["d", "e"]]);
  equal(circles(new Map([["a", ["b", "c"]], ["b", ["c"]], ["c", []]])).length, 0);
});
