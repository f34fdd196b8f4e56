import type { Engine as OpenedEngine, OpenOptions } from "../engine/open.ts";

/** What the commands need of an engine: all but its insides. Tests give them a scripted one. */
export type Engine = Omit<OpenedEngine, "tokenizer" | "core" | "outputs">;

/** `openEngine` or a stand-in. */
export type OpenEngine = (options: OpenOptions) => Promise<Engine>;
