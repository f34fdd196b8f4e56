import type { ChatMessage } from "../../text/chat_template.ts";

/** The prompt of one request. `group` is its task, category or phase, for tables and messages. */
export type Prompt =
  | {
    readonly kind: "chat";
    readonly group: string;
    readonly messages: readonly ChatMessage[];
    /** Further user turns, each sent after the answer to the one before. */
    readonly followUps: readonly string[];
  }
  | { readonly kind: "text"; readonly group: string; readonly text: string }
  /** Random token ids: `randomIds(promptTokens, seed)`. */
  | { readonly kind: "random"; readonly group: string; readonly seed: number };
