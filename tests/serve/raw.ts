/** What a server answers to a request as it is typed, until it closes the connection. */
export async function rawHttp(
  url: string,
  request: string | Uint8Array,
  { closeWrite = false }: { readonly closeWrite?: boolean } = {},
): Promise<string> {
  const { hostname, port } = new URL(url);
  using connection = await Deno.connect({ hostname, port: Number(port) });
  const bytes = typeof request === "string" ? new TextEncoder().encode(request) : request;
  for (let at = 0; at < bytes.length;) at += await connection.write(bytes.subarray(at));
  if (closeWrite) await connection.closeWrite();
  const decoder = new TextDecoder();
  const buffer = new Uint8Array(2 ** 16);
  let text = "";
  while (true) {
    const length = await connection.read(buffer);
    if (length === null) return text;
    text += decoder.decode(buffer.subarray(0, length), { stream: true });
  }
}
