import type { Grammars, Vocabulary } from "./grammars.ts";

/** The same as openGrammarThreads, whose module is loaded when the first grammar is opened. */
export function lazyGrammars(vocabulary: Vocabulary): Grammars {
  let opened: Promise<Grammars> | undefined;
  let closed = false;
  const load = async () => {
    const { openGrammarThreads } = await import("./thread/grammar_threads.ts");
    const grammars = openGrammarThreads(vocabulary);
    if (closed) grammars.close();
    return grammars;
  };
  return {
    open: async (grammar, of) => await (await (opened ??= load())).open(grammar, of),
    close() {
      closed = true;
      opened?.then((grammars) => grammars.close(), () => {});
    },
  };
}
