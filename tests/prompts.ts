/** Consecutive prompts are of so many kinds in turn. */
export const PROMPT_KINDS = 13;

/**
 * Prompts in the style of the fledgling's training tasks, from easy to hard for a draft. The same
 * number always gives the same prompt.
 */
export function generatedPrompt(n: number): string {
  const pick = <T>(items: readonly T[], salt: number): T =>
    items[((n + 1) * 2654435761 + salt * 40503 >>> 7) % items.length] as T;
  const a = (n * 37 + 11) % 90;
  const templates: (() => string)[] = [
    () => `Count from ${a} to ${a + 12}.`,
    () => `Spell the word ${pick(WORDS, 1)}.`,
    () => `Reverse this list: ${pick(WORDS, 1)}, ${pick(WORDS, 2)}, ${pick(WORDS, 3)}.`,
    () => `Sort these words: ${pick(WORDS, 4)}, ${pick(WORDS, 5)}, ${pick(WORDS, 6)}.`,
    () => `What is ${a} + ${(a * 7) % 90}?`,
    () => `Write the multiplication table of ${2 + n % 11} up to 5.`,
    () => `Tell me a story about a ${pick(ANIMALS, 1)} and a ${pick(OBJECTS, 2)}.`,
    () => `Write a short poem about the ${pick(PLACES, 1)}.`,
    () => `Give me ${4 + n % 8} random words.`,
    () => `Write ${4 + n % 8} random numbers below 1000.`,
    () => `Write ${a * 11} in words.`,
    () => `Write a Python function ${pick(["add", "mix", "total"], 1)} that adds a and b.`,
    () => `Repeat after me: ${pick(WORDS, 7)} ${pick(OBJECTS, 1)} é ${pick(ANIMALS, 2)} 你好.`,
  ];
  return (templates[n % PROMPT_KINDS] as () => string)();
}

const WORDS =
  "amber anchor bamboo breeze cabin canyon copper desert ember forest garnet harbor island"
    .split(" ");
const ANIMALS = "fox owl otter badger heron mouse rabbit crow turtle goat".split(" ");
const OBJECTS = "lantern key map drum kite compass bell ladder basket mirror".split(" ");
const PLACES = "forest harbor mountain village river garden island castle".split(" ");
