import assert from "node:assert/strict";

/** After this time, a text that a test waits for counts as missing. */
const NEVER_MS = 60_000;
const CTRL_Z = "\x1a";
const PROGRAM = new URL("chat_program.ts", import.meta.url).pathname;

/**
 * A shell with job control on its own terminal, which the `script` of util-linux opens. Debian's `sh` leaves
 * the terminal as a job left it; bash would reset it.
 */
class Shell implements AsyncDisposable {
  readonly #process: Deno.ChildProcess;
  readonly #keys: WritableStreamDefaultWriter<Uint8Array>;
  readonly #reading: Promise<void>;
  #all = "";
  #searched = 0;
  #ended = false;
  #changed = Promise.withResolvers<void>();

  constructor() {
    this.#process = new Deno.Command("script", {
      args: ["-qfc", "PS1='ready: ' exec sh -i", "/dev/null"],
      env: { TERM: "xterm", ENV: "" },
      stdin: "piped",
      stdout: "piped",
    }).spawn();
    this.#keys = this.#process.stdin.getWriter();
    this.#reading = this.#read();
  }

  async #read(): Promise<void> {
    for await (const text of this.#process.stdout.pipeThrough(new TextDecoderStream())) {
      this.#all += text;
      this.#changed.resolve();
      this.#changed = Promise.withResolvers();
    }
    this.#end();
  }

  #end(): void {
    this.#ended = true;
    this.#changed.resolve();
  }

  async type(keys: string): Promise<void> {
    await this.#keys.write(new TextEncoder().encode(keys));
  }

  /** Waits for the text, after what was waited for before. */
  async seen(text: string): Promise<void> {
    using timer = new DisposableStack();
    timer.adopt(setTimeout(() => this.#end(), NEVER_MS), clearTimeout);
    while (true) {
      const at = this.#all.indexOf(text, this.#searched);
      if (at >= 0) return void (this.#searched = at + text.length);
      assert.ok(!this.#ended, `no "${text}" came:\n${this.#all}`);
      await this.#changed.promise;
    }
  }

  /** Types a command whose output does not occur in the command's text. */
  async run(command: string, shows: string): Promise<void> {
    await this.type(`${command}\r`);
    await this.seen(shows);
  }

  /** Checks that the terminal edits lines itself again after the program has left it to the shell. */
  async cooked(): Promise<void> {
    await this.seen("ready: ");
    await this.run("echo lines:$(stty -a | grep -ow -- '-\\?icanon')", "lines:icanon");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.kill("SIGKILL"); // its terminal hangs up, which ends the programs that run there
    await this.#keys.close().catch(() => {});
    await this.#process.status;
    await this.#reading;
  }
}

const chat = (gate = "") => `"${Deno.execPath()}" run -A --no-check "${PROGRAM}" ${gate}`;
const ignore = Deno.build.os !== "linux";

Deno.test({
  name: "a real terminal: Ctrl+Z and fg at the prompt and in an answer",
  ignore,
  async fn() {
    const gate = await Deno.makeTempFile();
    await Deno.remove(gate);
    await using shell = new Shell();
    await shell.run(chat(gate), ">>> ");
    await shell.type("hel");
    await shell.seen("hel");
    await shell.type(CTRL_Z);
    await shell.seen("Stopped");
    await shell.cooked();
    await shell.run("fg", ">>> hel");
    await shell.type("lo\r");
    await shell.seen("one two");
    await shell.type(CTRL_Z);
    await shell.seen("Stopped");
    await Deno.writeTextFile(gate, "");
    await shell.run("fg", "three");
    await shell.seen(">>> ");
    await shell.type("/bye\r");
    await shell.cooked();
    await Deno.remove(gate);
  },
});

for (const [signal, code] of [["TERM", 143], ["HUP", 129]] as const) {
  Deno.test({
    name: `a real terminal: SIG${signal} at the prompt gives it back, ${code}`,
    ignore,
    async fn() {
      await using shell = new Shell();
      await shell.run(chat(), ">>> ");
      await shell.type(CTRL_Z);
      await shell.seen("Stopped");
      await shell.run(`kill -${signal} %1; fg; echo code:$?`, `code:${code}`);
      await shell.cooked();
    },
  });
}

Deno.test({
  name: "a real terminal: an error that nobody catches gives it back",
  ignore,
  async fn() {
    await using shell = new Shell();
    await shell.run(chat("throw"), ">>> ");
    await shell.type("hello\r");
    await shell.seen("nobody catches this");
    await shell.cooked();
  },
});
