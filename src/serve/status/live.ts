import type { Engine, EngineStatus } from "../../engine/engine.ts";

/** How long to wait for the engine's own numbers, ms; after that the last known ones are reported. */
const STATUS_MS = 1000;

/** The engine's status now, or the last known one where a round takes long. */
export async function liveStatus(engine: Engine): Promise<EngineStatus> {
  const { promise: late, resolve } = Promise.withResolvers<EngineStatus>();
  const timer = setTimeout(() => resolve(engine.status), STATUS_MS);
  try {
    return await Promise.race([engine.readStatus(), late]);
  } finally {
    clearTimeout(timer);
  }
}
