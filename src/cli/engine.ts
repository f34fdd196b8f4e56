import type { EngineEvent, GenerateRequest } from "../engine/events.ts";
import type { ChatMessage } from "../text/chat_template.ts";

/** One conversation's place on the device: keeps its keys and values between calls. */
export type Slot = object;

export type Algorithm = "EAGLE" | "EAGLE3" | "NONE";

export interface LoadProgress {
  readonly label: string;
  readonly bytes: number;
  readonly total: number;
}

export interface OpenOptions {
  readonly model?: string;
  readonly draft?: string;
  readonly algorithm?: Algorithm;
  readonly numSteps: number;
  readonly adapter?: "high-performance" | "low-power" | "software";
  readonly onProgress?: (progress: LoadProgress) => void;
  readonly onWarning?: (line: string) => void;
}

/** What the commands need of an engine; tests give them a scripted one. */
export interface Engine extends Disposable {
  readonly name: string;
  readonly draftName: string | undefined;
  readonly contextLength: number;
  readonly loadMs: number;
  readonly device: {
    readonly adapter: string;
    readonly backend: string;
    readonly software: boolean;
    readonly features: readonly string[];
  };
  readonly algorithm: Algorithm;
  readonly hasChatTemplate: boolean;
  encodePrompt(
    input: { readonly raw: string } | { readonly messages: readonly ChatMessage[] },
  ): readonly number[];
  newSlot(): Slot;
  generate(slot: Slot, request: GenerateRequest): AsyncGenerator<EngineEvent>;
}

/** `openEngine` or a stand-in. */
export type OpenEngine = (options: OpenOptions) => Promise<Engine>;
