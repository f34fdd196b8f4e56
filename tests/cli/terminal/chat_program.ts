/** A chat with a scripted engine in the terminal that runs it, for tests that need a real one. */
import { runChat } from "../../../src/cli/chat/chat.ts";
import { parseArguments } from "../../../src/cli/options/parse.ts";
import { denoIo, INTERRUPTED } from "../../../src/cli/terminal/io.ts";
import { endSignals } from "../../../src/cli/terminal/signals.ts";
import { fakeEngine } from "../fake.ts";

const invocation = parseArguments(["chat"]);
if (invocation.command !== "chat") throw new Error("not a chat");

/** "throw", or the path of a file that the last word of an answer waits for. */
const [gate] = Deno.args;

const engine = fakeEngine({
  answer: () => "one two three",
  async beforeWord(word) {
    if (word !== "three" || gate === undefined) return;
    if (gate !== "throw") return await waitFor(gate);
    setTimeout(() => {
      throw new Error("nobody catches this");
    });
    await waitFor("/no/such/file");
  },
});

async function waitFor(path: string): Promise<void> {
  while (true) {
    try {
      return void await Deno.stat(path);
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

const { take, die } = endSignals();
const code = await runChat(invocation.options, { open: engine.open, io: denoIo(take) });
if (code === INTERRUPTED) await die();
Deno.exit(code);
