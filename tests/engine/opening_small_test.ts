import assert from "node:assert/strict";
import { variable } from "../variable.ts";
import { openEngine } from "./open.ts";

Deno.test("a context that is too short to measure costs in opens all the same", async () => {
  const cache = await Deno.makeTempDir();
  const warnings: string[] = [];
  try {
    using _ = variable("XDG_CACHE_HOME", cache);
    using engine = await openEngine({
      limits: { contextLength: 64, maxBatch: 2, sloItlMs: 50 },
      hooks: { onWarning: (line) => warnings.push(line) },
    });
    assert.equal(engine.costs.table, undefined);
  } finally {
    await Deno.remove(cache, { recursive: true });
  }
  assert.ok(
    warnings.some((line) => line.startsWith("--slo-itl-ms may not be held")),
    `${warnings}`,
  );
});
