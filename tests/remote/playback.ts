/** Servers that play answers back, written from the documented formats of vLLM 0.27 and SGLang 0.5. */

/** A request as the server received it. */
export interface Heard {
  readonly method: string;
  readonly path: string;
  readonly key: string | null;
  // deno-lint-ignore no-explicit-any -- JSON that assertions look at
  readonly body: any;
}

export interface Playback extends AsyncDisposable {
  readonly url: string;
  readonly heard: readonly Heard[];
  /** The bodies of the POST requests. */
  readonly bodies: () => Heard["body"][];
}

type Answer = Response | string | undefined;

/** A server that sends the results of `answer`: a text is sent as JSON, undefined as FastAPI's 404. */
export function playback(
  answer: (heard: Heard, all: readonly Heard[]) => Answer | Promise<Answer>,
): Playback {
  const heard: Heard[] = [];
  const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, async (request) => {
    const text = await request.text();
    const one: Heard = {
      method: request.method,
      path: new URL(request.url).pathname,
      key: request.headers.get("authorization"),
      body: text === "" ? undefined : JSON.parse(text),
    };
    heard.push(one);
    const given = await answer(one, heard);
    if (given === undefined) return Response.json({ detail: "Not Found" }, { status: 404 });
    if (typeof given !== "string") return given;
    return new Response(given, { headers: { "content-type": "application/json" } });
  });
  return {
    url: `http://127.0.0.1:${server.addr.port}`,
    heard,
    bodies: () => heard.filter(({ method }) => method === "POST").map(({ body }) => body),
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

export function recorded(name: string): string {
  return Deno.readTextFileSync(new URL(`./recorded/${name}`, import.meta.url));
}

/** A stream of events, piece by piece. */
export function stream(...pieces: readonly string[]): Response {
  return new Response(
    ReadableStream.from(pieces).pipeThrough(new TextEncoderStream()),
    { headers: { "content-type": "text/event-stream; charset=utf-8" } },
  );
}

/** A server like vLLM, whose counters grow with every answer. */
export function vllm(): Playback {
  let answered = false;
  return playback(({ path }) => {
    switch (path) {
      case "/v1/models":
        return recorded("vllm_models.json");
      case "/metrics":
        return new Response(recorded(`vllm_metrics_${answered ? "after" : "before"}.txt`));
      case "/v1/chat/completions":
        answered = true;
        return stream(recorded("vllm_chat.sse"));
    }
  });
}

/** A server like SGLang. @param infoPath the path at which it tells its settings. */
export function sglang(infoPath = "/server_info"): Playback {
  return playback(({ path }) => {
    switch (path) {
      case "/v1/models":
        return recorded("sglang_models.json");
      case infoPath:
        return recorded("sglang_server_info.json");
      case "/v1/chat/completions":
        return stream(recorded("sglang_chat.sse"));
    }
  });
}
