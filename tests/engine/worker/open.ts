import type { Engine } from "../../../src/engine/engine.ts";
import type { EngineOptions } from "../../../src/engine/options.ts";
import { engineInWorker } from "../../../src/engine/worker/client.ts";

const inWorker = engineInWorker(new URL("../../../main.ts", import.meta.url));

/**
 * Opens an engine whose thread is ended when it is disposed: the tests' process may crash in the
 * driver where it ends while another thread has a device.
 */
export async function open(options: EngineOptions): Promise<Engine> {
  const engine = await inWorker(options);
  return Object.defineProperty(engine, Symbol.asyncDispose, { value: engine.terminate });
}
