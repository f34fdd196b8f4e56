import assert from "node:assert/strict";
import { serve } from "../shared.ts";

Deno.test("compatcanary: all its probes of a modern server pass", async () => {
  await using server = await serve();
  const { stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [
      ...["run", "-A", "--quiet", "--lock", new URL("../../deno.lock", import.meta.url).pathname],
      ...["npm:compatcanary@0.2.2", "scan", "--profile", "modern"],
      ...["--format", "json", "--model", "fledgling", "--base-url", `${server.url}/v1`],
    ],
  }).output();
  const text = new TextDecoder().decode(stdout);
  assert.ok(text.startsWith("{"), new TextDecoder().decode(stderr));
  const { results, compatible } = JSON.parse(text);
  const failed = results.filter(({ status }: { status: string }) => status !== "pass");
  assert.deepEqual(failed, []);
  assert.equal(results.length, 7);
  assert.ok(compatible);
});
