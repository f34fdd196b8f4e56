import type { Grammars, Vocabulary } from "./grammars.ts";

/** As openGrammarThreads, and nothing of it is loaded before the first is opened. */
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
