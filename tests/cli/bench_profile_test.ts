import assert from "node:assert/strict";
import { profilePart } from "../../src/measure/profile/profile.ts";
import type {
  ProfileRequest,
  ProfileSession,
  ProfileTable,
} from "../../src/measure/profile/profile_session.ts";
import { namedBandwidth } from "../../src/cli/bench/bandwidth.ts";
import { runProfile } from "../../src/cli/bench/profile.ts";
import { parseArguments } from "../../src/cli/options/parse.ts";
import { UsageError } from "../../src/errors.ts";
import { SUBJECT } from "../measure/fake.ts";
import { fakeIo } from "./fake.ts";

const LAUNCH = { label: "layers.0.qkv", kernel: "matmul", bytes: 4e6, flops: 8e6 };
const TABLE: ProfileTable = {
  kind: "prefill",
  batch: 1,
  numSteps: undefined,
  context: 512,
  runs: 1,
  wholeMs: 2,
  parts: [profilePart({ part: "prefill", launches: [LAUNCH], launchMs: [[2]], passMs: [2] }, 4)],
};

async function run(
  args: readonly string[],
  { interrupt = false, bandwidth, fault, io = fakeIo() }: {
    interrupt?: boolean;
    bandwidth?: number;
    fault?: Error;
    io?: ReturnType<typeof fakeIo>;
  } = {},
) {
  const invocation = parseArguments(["bench", "--table", "profile", ...args]);
  assert.ok(invocation.command === "bench");
  const requests: ProfileRequest[] = [];
  const session: ProfileSession = {
    subject: SUBJECT,
    bandwidth: 4,
    async *tables(signal) {
      yield await Promise.resolve(TABLE);
      if (interrupt) io.interrupt();
      signal.throwIfAborted();
      if (fault !== undefined) throw fault;
      yield TABLE;
      yield TABLE;
    },
    [Symbol.dispose]: () => {},
  };
  const open = (request: ProfileRequest) => {
    requests.push(request);
    return Promise.resolve(session);
  };
  const code = await runProfile(invocation.options, { open, io, bandwidth });
  return { code, requests, out: io.out() };
}

Deno.test("bench --table profile: what is asked for reaches the engine, tables come out", async () => {
  const { code, requests, out } = await run([]);
  assert.equal(code, 0);
  const [asked] = requests;
  assert.deepEqual([asked?.batchSizes, asked?.numSteps, asked?.depths], [[1], [0, 3], [0]]);
  assert.equal(asked?.bandwidth, undefined);
  assert.equal(out.match(/## Prefill of 512 tokens/g)?.length, 3);
  assert.match(out, /bandwidth 4.00 GB\/s \(measured\)/);

  const random = ["--model", "random:c.json", "--batch-sizes", "1,8", "--depth", "8192"];
  const { requests: [other], out: given } = await run(random, { bandwidth: 4260 });
  assert.deepEqual([other?.batchSizes, other?.numSteps, other?.depths], [[1, 8], [0], [8192]]);
  assert.deepEqual([other?.model?.random, other?.bandwidth], [{ target: "c.json" }, 4260]);
  assert.match(given, /\(given\)/);
});

Deno.test("bench --table profile --format json is one object of full numbers", async () => {
  const { out } = await run(["--format", "json"]);
  const { subject, bandwidth, tables } = JSON.parse(out);
  assert.deepEqual(bandwidth, { gbps: 4, given: false });
  assert.equal(subject.model, SUBJECT.model);
  assert.equal(tables.length, 3);
  assert.equal(tables[0].parts[0].rows[0].gbps, 2);
});

Deno.test("bench --table profile --output: the table is printed as well", async () => {
  const folder = await Deno.makeTempDir({ prefix: "eyrie-profile-" });
  try {
    const path = `${folder}/profile.json`;
    const { out } = await run(["--format", "json", "--output", path]);
    assert.equal(JSON.parse(await Deno.readTextFile(path)).tables.length, 3);
    assert.equal(out, (await run([])).out);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("Ctrl+C ends a profile without the table it is at; the tables before it are shown", async () => {
  const { code, out } = await run([], { interrupt: true });
  assert.equal(code, 130);
  assert.equal(out.match(/## Prefill/g)?.length, 1);
});

Deno.test("bench --table profile: what was measured before an error is in the file and is shown", async () => {
  const folder = await Deno.makeTempDir({ prefix: "eyrie-profile-" });
  try {
    const path = `${folder}/profile.json`;
    const io = fakeIo();
    const args = ["--format", "json", "--output", path];
    await assert.rejects(run(args, { io, fault: new Error("lost") }), /^Error: lost$/);
    assert.equal(JSON.parse(await Deno.readTextFile(path)).tables.length, 1);
    assert.equal(io.out().match(/## Prefill/g)?.length, 1);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("EYRIE_BANDWIDTH is a number above 0, or the bandwidth is measured", () => {
  assert.equal(namedBandwidth("4260"), 4260);
  assert.equal(namedBandwidth(""), undefined);
  for (const value of ["0", "fast", "-1"]) {
    assert.throws(
      () => namedBandwidth(value),
      new UsageError(
        `Cannot use "EYRIE_BANDWIDTH=${value}": allowed is GB/s, a number above 0`,
      ),
    );
  }
});

Deno.test("flags of a sweep and of a profile are not mixed", () => {
  const cases = [
    [
      "--bandwidth 1",
      'Cannot use "--bandwidth": the flag was removed; set the variable EYRIE_BANDWIDTH to the GB/s',
    ],
    [
      "--table profile --policy ema",
      'Cannot use "--policy" with "--table profile": only a measurement of settings takes it',
    ],
    [
      "--table profile --workload random",
      'Cannot use "--workload" with "--table profile": only a measurement of settings takes it',
    ],
    [
      "--table profile --format csv",
      'Cannot use "--format csv" with "--table profile": allowed is md, json',
    ],
  ] as const;
  for (const [args, message] of cases) {
    assert.throws(() => parseArguments(["bench", ...args.split(" ")]), new UsageError(message));
  }
});
