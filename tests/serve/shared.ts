/**
 * Servers over one engine with the usual options: opened once for all files of a process that ask it for nothing but
 * answers. Its prefix cache holds what earlier tests asked.
 */
import type { Engine } from "../../src/engine/engine.ts";
import type { ServerOptions } from "../../src/serve/server.ts";
import { openEngine, serveWith, type TestServer } from "./server.ts";

// Before any test: a worker that a test starts has to end with it.
const engine = await openEngine();
Deno.test.afterAll(() => engine.terminate());

/** As `serve` of server.ts. @param info what the engine says of itself otherwise than it is. */
export function serve(
  options: Partial<ServerOptions> = {},
  info: Partial<Engine["info"]> = {},
): Promise<TestServer> {
  const told: Engine = { ...engine, info: { ...engine.info, ...info } };
  return serveWith(() => Promise.resolve(told), options);
}
