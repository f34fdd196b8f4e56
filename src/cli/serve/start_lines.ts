/** What a person needs to point a client at a server that answers. */
export interface Started {
  /** Where the server listens. */
  readonly url: string;
  /** The model's name in requests. */
  readonly model: string;
  /** The draft's checkpoint, where one was loaded. */
  readonly draft: string | undefined;
  readonly maxBatch: number;
  /** Size of the KV cache in tokens, where it is known. */
  readonly kvTokens: number | undefined;
  /** Tokens that a request may have. */
  readonly requestTokens: number;
}

/** The lines that `eyrie serve` prints once it answers. */
export function startLines(
  { url, model, draft, maxBatch, kvTokens, requestTokens }: Started,
): readonly string[] {
  // Clients connect to an address, not to all of them.
  const base = url.replace("//0.0.0.0", "//127.0.0.1").replace("//[::]", "//[::1]");
  const requests = maxBatch === 1 ? "one request" : `${maxBatch} requests`;
  return [
    `model "${model}" answers ${requests} at once, ${
      draft === undefined ? "without a draft model" : `with the draft ${draft}`
    }`,
    ...kvTokens === undefined ? [] : [cacheLine(kvTokens, requestTokens)],
    `OpenAI base URL:    ${base}/v1`,
    `Anthropic base URL: ${base}`,
    `ollama host:        ${base}`,
    `page to talk to it: ${base}/`,
  ];
}

/** As vLLM words it: how many requests of the greatest length the KV cache holds. */
function cacheLine(tokens: number, most: number): string {
  const requests = (tokens / most).toFixed(1);
  return `KV cache: ${shown(tokens)} tokens, ${requests} requests of ${shown(most)} tokens`;
}

function shown(count: number): string {
  return count.toLocaleString("en-US");
}
