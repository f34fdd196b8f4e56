/**
 * `deno run -A tools/grammar_times.ts`: how long it takes to open grammars and to compute their masks, with
 * a vocabulary of 150,000 made-up tokens.
 */
import { openGrammars } from "../src/grammar/grammars.ts";
import { tokensOf } from "../src/grammar/matcher.ts";
import type { Grammar } from "../src/grammar/rules/grammar.ts";
import { hash32 } from "../src/speculate/noise.ts";

const say = (line: string) => Deno.stdout.writeSync(new TextEncoder().encode(`${line}\n`));

const VOCAB_SIZE = 150_000;
const EOS = VOCAB_SIZE - 1;
const MASKS = 150;

const PUNCTUATION = ['"', '",', '":', ".", "_", "-", "()", "{", "}", "\n", "\\n", " = ", "/", "@"];

let drawn = 0;
const draw = (below: number) => hash32(drawn++, 1, 2) % below;
const letters = (from: number, count: number) =>
  String.fromCodePoint(...Array.from({ length: 1 + draw(3) }, () => from + draw(count)));

function word(): string {
  const syllable = () => "bcdfghjklmnpqrstvwxyz"[draw(21)] as string + "aeiou"[draw(5)];
  return Array.from({ length: 1 + draw(4) }, syllable).join("") + (draw(2) ? "" : "n");
}

function token(): string {
  const mark = PUNCTUATION[draw(PUNCTUATION.length)] as string;
  switch (draw(8)) {
    case 0:
      return word() + mark;
    case 1:
      return mark + word();
    case 2:
      return letters(0x4e00, 9000);
    case 3:
      return letters(0x400, 80);
    case 4:
      return word().toUpperCase() + draw(100);
    case 5:
      return word();
    default:
      return ` ${word()}`;
  }
}

const texts = new Set<string>();
while (texts.size < VOCAB_SIZE - 257) texts.add(token());
const bytes = [
  ...Array.from({ length: 256 }, (_, byte) => Uint8Array.of(byte)),
  ...[...texts].map((text) => new TextEncoder().encode(text)),
  new Uint8Array(),
];

const regex = (pattern: string): Grammar => ({ kind: "regex", pattern });
const string = (schema: Record<string, unknown>): Grammar => ({
  kind: "json schema",
  schema: { type: "array", items: { type: "string", ...schema } },
});
const GRAMMARS: Readonly<Record<string, Grammar>> = {
  "[a-z]{0,100}": regex("[a-z]{0,100}"),
  "[a-z]{1,1000}": regex("[a-z]{1,1000}"),
  "^[A-Za-z0-9_-]{10,500}$": regex("^[A-Za-z0-9_-]{10,500}$"),
  "(\\w{1,64}\\.){1,3}\\w{2,63}": regex("(\\w{1,64}\\.){1,3}\\w{2,63}"),
  "[^x]{20,2000}": regex("[^x]{20,2000}"),
  "pattern ^[A-Za-z0-9 ]{1,64}$": string({ pattern: "^[A-Za-z0-9 ]{1,64}$" }),
  "maxLength 50": string({ minLength: 3, maxLength: 50 }),
  "format hostname": string({ format: "hostname" }),
  "format email": string({ format: "email" }),
  "format uri": string({ format: "uri" }),
};

const grammars = openGrammars({
  tokens: () => ({ bytes, stripsSpace: false }),
  vocabSize: VOCAB_SIZE,
  eosTokenIds: [EOS],
});
await grammars.load();

for (const [name, grammar] of Object.entries(GRAMMARS)) {
  const begun = performance.now();
  try {
    const constraint = await grammars.open(grammar, { ignoreEos: false });
    const opened = performance.now() - begun;
    const times: number[] = [];
    while (times.length < MASKS) {
      const choices = (tokensOf(constraint.mask, Infinity) ?? []).filter((each) => each !== EOS);
      const chosen = choices[draw(choices.length)];
      if (chosen === undefined) break;
      const from = performance.now();
      constraint.take(chosen);
      times.push(performance.now() - from);
    }
    constraint.close();
    times.sort((a, b) => a - b);
    const at = (part: number) => times[Math.floor((times.length - 1) * part)]?.toFixed(2);
    say(
      `${name}: opened in ${opened.toFixed(0)} ms; ${times.length} masks, ` +
        `median ${at(0.5)} ms, 90% below ${at(0.9)} ms, at most ${at(1)} ms`,
    );
  } catch (error) {
    say(`${name}: ${error}`);
  }
}
