import assert from "node:assert/strict";
import { checkDraft } from "../../src/engine/check/check_draft.ts";
import { type LocalOptions, openEngine } from "./open.ts";
import { UsageError } from "../../src/errors.ts";
import { EXHAUSTIVE } from "../exhaustive.ts";
import { embeddedHead, safetensorsFiles } from "../model/draft_formats.ts";

/** A wrong base is seen in two short answers; the product's own are longer. */
const answersOf = (maxTokens: number) =>
  EXHAUSTIVE ? undefined : {
    prompts: ["Write the numbers from 1 to 60.", "Show me the times table for 7 up to 12."],
    maxTokens,
  };

Deno.test("a draft whose config names another rope base than it was trained with", async () => {
  const { config, tensors } = embeddedHead("eagle3");
  // The embedded head was trained with 10000; a base of 4 turns far keys by other angles at once.
  const files = safetensorsFiles({ config: { ...config, rope_theta: 4 }, tensors });
  const draft = Deno.makeTempDirSync({ prefix: "eyrie-test-" });
  try {
    for (const [file, bytes] of Object.entries(files)) {
      Deno.writeFileSync(`${draft}/${file}`, bytes);
    }
    const report = await checkDraft({ model: { draft } }, openEngine, answersOf(32));
    assert.deepEqual([report.draft, report.theta, report.best], [draft, 4, 10_000]);
    const [said, trained] = report.measured;
    assert.deepEqual([said?.theta, trained?.theta], [4, 10_000]);
    assert.ok(said && trained && said.acceptLength < trained.acceptLength);
    // The texts are the same, so a better draft is one that needs fewer rounds.
    assert.ok(said.rounds > trained.rounds && trained.rounds > 0);
  } finally {
    Deno.removeSync(draft, { recursive: true });
  }
});

Deno.test("the base of training is measured once; a draft that is none is told", async () => {
  const draft = new URL("../../models/fledgling/eagle1", import.meta.url).pathname;
  const opened: LocalOptions[] = [];
  const open = (options: LocalOptions) => {
    opened.push(options);
    return openEngine(options);
  };
  const asked = { model: { draft }, limits: { kvDtype: "f16" } } as const;
  const { measured, best } = await checkDraft(asked, open, answersOf(4));
  assert.deepEqual([measured.length, best, opened.length], [1, 10_000, 1]);
  assert.equal(opened[0]?.limits?.kvDtype, "f16");
  // `--draft auto` of the embedded model names none: it is the head that comes with it.
  const auto = await checkDraft({ ...asked, model: {} }, open, answersOf(4));
  assert.equal(auto.draft, "fledgling/eagle3");
  await assert.rejects(() => checkDraft({ model: { draft: "none" } }, open), UsageError);
});
