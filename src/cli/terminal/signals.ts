/** What ends a process, and its number: a shell counts such an end as 128 + number. */
const NUMBERS = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 } as const;
type EndSignal = keyof typeof NUMBERS;

/** The signals that end the process, once they are taken over. */
export interface EndSignals {
  /** Takes them over. Aborts at the first, which asks for an orderly end; the second does not wait. */
  readonly take: () => AbortSignal;
  /** Ends the process as the newest of them does, or Ctrl+C if there was none. */
  readonly die: () => Promise<never>;
}

/** Ctrl+C, `kill` and a terminal that is closed; until they are taken over they do what they do. */
export function endSignals(): EndSignals {
  const listeners = new Map<EndSignal, () => void>();
  let newest: EndSignal = "SIGINT";

  /**
   * Whatever the engine's thread is at: an exit would crash in drivers whose exit handlers run while
   * that thread uses them, a signal ends all threads at once; and a shell learns what ended it.
   */
  async function die(): Promise<never> {
    if (Deno.build.os !== "windows") {
      // Nobody listens: the signal does what it does by default.
      for (const [name, listener] of listeners) Deno.removeSignalListener(name, listener);
      Deno.kill(Deno.pid, newest);
      await new Promise((resolve) => setTimeout(resolve, 500)); // the first process of a container lives
    }
    Deno.exit(128 + NUMBERS[newest]);
  }

  return {
    take() {
      const interrupt = new AbortController();
      for (const name of takenOver()) {
        const listener = () => {
          newest = name;
          if (interrupt.signal.aborted) void die();
          else interrupt.abort();
        };
        listeners.set(name, listener);
        Deno.addSignalListener(name, listener);
      }
      return interrupt.signal;
    },
    die,
  };
}

function takenOver(): EndSignal[] {
  if (Deno.build.os === "windows") return ["SIGINT"];
  return ["SIGINT", "SIGTERM", ...ignoresHangup() ? [] : ["SIGHUP" as const]];
}

/** Was the process started to outlive its terminal, by `nohup`? A listener would undo that. */
function ignoresHangup(): boolean {
  if (Deno.stdin.isTerminal()) return false;
  try {
    // proc(5): a mask of signals, SIGHUP the lowest bit.
    const status = Deno.readTextFileSync("/proc/self/status");
    const [, mask = "1"] = /^SigIgn:\s*([0-9a-f]+)$/m.exec(status) ?? [];
    return Number.parseInt(mask.slice(-1), 16) % 2 === 1;
  } catch {
    return true;
  }
}

/** Calls `listener` at each of these signals until disposed; Windows has none of them. */
export function onSignal(name: "SIGCONT" | "SIGWINCH", listener: () => void): Disposable {
  if (Deno.build.os === "windows") return { [Symbol.dispose]() {} };
  Deno.addSignalListener(name, listener);
  return { [Symbol.dispose]: () => Deno.removeSignalListener(name, listener) };
}

/**
 * Stops the process and the rest of its job, as a cooked terminal does at Ctrl+Z; returns when it goes
 * on, or at once where no shell could let it go on.
 */
export function suspend(): void {
  if (Deno.build.os === "windows") return;
  // `deno task` catches SIGTSTP and would go on, so that the shell waits for ever; nothing catches
  // SIGSTOP. The system ignores SIGTSTP where there is no shell. 0 is the caller's process group.
  Deno.kill(0, hasShell() ? "SIGSTOP" : "SIGTSTP");
}

/** Has the job a parent in its session, which sees it stop? As far as Linux tells. */
function hasShell(): boolean {
  try {
    const { group, session } = processStat("self");
    return processStat(processStat(group).parent).session === session;
  } catch {
    return false;
  }
}

/** proc(5): after the name in parentheses come the state and these. */
function processStat(id: string): { parent: string; group: string; session: string } {
  const stat = Deno.readTextFileSync(`/proc/${id}/stat`);
  const [, parent = "", group = "", session = ""] = stat.slice(stat.lastIndexOf(")") + 2).split(
    " ",
  );
  return { parent, group, session };
}
