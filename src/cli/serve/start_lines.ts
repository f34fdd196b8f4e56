/** What a person needs to point a client at a server that answers. */
export interface Started {
  /** Where the server listens. */
  readonly url: string;
  /** The model's name in requests. */
  readonly model: string;
  /** The draft's checkpoint, where one was loaded. */
  readonly draft: string | undefined;
  readonly maxBatch: number;
}

/** The lines that `eyrie serve` prints once it answers. */
export function startLines({ url, model, draft, maxBatch }: Started): readonly string[] {
  // Clients connect to an address, not to all of them.
  const base = url.replace("//0.0.0.0", "//127.0.0.1").replace("//[::]", "//[::1]");
  const requests = maxBatch === 1 ? "one request" : `${maxBatch} requests`;
  return [
    `model "${model}" answers ${requests} at once, ${
      draft === undefined ? "without a draft model" : `with the draft ${draft}`
    }`,
    `OpenAI base URL:    ${base}/v1`,
    `Anthropic base URL: ${base}`,
    `ollama host:        ${base}`,
    `page to talk to it: ${base}/`,
  ];
}
