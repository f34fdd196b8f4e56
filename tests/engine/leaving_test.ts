import assert from "node:assert/strict";

const ROOT = new URL("../../", import.meta.url);

/** Runs a module's text in a process of its own; what it printed. */
async function ran(code: string): Promise<string> {
  const child = new Deno.Command(Deno.execPath(), {
    args: ["eval", "--no-check", code],
    cwd: ROOT,
    stdin: "null",
  });
  const { code: status, stdout, stderr } = await child.output();
  assert.equal(status, 0, new TextDecoder().decode(stderr));
  return new TextDecoder().decode(stdout);
}

const LEAVE = `
  const promptIds = await engine.encodePrompt({ raw: "Once" });
  const { GREEDY: sampling } = await import("./src/speculate/sampling.ts");
  const request = { promptIds, sampling, maxTokens: 900, stop: [], ignoreEos: true };
  for await (const { kind } of engine.submit(request)) if (kind === "round") break;
  console.log("left");
`;

Deno.test("a process ends by itself when the last generator is left", async (t) => {
  await t.step("with the engine in its own thread", async () => {
    const open = `const { openEngine } = await import("./src/engine/open.ts");
      const { statically } = await import("./src/engine/drafting.ts");
      const engine = await openEngine({ hooks: { plan: statically(3) } });`;
    assert.equal(await ran(open + LEAVE), "left\n");
  });
  await t.step("with the engine in a worker that is closed", async () => {
    const open = `const { engineInWorker } = await import("./src/engine/worker/client.ts");
      const engine = await engineInWorker(new URL("main.ts", "${ROOT.href}"))({});`;
    assert.equal(await ran(open + LEAVE + "await engine.terminate();"), "left\n");
  });
});
