import { deepEqual, equal, throws } from "node:assert/strict";
import { arrivalSeed } from "../../src/arrivals/arrival.ts";
import { readTrace } from "../../src/arrivals/trace.ts";
import { UsageError } from "../../src/errors.ts";

// Azure/AzurePublicDataset, data/AzureLLMInferenceTrace_code.csv, lines 1 to 6 and 13.
const AZURE = `TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:17:03.9799600,4808,10
2023-11-16 18:17:04.0319600,3180,8
2023-11-16 18:17:04.0781490,110,27
2023-11-16 18:17:04.1206440,7433,14
2023-11-16 18:17:04.4249540,34,12
2023-11-16 18:17:33.4590290,1555,19
`;
const OPTIONS = { path: "trace.csv", seed: 3 };

function times(text: string, options = {}): number[] {
  // Tenths of a microsecond, the trace's own unit.
  return readTrace(text, { ...OPTIONS, ...options })
    .map(({ atMs }) => Math.round(atMs * 1e4) / 1e4);
}

Deno.test("a trace gives times from its first request, lengths and seeds", () => {
  const arrivals = readTrace(AZURE, OPTIONS);
  deepEqual(times(AZURE), [0, 52, 98.189, 140.684, 444.994, 29_479.069]);
  deepEqual(
    arrivals.map(({ promptTokens, outputTokens }) => [promptTokens, outputTokens]),
    [[4808, 10], [3180, 8], [110, 27], [7433, 14], [34, 12], [1555, 19]],
  );
  deepEqual(arrivals.map(({ seed }) => seed), arrivals.map((_, n) => arrivalSeed(3, n)));
});

Deno.test("a trace is scaled in time and cut, by number and by the scaled time", () => {
  deepEqual(times(AZURE, { timeScale: 10 }), [0, 520, 981.89, 1406.84, 4449.94, 294_790.69]);
  deepEqual(times(AZURE, { requests: 2 }), [0, 52]);
  deepEqual(times(AZURE, { timeScale: 10, durationMs: 1000 }), [0, 520, 981.89]);
});

Deno.test("other line ends, a byte order mark, time zones and 100 ns over a minute's end", () => {
  const rows = [
    "2023-12-31 23:59:59.9999999,1,1",
    "2024-01-01T00:00:00.0000001Z,1,1",
    "2024-01-01 02:00:01+02:00,1,1",
    "2023-12-31 23:00:02.5-01:00,1,1",
  ];
  const text = `\uFEFFTIMESTAMP,ContextTokens,GeneratedTokens\r\n${rows.join("\r\n")}\r\n`;
  deepEqual(times(text), [0, 0.0002, 1000.0001, 2500.0001]);
});

Deno.test("rows out of order are sorted, those of one time keep their order", () => {
  const [header, a, b, c] = AZURE.split("\n");
  const twice = "2023-11-16 18:17:04.0319600,7,7";
  const arrivals = readTrace([header, c, b, twice, a].join("\n"), OPTIONS);
  deepEqual(arrivals.map(({ promptTokens }) => promptTokens), [4808, 3180, 7, 110]);
});

Deno.test("a line that cannot be read is named with its number", () => {
  const [header = ""] = AZURE.split("\n");
  const good = "2023-11-16 18:17:03.9799600,4808,10";
  const cases: [text: string, message: RegExp][] = [
    ["", /line 1 is not TIMESTAMP,ContextTokens,GeneratedTokens/],
    ["time,in,out\n", /line 1 is not/],
    [`${header}\n`, /it has no requests/],
    [`${header}\n${good}\n\n${good},1\n`, /line 4, ".*": it has 4 columns/],
    [`${header}\nyesterday,1,1\n`, /line 2, "yesterday,1,1": its time is not as/],
    [`${header}\n2023-02-30 00:00:00,1,1\n`, /line 2.*its time is not as/],
    [`${header}\n2023-11-16 25:00:00,1,1\n`, /line 2.*its time is not as/],
    [`${header}\n${good}\n2023-11-16 18:17:04,0,5\n`, /line 3.*tokens are integers from 1/],
    [`${header}\n2023-11-16 18:17:04,5,1.5\n`, /line 2.*tokens are integers from 1/],
    [`${header}\n2023-11-16 18:17:04,5,-1\n`, /line 2.*tokens are integers from 1/],
  ];
  for (const [text, message] of cases) {
    throws(() => readTrace(text, OPTIONS), (error: Error) => {
      equal(error.message.includes("\n"), false);
      return error instanceof UsageError && message.test(error.message);
    }, text);
  }
});
