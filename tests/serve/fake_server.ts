import { fakeEngine } from "../cli/fake.ts";
import { type Server, type ServerOptions, startServer } from "../../src/serve/server.ts";
import { DEFAULTS, faultLog, testClient, type TestServer } from "./server.ts";

type FakeEngine = ReturnType<typeof fakeEngine>;

/** A server of an engine that plays back a script. */
export async function fakeServer(
  options: Partial<ServerOptions> = {},
  engine: FakeEngine = fakeEngine(),
): Promise<TestServer & { readonly engine: FakeEngine }> {
  const log: string[] = [];
  const server: Server = await startServer(() => Promise.resolve(engine), {
    ...DEFAULTS,
    log: faultLog(log),
    ...options,
  });
  await server.ready;
  return {
    ...testClient(server.url),
    server,
    log,
    engine,
    [Symbol.asyncDispose]: () => server.stop(),
  };
}
