/** Reads what became of tests from the JUnit reports that `deno test` writes. Pure. */

/** Tests by how they ended; steps belong to their test and are not counted. */
export interface Counts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

/** A test of a report. */
export interface TestCase {
  readonly file: string;
  readonly name: string;
  readonly seconds: number;
  readonly ended: keyof Counts;
}

/** The tests of a report, without their steps. */
export function readTests(xml: string): TestCase[] {
  const cases = xml.matchAll(
    /<testcase name="([^"]*)" classname="([^"]*)" time="([^"]*)"[^>]*?(?:\/>|>(.*?)<\/testcase>)/gs,
  ).map(([, name = "", file = "", time, body = ""]) => ({ name, file, time, body })).toArray();
  const known = new Set(cases.map(({ file, name }) => `${file}\n${name}`));
  return cases.filter(({ file, name }) => {
    // A step is named "test &gt; step".
    const ends = name.matchAll(/ &gt; /g).map((match) => match.index);
    return !ends.some((end) => known.has(`${file}\n${name.slice(0, end)}`));
  }).map(({ name, file, time, body }) => ({
    file: unescaped(file).replace(/^\.\//, ""),
    name: unescaped(name),
    seconds: Number(time),
    ended: /<(failure|error)\b/.test(body)
      ? "failed"
      : /<skipped\b/.test(body)
      ? "skipped"
      : "passed",
  }));
}

/**
 * Counts the tests of a process. One that ended badly without a failed test (a type error, a module
 * that throws, a crash) counts as one failure, so that the line never tells of success.
 */
export function countTests(tests: readonly TestCase[], exitCode: number): Counts {
  const counts = { passed: 0, failed: 0, skipped: 0 };
  for (const { ended } of tests) counts[ended]++;
  if (exitCode !== 0 && counts.failed === 0) counts.failed = 1;
  return counts;
}

/**
 * Whether `deno test` printed that all tests of the process passed. With Mesa's software driver
 * (22.3.6) a process aborts now and then at its end ("double free or corruption"). The cause was not
 * traced; it is taken for the driver's, so a signal after this line is reported and not counted. How
 * processes of ours end is tested by those that start them.
 */
export function endedWell(text: string): boolean {
  // deno-lint-ignore no-control-regex
  return /^ok \| \d+ passed.* 0 failed/m.test(text.replaceAll(/\x1b\[[0-9;]*m/g, ""));
}

/** Of several processes. */
export function sumCounts(all: readonly Counts[]): Counts {
  const sum = { passed: 0, failed: 0, skipped: 0 };
  for (const { passed, failed, skipped } of all) {
    sum.passed += passed;
    sum.failed += failed;
    sum.skipped += skipped;
  }
  return sum;
}

/** A line for each of the `most` tests that took longest. */
export function slowestLines(tests: readonly TestCase[], most: number): string[] {
  return tests.toSorted((a, b) => b.seconds - a.seconds).slice(0, most)
    .map(({ file, name, seconds }) => `${seconds.toFixed(1).padStart(7)} s  ${file}: ${name}`);
}

/** The last line of a run, alone and plain. */
export function countsLine({ passed, failed, skipped }: Counts): string {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`;
}

function unescaped(text: string): string {
  const signs: Record<string, string> = { lt: "<", gt: ">", quot: '"', apos: "'", amp: "&" };
  return text.replaceAll(/&(lt|gt|quot|apos|amp);/g, (_, name: string) => signs[name] ?? "");
}
