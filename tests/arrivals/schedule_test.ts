import { deepEqual, equal, throws } from "node:assert/strict";
import { parseSchedule, whenReached } from "../../src/arrivals/schedule.ts";
import { UsageError } from "../../src/errors.ts";

Deno.test("a schedule is read", () => {
  const schedule = parseSchedule("0:2, 60:20,120.5:.5");
  deepEqual(schedule, [
    { fromMs: 0, perSecond: 2 },
    { fromMs: 60_000, perSecond: 20 },
    { fromMs: 120_500, perSecond: 0.5 },
  ]);
});

Deno.test("times at which expected counts are reached: the inverse of the integrated rate", () => {
  const schedule = parseSchedule("0:2,10:0,20:4");
  deepEqual([...whenReached(schedule, [0.5, 19, 20, 20.4, 24])], [
    250,
    9500,
    20_000,
    20_100,
    21_000,
  ]);
  deepEqual([...whenReached(parseSchedule("0:1,2:0"), [1, 1.5, 2.5])], [1000, 1500]);
});

Deno.test("what is no schedule is refused in one line", () => {
  for (
    const text of ["", "2", "0:2,", "0:x", "0:-1", "5:2", "0:1,10:2,10:3", "0:1,10:2,5:3", "0:1e3"]
  ) {
    throws(() => parseSchedule(text), (error: Error) => {
      equal(error.message.split("\n").length, 1);
      return error instanceof UsageError && error.message.includes(`--request-rate ${text}`);
    }, text);
  }
  throws(() => parseSchedule("0:0,5:0"), /no request would ever arrive/);
});
