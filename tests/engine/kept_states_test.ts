import assert from "node:assert/strict";
import { promptStates, stateSpacing } from "../../src/engine/device/kept_states.ts";
import { UNITS_PREFILL_ROWS } from "../../src/model/device_layout.ts";

Deno.test("states of prompts: whole forwards apart, so many as there are places for, those of long prompts at places of short ones", () => {
  let before = 1;
  for (let tokens = 1; tokens < 300_000; tokens += 977) {
    const spacing = stateSpacing(tokens);
    assert.equal(spacing % UNITS_PREFILL_ROWS, 0);
    assert.ok(Math.floor(tokens / spacing) <= 8, `${tokens} tokens, every ${spacing}`);
    assert.equal(spacing % before, 0);
    before = spacing;
  }
  const contexts = [512, 2048, 2049, 4097, 8192, 32_768, 262_144];
  assert.deepEqual(contexts.map(promptStates), [0, 0, 1, 2, 3, 8, 8]);
});
