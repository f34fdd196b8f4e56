import { deepEqual, equal } from "node:assert/strict";
import { countsLine, countTests, endedWell, readTests, slowestLines, sumCounts } from "./junit.ts";

const REPORT = `<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="deno test" tests="7" failures="3" errors="0" time="0.217">
    <testsuite name="./a_test.ts" tests="6" disabled="1" errors="0" failures="3">
        <testcase name="ok &lt;one&gt;" classname="./a_test.ts" time="0.000" line="7" col="6">
        </testcase>
        <testcase name="steps" classname="./a_test.ts" time="0.002" line="8" col="6">
            <failure message="1 test step failed">1 test step failed.</failure>
        </testcase>
        <testcase name="ign" classname="./a_test.ts" time="0.000" line="9" col="6">
            <skipped/>
        </testcase>
        <testcase name="steps &gt; s1" classname="./a_test.ts" time="0.000" line="8" col="43">
        </testcase>
        <testcase name="steps &gt; s2 &gt; deep" classname="./a_test.ts" time="0.000" line="8" col="73">
            <failure message="Uncaught Error: x">Error: &lt;testcase</failure>
        </testcase>
    </testsuite>
    <testsuite name="./b_test.ts" tests="1" disabled="0" errors="0" failures="0">
        <testcase name="one &gt; zero" classname="./b_test.ts" time="0.000" line="3" col="6">
        </testcase>
    </testsuite>
</testsuites>`;

Deno.test("a report counts tests and not their steps", () => {
  deepEqual(countTests(readTests(REPORT), 1), { passed: 2, failed: 1, skipped: 1 });
});

Deno.test("a run that failed without a failed test is not told as success", () => {
  const passing = REPORT.replaceAll(/<failure.*<\/failure>/g, "");
  deepEqual(countTests(readTests(passing), 1), { passed: 3, failed: 1, skipped: 1 });
  deepEqual(countTests(readTests(""), 134), { passed: 0, failed: 1, skipped: 0 });
});

Deno.test("the last line names skipped tests only where there are some", () => {
  equal(countsLine({ passed: 3, failed: 0, skipped: 0 }), "3 passed, 0 failed");
  equal(countsLine({ passed: 3, failed: 1, skipped: 2 }), "3 passed, 1 failed, 2 skipped");
});

Deno.test("counts of processes add up", () => {
  const one = { passed: 2, failed: 1, skipped: 0 };
  deepEqual(sumCounts([one, { passed: 5, failed: 0, skipped: 3 }]), {
    passed: 7,
    failed: 1,
    skipped: 3,
  });
  deepEqual(sumCounts([]), { passed: 0, failed: 0, skipped: 0 });
});

Deno.test("the slowest tests by file and name, as they are written", () => {
  const slow = REPORT.replace('time="0.000"', 'time="12.340"');
  deepEqual(slowestLines(readTests(slow), 2), [
    "   12.3 s  a_test.ts: ok <one>",
    "    0.0 s  a_test.ts: steps",
  ]);
});

Deno.test("a process ended well where all its tests passed, whatever came then", () => {
  equal(
    endedWell("\x1b[0m\x1b[32mok\x1b[0m | 5 passed (11 steps) | 0 failed (1m)\n\ndouble free"),
    true,
  );
  equal(endedWell("ok | 5 passed (11 steps) | 0 failed | 2 ignored (1m)"), true);
  for (const text of ["", "FAILED | 4 passed | 1 failed (1s)", "a test ... ok (1s)\ndouble free"]) {
    equal(endedWell(text), false, text);
  }
});
