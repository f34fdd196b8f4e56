/** A raw TCP connection to a server. */
export interface RawConnection extends Disposable {
  /** @throws if the server has closed the connection. */
  send(text: string | Uint8Array): Promise<void>;
  /** Everything that came until the server closed the connection. A reset counts as the end too. */
  readonly received: Promise<string>;
  /** The text received so far. */
  readonly text: string;
  closeWrite(): Promise<void>;
}

/** @param of.reads if false, incoming bytes are not read. */
export async function connect(url: string, of = { reads: true }): Promise<RawConnection> {
  const { hostname, port } = new URL(url);
  const connection = await Deno.connect({ hostname, port: Number(port) });
  let text = "";
  return {
    get text() {
      return text;
    },
    async send(text) {
      const bytes = typeof text === "string" ? new TextEncoder().encode(text) : text;
      for (let at = 0; at < bytes.length;) at += await connection.write(bytes.subarray(at));
    },
    received: of.reads ? received(connection, (all) => text = all) : Promise.resolve(""),
    closeWrite: () => connection.closeWrite(),
    [Symbol.dispose]: () => connection.close(),
  };
}

async function received(connection: Deno.Conn, onText: (all: string) => void): Promise<string> {
  const decoder = new TextDecoder();
  const buffer = new Uint8Array(2 ** 16);
  let text = "";
  try {
    while (true) {
      const length = await connection.read(buffer);
      if (length === null) return text;
      text += decoder.decode(buffer.subarray(0, length), { stream: true });
      onText(text);
    }
  } catch {
    return text;
  }
}

/** The bytes that a server answers to a raw request until it closes the connection. */
export async function rawHttp(
  url: string,
  request: string | Uint8Array,
  { closeWrite = false }: { readonly closeWrite?: boolean } = {},
): Promise<string> {
  using connection = await connect(url);
  // The server may close the connection before it has read everything.
  await connection.send(request).catch(() => {});
  if (closeWrite) await connection.closeWrite();
  return await connection.received;
}

/** Sends a byte every few milliseconds for as long as the server takes them. Returns the answer. */
export async function dripHttp(url: string, begin: string, bytes: string): Promise<string> {
  using connection = await connect(url);
  let open = true;
  const text = connection.received.finally(() => open = false);
  await connection.send(begin);
  for (let at = 0; open; at++) {
    await connection.send(bytes[at % bytes.length] ?? "a").catch(() => {});
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  return await text;
}
