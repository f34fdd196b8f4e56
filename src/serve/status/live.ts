import type { EngineClient, EngineStatus } from "../../engine/client.ts";

/** How long the engine's own numbers are waited for, ms; then the last that are known are told. */
const STATUS_MS = 1000;

/** What the engine does now, or did last where a round takes long. */
export async function liveStatus(engine: EngineClient): Promise<EngineStatus> {
  const { promise: late, resolve } = Promise.withResolvers<EngineStatus>();
  const timer = setTimeout(() => resolve(engine.status), STATUS_MS);
  try {
    return await Promise.race([engine.readStatus(), late]);
  } finally {
    clearTimeout(timer);
  }
}
