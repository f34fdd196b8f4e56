import type { Io } from "../terminal/io.ts";
import type { Settings } from "./settings.ts";
import type { ChatState } from "./state.ts";

/** Who answers a chat: an engine in this process, or a server. */
export interface ChatModel {
  readonly name: string;
  /** A draft is loaded, which can be switched off and on. */
  readonly drafts: boolean;
  /** Whether `/set think` does anything, as far as is known. */
  readonly thinks: boolean;
  /** A line about it, for the beginning. */
  readonly greeting: string;
  /** What a chat with it begins with. */
  readonly settings: Settings;
  /** What `/show` prints about it and about the conversation. */
  facts(state: ChatState): readonly (readonly [name: string, text: string])[];
  /**
   * Answers the newest message and shows the answer as it comes.
   *
   * @returns undefined where the signal aborted before there was a prompt.
   * @throws UsageError, RemoteError: the message is printed and the chat goes on.
   */
  answer(asked: ChatState, to: Listener): Promise<Reply | undefined>;
}

/** Whom an answer is shown to. */
export interface Listener {
  readonly io: Io;
  /** Input is a terminal: progress and notes are shown. */
  readonly interactive: boolean;
  /** A line about the chat, on stderr. */
  readonly say: (text: string) => void;
  readonly signal: AbortSignal;
}

/** An answer that was shown. */
export interface Reply {
  /** What was asked, without the exchanges that had to be dropped. */
  readonly state: ChatState;
  readonly text: string;
  readonly reasoning: string;
  /** The signal ended it. */
  readonly stopped: boolean;
  /** It was stopped before its first token. */
  readonly nothing: boolean;
  /** Tokens in the context after it. */
  readonly tokens: number;
  /** Why it ends where the model had not ended it. */
  readonly cut?: string | undefined;
  readonly warning?: string | undefined;
  /** The line of statistics. */
  readonly stats: string;
}
