/**
 * Random JSON schemas and grammars (half of them regular expressions, half EBNF) with the embedded
 * vocabulary, without a model:
 *
 *     deno run -A --lock tests/deno.lock tools/grammars.ts [SCHEMAS] [GRAMMARS]
 *
 * It checks that every finished output is valid (by ajv, RegExp or our own recognizer) and is the same with chains,
 * trees and forced drafts. Default 1,000 and 300; the seeds are 0, 1, ...
 */
import { openGrammars } from "../src/grammar/grammars.ts";
import { type CaseKind, checkCase } from "../tests/grammar/cases.ts";
import { fledglingBytes, fledglingVocabulary } from "../tests/grammar/vocabulary.ts";

const [schemas = 1000, others = 300] = Deno.args.map(Number);
const of = { grammars: openGrammars(fledglingVocabulary()), tokens: fledglingBytes() };
const say = (line: string) => Deno.stdout.writeSync(new TextEncoder().encode(`${line}\n`));

for (const [kind, count] of [["schema", schemas], ["regex", others / 2], ["ebnf", others / 2]]) {
  const began = performance.now();
  let [ended, tokens, rounds, failed] = [0, 0, 0, 0];
  for (let seed = 0; seed < Number(count); seed++) {
    try {
      const { plain, forced } = await checkCase(of, kind as CaseKind, seed);
      if (plain.finished === "stop") ended++;
      tokens += plain.ids.length;
      rounds += forced.rounds;
    } catch (error) {
      failed++;
      say(`${kind} ${seed}: ${error instanceof Error ? error.message : error}`);
    }
  }
  const seconds = ((performance.now() - began) / 1000).toFixed(0);
  say(
    `${kind}: ${count} cases, ${failed} failed, ${ended} ended by themselves, ${tokens} tokens, ` +
      `${(tokens / rounds).toFixed(2)} a round with forced drafts alone, ${seconds} s`,
  );
}
