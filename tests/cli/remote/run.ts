import { main } from "../../../main.ts";
import { variable } from "../../variable.ts";
import { type FakeIo, fakeIo } from "../fake.ts";

/** The result of a command line. */
export interface Run {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Runs a command line, with no key in the environment unless one is given. */
export async function eyrie(
  args: readonly string[],
  { io = fakeIo({ stdin: "" }), key = "" }: { readonly io?: FakeIo; readonly key?: string } = {},
): Promise<Run> {
  using _ = variable("EYRIE_REMOTE_KEY", key);
  const code = await main(args, io);
  return { code, out: io.out(), err: io.err() };
}
