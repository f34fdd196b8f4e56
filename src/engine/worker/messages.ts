/** What goes between an engine's thread and the thread of its client. */
import type { EngineInfo, EngineStatus } from "../engine.ts";
import type { EngineOptions } from "../options.ts";
import type { EngineEvent, GenerateRequest } from "../schedule/events.ts";
import type { LoadProgress } from "../load/load.ts";

export type ToEngine =
  | {
    readonly kind: "open";
    readonly options: Omit<EngineOptions, "hooks">;
    /** See `SentMessages`. */
    readonly sent: SharedArrayBuffer;
  }
  | { readonly kind: "read status"; readonly id: number }
  /** Answered from the thread's message loop, between two rounds. */
  | { readonly kind: "ping"; readonly id: number }
  | {
    readonly kind: "submit";
    readonly id: number;
    readonly request: Omit<GenerateRequest, "signal">;
  }
  /** Ends the request with reason "interrupt". */
  | { readonly kind: "cancel"; readonly id: number }
  /** Closes the engine; nothing is asked of it any more. */
  | { readonly kind: "close" };

export type FromEngine =
  /** Messages are received from now on. */
  | { readonly kind: "ready" }
  | { readonly kind: "progress"; readonly progress: LoadProgress }
  | { readonly kind: "warning"; readonly line: string }
  | { readonly kind: "opened"; readonly info: EngineInfo; readonly status: EngineStatus }
  /** Answer to "close": the thread does nothing any more. */
  | { readonly kind: "closed" }
  /** The engine could not be opened. */
  | { readonly kind: "not opened"; readonly error: SentError }
  | { readonly kind: "status read"; readonly id: number; readonly value: EngineStatus }
  | { readonly kind: "pong"; readonly id: number; readonly value: undefined }
  /** Answer to a message with an id. */
  | { readonly kind: "error"; readonly id: number; readonly error: SentError }
  /** All events of a step, by request; the status if one of them ended. */
  | {
    readonly kind: "events";
    readonly events: readonly SentEvent[];
    readonly status: EngineStatus | undefined;
  };

export type SentEvent = readonly [id: number, event: EngineEvent];

/** An error as data, because structuredClone turns our error classes into plain Errors. */
export interface SentError {
  /** Its class: `UsageError`, `GpuFailure` or any other. */
  readonly kind: "usage" | "gpu" | "other";
  /** See `UsageError`. */
  readonly field: string | undefined;
  readonly message: string;
  readonly stack: string | undefined;
}
