/**
 * An output of several messages, each a header, a mark and a body:
 * `<|channel|>analysis<|message|>...<|end|><|start|>assistant<|channel|>final<|message|>...`. The prompt
 * ends with the beginning of the first header.
 */
export interface ChannelFormat {
  /** Begins a message: the author's role and the rest of the header follow. */
  readonly start: string;
  /** Ends the header; the body follows. */
  readonly message: string;
  /** Texts that end a body. The next message's beginning ends it too, for decoding may skip these. */
  readonly ends: readonly string[];
  /** Tokens that end an output, whatever the checkpoint's files say. */
  readonly stops: readonly string[];
  /** What a header may begin with behind the role. */
  readonly headers: readonly string[];
  /** Header and mark of an answer, appended to a prompt whose answer begins with a given text. */
  readonly answer: string;
  readonly bodyOf: (header: string) => Body;
}

/** What a message's body is. */
export interface Body {
  readonly kind: "reasoning" | "text";
  /** Texts that are put around the body, by which the parser of calls finds the call. */
  readonly around?: readonly [before: string, after: string];
  /**
   * The body is a call, with `around`, only if it lies entirely between these texts. Nothing ends the body before
   * the second one is found.
   */
  readonly within?: readonly [open: string, close: string];
}
