import { GrammarError } from "./grammar.ts";

/** A grammar takes this long to convert to rules at most. */
const CONVERT_MS = 3000;

let end = Infinity;

/** Runs a conversion, which is synchronous: nothing can stop its thread but `checkTime`, which its loops call. */
export function timeLimited<T>(action: () => T, ms: number = CONVERT_MS): T {
  end = performance.now() + ms;
  try {
    return action();
  } finally {
    end = Infinity;
  }
}

/** @throws GrammarError where the time of the conversion is over. */
export function checkTime(): void {
  if (performance.now() > end) {
    throw new GrammarError("its grammar takes too long to convert to rules");
  }
}
