import { equal } from "node:assert/strict";
import { isWarm } from "../../src/measure/warm_up.ts";

Deno.test("a bench is warm once four passes in a row are alike", () => {
  equal(isWarm([]), false);
  equal(isWarm([0.1, 0.1, 0.1]), false);
  equal(isWarm([0.1, 0.1, 0.1, 0.1]), true);
  equal(isWarm([0.3, 0.2, 0.1, 0.1, 0.1]), false, "clocks still rose");
  equal(isWarm([0.3, 0.2, 0.1, 0.102, 0.1, 0.101]), true);
});

Deno.test("a bench is warm after one long pass, or many that differ", () => {
  equal(isWarm([0.5]), true);
  equal(isWarm([0.3]), false);
  const differing = Array.from({ length: 20 }, (_, at) => at % 2 === 0 ? 0.1 : 0.2);
  equal(isWarm(differing.slice(0, 19)), false);
  equal(isWarm(differing), true, "3 s");
  equal(isWarm([0.1, 0.2], 2.9), false);
  equal(isWarm([0.1, 0.2], 3), true, "contexts took the rest");
});
