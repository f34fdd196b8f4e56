import type { EngineClient, OpenClient } from "../../engine/client.ts";

/** What the commands need of an engine. Tests give them a scripted one. */
export type Engine = EngineClient;

/** Opens an engine, or a scripted one in tests. */
export type OpenEngine = OpenClient;
