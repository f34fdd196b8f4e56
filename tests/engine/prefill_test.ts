import assert from "node:assert/strict";
import { readBuffer } from "../../src/gpu/readback.ts";
import { GREEDY } from "../../src/speculate/sampling.ts";
import { chain } from "../../src/speculate/round_shape.ts";
import { openFledgling, openWhole } from "./fledgling.ts";

/** Any tokens do. */
const PROMPT = Array.from({ length: 150 }, (_, i) => 3 + (i * 7919) % 2000);

Deno.test("a prompt has the same bits and the same drafts however it is cut into chunks", async () => {
  const runner = await openFledgling("eagle3", 1);
  const { logits } = runner.models.target;
  let expected: unknown;
  for (const rows of [256, 64, 48, 17]) {
    using sequence = openWhole(runner);
    runner.setSampling(sequence, GREEDY);
    sequence.ids.push(...PROMPT);
    let token: number | undefined;
    while (token === undefined) {
      const to = Math.min(PROMPT.length, sequence.stored + rows);
      const [chosen] = await runner.prefill([{ sequence, to }]);
      token = chosen?.id;
    }
    const row = new Uint32Array(await readBuffer(runner.gpu, logits)).slice(0, 2048);
    const rounds = await runner.rounds([sequence], { shape: chain(3), count: 2 });
    const found = { row, ids: [...sequence.ids], rounds: rounds.map(({ sequences }) => sequences) };
    expected ??= found;
    assert.deepEqual(found, expected, `chunks of ${rows}`);
  }
  runner.gpu[Symbol.dispose]();
});
