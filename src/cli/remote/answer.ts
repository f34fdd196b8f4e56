import { type Acceptance, together } from "../../remote/acceptance.ts";
import { complete, type Completed, type RemotePrompt } from "../../remote/complete.ts";
import type { Json } from "../../remote/json.ts";
import { acceptanceBetween, type Reading, readServer } from "../../remote/reading.ts";
import type { Server } from "../../remote/server.ts";
import type { PartedWriter } from "../generate/answer_writer.ts";

/** An answer of a server, and how long it took. */
export interface RemoteAnswer extends Completed {
  /** Milliseconds to its first piece; undefined if there was none. */
  readonly firstMs: number | undefined;
  /** From the first piece to the last. */
  readonly decodeMs: number;
  /** Number of pieces that it arrived in. */
  readonly pieces: number;
  /** Acceptance from the answer, completed by the server's own counters. */
  readonly acceptance: Acceptance | undefined;
  /** The server's settings, read before. */
  readonly reading: Reading;
}

/**
 * Asks for an answer, passes it on as it comes, and reads what the server counts before and after.
 *
 * @throws what `complete` throws, after what had arrived was shown with the end of its line.
 */
export async function answerRemotely(
  server: Server,
  { prompt, fields, signal }: {
    readonly prompt: RemotePrompt;
    readonly fields: Json;
    readonly signal: AbortSignal;
  },
  writer: PartedWriter,
): Promise<RemoteAnswer> {
  const before = await readServer(server, signal);
  const started = performance.now();
  let [first, last, pieces] = [undefined as number | undefined, started, 0];
  try {
    const answer = await complete(server, { prompt, fields, signal }, (piece) => {
      last = performance.now();
      first ??= last;
      pieces++;
      writer.put(piece);
    });
    const after = signal.aborted ? {} : await readServer(server, signal);
    return {
      ...answer,
      pieces,
      reading: before,
      decodeMs: last - (first ?? last),
      firstMs: first === undefined ? undefined : first - started,
      acceptance: together(answer.acceptance, acceptanceBetween(before, after)),
    };
  } finally {
    writer.end();
  }
}

/** Tokens a second after the first; undefined where the server does not count them. */
export function tokenRate({ outputTokens, decodeMs }: RemoteAnswer): number | undefined {
  return outputTokens === undefined || outputTokens < 2 || decodeMs <= 0
    ? undefined
    : (outputTokens - 1) / decodeMs * 1000;
}
