import type { Grammars, Vocabulary } from "./grammars.ts";

/** As openGrammars, and nothing of it is loaded before the first is opened. */
export function lazyGrammars(vocabulary: Vocabulary): Grammars {
  let opened: Promise<Grammars> | undefined;
  const load = async () => (await import("./grammars.ts")).openGrammars(vocabulary);
  return { open: async (grammar, of) => await (await (opened ??= load())).open(grammar, of) };
}
