import type { Port } from "./port.ts";
import { TEXT_THREAD } from "./text_client.ts";
import type { FromText, ToText } from "./text_messages.ts";

/** Does what the worker was started for: an engine, or the text of its checkpoint. */
export async function serveThread(port: Port): Promise<void> {
  if (port.name === TEXT_THREAD) {
    const { serveText } = await import("./text_serve.ts");
    serveText(port as unknown as Port<ToText, FromText>);
  } else {
    const { serveEngine } = await import("./serve.ts");
    serveEngine(port);
  }
}
