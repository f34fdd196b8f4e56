import assert from "node:assert/strict";
import { runCheck } from "../../src/cli/checkpoint/check.ts";
import { parseArguments } from "../../src/cli/options/parse.ts";
import type { DraftCheck, DraftReport } from "../../src/engine/check/check_draft.ts";
import { fakeIo } from "./fake.ts";

const WRONG = { theta: 1e6, rounds: 50, tokens: 119, acceptLength: 2.38, acceptanceRate: 0.46 };
const RIGHT = { ...WRONG, theta: 10_000, acceptLength: 2.5, acceptanceRate: 0.5 };
const TRAP: DraftReport = { draft: "d", theta: 1e6, measured: [WRONG, RIGHT], best: 10_000 };

async function run(
  args: string[],
  report: Partial<DraftReport> = {},
  heard: (asked: DraftCheck) => void = () => {},
): Promise<string> {
  const io = fakeIo();
  const invocation = parseArguments(["check", "--draft", "./head", ...args]);
  assert.ok(invocation.command === "check");
  const code = await runCheck(invocation.options, {
    check: () => assert.fail("no expected values were given"),
    checkQuantized: () => assert.fail("nothing is quantized"),
    checkDraft: (asked) => {
      heard(asked);
      return Promise.resolve({ ...TRAP, draft: asked.model.draft ?? "embedded", ...report });
    },
    io,
  });
  assert.equal(code, 0);
  return io.out();
}

Deno.test("check --draft: both rope bases and an advice", async () => {
  assert.equal(
    await run([]),
    [
      "draft ./head",
      "rope theta 1000000 (config.json): 2.38 tokens a round in 50 rounds, 46.0% of drafts accepted",
      "rope theta 10000 (training code): 2.50 tokens a round in 50 rounds, 50.0% of drafts accepted",
      "advice: run with --draft-rope-theta 10000, which the draft was trained with",
      "",
    ].join("\n"),
  );
  assert.match(await run([], { best: 1e6 }), /advice: none; .* rope theta is no worse/);
  const one = { theta: 10_000, measured: [RIGHT] };
  assert.match(await run([], one), /advice: none; the config's rope theta is what training/);
});

Deno.test("check --draft: the type of keys and values reaches the engine; a base is not taken", async () => {
  const kinds: unknown[] = [];
  await run(["--kv-dtype", "bf16"], {}, ({ limits }) => kinds.push(limits?.kvDtype));
  assert.deepEqual(kinds, ["bf16"]);
  await assert.rejects(
    run(["--draft-rope-theta", "10000"]),
    /^UsageError: Cannot use "--draft-rope-theta" with "check --draft": it measures which rope/,
  );
});

Deno.test("check --draft --json", async () => {
  const { measured, ...rest } = JSON.parse(await run(["--json"]));
  assert.deepEqual(rest, { draft: "./head", rope_theta: 1e6, best_rope_theta: 1e4 });
  assert.equal(measured[1].accept_length, 2.5);
});
