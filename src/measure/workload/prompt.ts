import type { ChatMessage } from "../../text/chat_template.ts";

/** What one request asks. `group` is its task, category or phase, for tables and messages. */
export type Prompt =
  | {
    readonly kind: "chat";
    readonly group: string;
    readonly messages: readonly ChatMessage[];
    /** User turns that follow, each after the answer to the one before. */
    readonly followUps: readonly string[];
  }
  | { readonly kind: "text"; readonly group: string; readonly text: string }
  /** `randomIds(promptTokens, seed)`. */
  | { readonly kind: "random"; readonly group: string; readonly seed: number };
