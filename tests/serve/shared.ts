/**
 * Servers over one engine with the usual options. The engine is opened once for all files of a process that only ask it
 * for answers, so its prefix cache holds the prompts of earlier tests.
 */
import type { Engine } from "../../src/engine/engine.ts";
import type { ServerOptions } from "../../src/serve/server.ts";
import { openEngine, serveWith, type TestServer } from "./server.ts";

// Opened outside any test, because a worker that a test starts has to end with that test.
const engine = await openEngine();
Deno.test.afterAll(() => engine.terminate());

/** Like `serve` of server.ts. @param info fields of the engine's info that are replaced. */
export function serve(
  options: Partial<ServerOptions> = {},
  info: Partial<Engine["info"]> = {},
): Promise<TestServer> {
  const told: Engine = { ...engine, info: { ...engine.info, ...info } };
  return serveWith(() => Promise.resolve(told), options);
}
