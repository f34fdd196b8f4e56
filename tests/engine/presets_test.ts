import assert from "node:assert/strict";
import { UsageError } from "../../src/errors.ts";
import {
  asUsageError,
  DEFAULT_PRESET,
  PRESET_NAMES,
  presetJson,
} from "../../src/engine/schedule/presets.ts";
import { type AdaptiveSlot, parseAdaptiveConfig } from "../../src/speculate/adaptive_config.ts";
import { AdaptiveConfigError } from "../../src/speculate/adaptive_fields.ts";

const FOLDER = new URL("../../presets/", import.meta.url);
const KNOWN = "conservative, aggressive";

function rows(slots: readonly AdaptiveSlot[]) {
  return slots.map((slot) => [
    slot.batchSize,
    slot.candidateSteps,
    slot.upHysteresis,
    slot.downHysteresis,
    slot.ceilingCoeff,
  ]);
}

Deno.test("presets: conservative, the default", () => {
  const { slots } = parseAdaptiveConfig(presetJson(DEFAULT_PRESET));
  assert.deepEqual(rows(slots), [
    [1, [1, 3, 7], 0, -0.25, 0],
    [8, [1, 3], 0, 0, 0],
    [32, [1], 0, 0, 0],
  ]);
  for (const { emaAlpha, updateInterval, warmupBatches } of slots) {
    assert.deepEqual([emaAlpha, updateInterval, warmupBatches], [0.2, 5, 10]);
  }
});

Deno.test("presets: aggressive", () => {
  assert.deepEqual(rows(parseAdaptiveConfig(presetJson("aggressive")).slots), [
    [1, [1, 3, 7], 0, -0.25, 0],
    [8, [1, 3, 7], 0, -0.25, 3],
    [64, [1, 3], 0, -0.25, 1.67],
    [128, [1, 3], 0, -0.25, 1.2],
  ]);
});

Deno.test("presets: every adaptive config of presets/ has a name, and the file says the same", () => {
  const files = [...Deno.readDirSync(FOLDER)].filter(({ isFile }) => isFile).map(({ name }) => name)
    .filter((name) => !["drafts.json", "model_sizes.json", "models.json"].includes(name))
    .toSorted();
  assert.deepEqual(files, PRESET_NAMES.map((name) => `${name}.json`).toSorted());
  for (const name of PRESET_NAMES) {
    const file = new URL(`${name}.json`, FOLDER).pathname;
    assert.deepEqual(presetJson(file), presetJson(name));
  }
});

Deno.test("presets: what is neither a preset nor a file names the presets", () => {
  for (const name of ["agressive", "toString", "no/such.json"]) {
    assert.throws(() => presetJson(name), {
      name: "UsageError",
      message: `Cannot read adaptive config "${name}": ` +
        `there is no such file; presets are ${KNOWN}`,
    });
  }
  assert.throws(() => presetJson(FOLDER.pathname), /^UsageError: Cannot read adaptive config /);
});

Deno.test("presets: a file that cannot be used is told with its name", () => {
  const file = Deno.makeTempFileSync({ suffix: ".json" });
  try {
    const refused = (text: string, message: RegExp) => {
      Deno.writeTextFileSync(file, text);
      assert.throws(() => presetJson(file), (error: Error) => {
        assert(error instanceof UsageError);
        assert(error.message.includes(`"${file}": `));
        assert.match(error.message, message);
        return true;
      });
    };
    refused("{", /^Cannot read adaptive config .*JSON/);
  } finally {
    Deno.removeSync(file);
  }
});

Deno.test("presets: only what the user can mend becomes a usage error", () => {
  assert.equal(asUsageError(() => 3), 3);
  const fault = (error: Error) => () => {
    throw error;
  };
  assert.throws(() => asUsageError(fault(new AdaptiveConfigError("a"))), new UsageError("a"));
  assert.throws(() => asUsageError(fault(new Error("a bug"))), { name: "Error", message: "a bug" });
});
