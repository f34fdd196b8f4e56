/** Signals that end a process, with their numbers: shells report such an end as exit code 128 + number. */
const NUMBERS = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 } as const;
type EndSignal = keyof typeof NUMBERS;

/** The signals that end the process, once they are taken over. */
export interface EndSignals {
  /** Takes them over. Aborts at the first, which asks for an orderly end; the second does not wait. */
  readonly take: () => AbortSignal;
  /** Ends the process as the newest of them does, or Ctrl+C if there was none. */
  readonly die: () => Promise<never>;
}

/** Ctrl+C, `kill` and a closed terminal. Until `take` is called they have their default effect. */
export function endSignals(): EndSignals {
  const listeners = new Map<EndSignal, () => void>();
  let newest: EndSignal = "SIGINT";

  /**
   * Ends the process by a signal, whatever the engine's thread is doing. An exit would crash in drivers whose
   * exit handlers run while that thread uses them; a signal ends all threads at once, and a shell learns of it.
   */
  async function die(): Promise<never> {
    if (Deno.build.os !== "windows") {
      // Without listeners the signal has its default effect: it ends the process.
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
  // `deno task` catches SIGTSTP and would keep running, so the shell would wait for ever; SIGSTOP cannot be
  // caught. Where there is no shell, the system ignores SIGTSTP. Process id 0 means the caller's process group.
  Deno.kill(0, hasShell() ? "SIGSTOP" : "SIGTSTP");
}

/** Does the job's parent belong to the same session, so that a shell sees the job stop? Known on Linux only. */
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
