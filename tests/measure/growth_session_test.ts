import assert from "node:assert/strict";
import { growth, type GrowthEvent } from "../../src/measure/growth/session.ts";

async function events(
  axes: Parameters<typeof growth>[0]["axes"],
  { stopAfter = Infinity, models = [{ model: { draft: "none" } }] }: {
    readonly stopAfter?: number;
    readonly models?: Parameters<typeof growth>[0]["models"];
  } = {},
): Promise<GrowthEvent[]> {
  const stop = new AbortController();
  const found: GrowthEvent[] = [];
  for await (const event of growth({ models, axes, repeat: 1, signal: stop.signal })) {
    found.push(event);
    if (found.filter(({ kind }) => kind === "row").length >= stopAfter) stop.abort();
  }
  return found;
}

Deno.test("growth: rounds of every axis and a prefill a context; what has no room is left out", async () => {
  const found = await events({ context: [0, 40, 5000], batch: [1, 2], rows: [1] });
  const rows = found.flatMap((event) => event.kind === "row" ? [event.row] : []);
  assert.deepEqual(rows.map(({ kind, axis, context, batch }) => [kind, axis, context, batch]), [
    ["round", "context", 0, 1],
    ["round", "context", 40, 1],
    ["prefill", "context", 40, 1],
    ["round", "batch", 0, 1],
    ["round", "batch", 0, 2],
  ]);
  assert.ok(rows.every(({ ms, bytes, flops }) => ms > 0 && bytes > 0 && flops > 0));
  const [, , , one, two] = rows;
  assert.ok((two?.memory.kv ?? 0) > (one?.memory.kv ?? Infinity));
  const skipped = found.flatMap((event) => event.kind === "skipped" ? [event] : []);
  assert.deepEqual(skipped.map(({ what }) => what), ["fledgling, context 5000"]);
  assert.match(skipped[0]?.why ?? "", /^the model has 1024 positions/);
  const points = found.flatMap((event) => event.kind === "point" ? [event.done] : []);
  assert.deepEqual(points, [0, 1, 2, 3]);
});

Deno.test("growth: an abort ends it after the point in flight", async () => {
  const found = await events({ context: [40], batch: [1, 2, 3], rows: [2] }, { stopAfter: 1 });
  assert.deepEqual(found.map(({ kind }) => kind), ["point", "row"]);
});
