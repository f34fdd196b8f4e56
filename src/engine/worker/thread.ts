import {
  type FromGrammars,
  GRAMMAR_THREAD,
  type ToGrammars,
} from "../../grammar/thread/messages.ts";
import type { Port } from "./port.ts";
import { TEXT_THREAD } from "./text_client.ts";
import type { FromText, ToText } from "./text_messages.ts";

/** Does what the worker was started for: an engine, the text of its checkpoint, or its grammars. */
export async function serveThread(port: Port): Promise<void> {
  if (port.name === TEXT_THREAD) {
    const { serveText } = await import("./text_serve.ts");
    serveText(port as unknown as Port<ToText, FromText>);
  } else if (port.name === GRAMMAR_THREAD) {
    const { serveGrammars } = await import("../../grammar/thread/serve.ts");
    serveGrammars(port as unknown as Port<ToGrammars, FromGrammars>);
  } else {
    const { serveEngine } = await import("./serve.ts");
    serveEngine(port);
  }
}
