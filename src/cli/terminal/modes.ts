import type { Interface } from "node:readline";
import type { Io } from "./io.ts";
import { PASTE_OFF, PASTE_ON } from "./paste.ts";
import { draw, type Screen } from "./readline.ts";

/** How long SIGCONT is waited for where no shell stops the process, so that none comes. */
const NOT_STOPPED_MS = 50;

/**
 * The terminal's modes while lines are edited: keys one by one, pastes marked. They are given back
 * while the process is stopped by Ctrl+Z, at an error that nobody catches, and when disposed.
 */
export function terminalModes(io: Io, editor: Interface, screen: Screen): Disposable {
  const own = () => {
    io.stdin.setRaw(true);
    io.stderr.write(PASTE_ON);
  };
  const giveBack = () => {
    io.stdin.setRaw(false);
    io.stderr.write(PASTE_OFF);
  };
  let stopped = false;
  const goOn = () => {
    stopped = false;
    own();
    // The shell has written below what was there.
    if (!screen.muted) draw(editor, { prevRows: 0 });
  };
  editor.on("SIGTSTP", () => {
    if (!screen.muted) leaveLine(io, editor);
    giveBack();
    stopped = true;
    io.suspend();
    setTimeout(() => stopped && goOn(), NOT_STOPPED_MS);
  });
  const cleanup = new DisposableStack();
  cleanup.defer(() => {
    stopped = false;
    giveBack();
  });
  cleanup.use(io.onSignal("SIGCONT", goOn));
  cleanup.use(io.onSignal("SIGWINCH", () => {
    // Terminals wrap what they show anew, so the cursor is now as far down as the new width makes it.
    Object.assign(editor, { prevRows: editor.getCursorPos().rows });
    screen.emit("resize");
  }));
  for (const event of ["error", "unhandledrejection"]) {
    addEventListener(event, giveBack);
    cleanup.defer(() => removeEventListener(event, giveBack));
  }
  own();
  return cleanup;
}

/** Leaves what was typed on the screen, and goes to the line below. */
function leaveLine(io: Io, editor: Interface): void {
  const { line, cursor } = editor;
  draw(editor, { cursor: line.length });
  io.stderr.write("\n");
  Object.assign(editor, { cursor });
}
