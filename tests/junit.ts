/** Reads how many tests passed from the JUnit report that `deno test` writes. Pure. */

/** Tests by how they ended; steps belong to their test and are not counted. */
export interface Counts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

/**
 * Counts the tests of a report. A run that ended badly without a failed test (a type error, a module
 * that throws, a crash) counts as one failure, so that the line never tells of success.
 */
export function readCounts(xml: string, exitCode: number): Counts {
  const tests = xml.matchAll(
    /<testcase name="([^"]*)" classname="([^"]*)"[^>]*?(?:\/>|>(.*?)<\/testcase>)/gs,
  )
    .map(([, name = "", file = "", body = ""]) => ({ name, file, body })).toArray();
  const known = new Set(tests.map(({ file, name }) => `${file}\n${name}`));
  const counts = { passed: 0, failed: 0, skipped: 0 };
  for (const { name, file, body } of tests) {
    // A step is named "test &gt; step".
    const ends = name.matchAll(/ &gt; /g).map((match) => match.index).toArray();
    if (ends.some((end) => known.has(`${file}\n${name.slice(0, end)}`))) continue;
    if (/<(failure|error)\b/.test(body)) counts.failed++;
    else if (/<skipped\b/.test(body)) counts.skipped++;
    else counts.passed++;
  }
  if (exitCode !== 0 && counts.failed === 0) counts.failed = 1;
  return counts;
}

/** The last line of a run, alone and plain. */
export function countsLine({ passed, failed, skipped }: Counts): string {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`;
}
