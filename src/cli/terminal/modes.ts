import type { Io } from "./io.ts";
import { PASTE_OFF, PASTE_ON } from "./keys.ts";

/** How long to wait for SIGCONT before editing goes on: without a shell the process is not stopped and none comes. */
const NOT_STOPPED_MS = 50;

/** The terminal's modes while lines are edited: keys one by one, pastes marked. */
export interface TerminalModes extends Disposable {
  /** The terminal is the shell's. */
  readonly stopped: boolean;
  /** Gives the modes back and stops the process, as Ctrl+Z does. */
  suspend(): void;
}

interface Redraws {
  /** The process goes on after it was stopped: others have written to the terminal. */
  readonly onResume: () => void;
  readonly onResize: () => void;
}

/** Restores the terminal's modes while the process is stopped, at an uncaught error, and when disposed. */
export function terminalModes(io: Io, { onResume, onResize }: Redraws): TerminalModes {
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
    onResume();
  };
  const cleanup = new DisposableStack();
  cleanup.defer(() => {
    stopped = false;
    giveBack();
  });
  cleanup.use(io.onSignal("SIGCONT", goOn));
  // A resize while stopped is drawn when the process goes on.
  cleanup.use(io.onSignal("SIGWINCH", () => stopped || onResize()));
  for (const event of ["error", "unhandledrejection"]) {
    addEventListener(event, giveBack);
    cleanup.defer(() => removeEventListener(event, giveBack));
  }
  own();
  return {
    get stopped() {
      return stopped;
    },
    suspend() {
      giveBack();
      stopped = true;
      io.suspend();
      setTimeout(() => stopped && goOn(), NOT_STOPPED_MS);
    },
    [Symbol.dispose]: () => cleanup.dispose(),
  };
}
