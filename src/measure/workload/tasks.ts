import type { Draw } from "./draw.ts";

const words = (text: string): readonly string[] => text.split(" ");

const NAMES = words(
  "Ada Ben Cleo Dana Eli Fay Gus Hana Ivo June Kai Lena Milo Nora Otis Pia Quinn",
);
const CITIES = words("Oslo Lima Cairo Paris Tokyo Quito Delhi Rome Bern Accra Seoul Hanoi Dakar");
const JOBS = words("pilot baker doctor teacher painter farmer sailor engineer writer nurse");
const HOBBIES = words("chess painting rowing music baking climbing reading gardening running");
const ANIMALS = words("fox owl otter badger heron mouse rabbit crow turtle goat cat dog bear swan");
const OBJECTS = words(
  "lantern key map drum kite compass bell ladder basket mirror violin boat hat",
);
const PLACES = words("forest harbor mountain village river garden island castle meadow market");
const NOUNS = words(
  "amber anchor apple arrow bamboo beacon birch blossom bottle bridge button candle canvas castle " +
    "cedar circle clover copper cotton crystal desert dragon ember falcon feather fiddle forest " +
    "garnet ginger glacier hammer harbor helmet honey island jacket jungle kettle ladder lagoon " +
    "lantern lemon magnet maple marble meadow mirror needle nutmeg ocean olive orchid paddle paper " +
    "pebble pepper pillow planet pumpkin rabbit ribbon river saddle shadow silver summit sunset",
);
const CHAT = [
  "Hello!",
  "Who are you?",
  "What can you do?",
  "Thank you!",
  "How are you?",
  "What is speculative decoding?",
  "What is an EAGLE draft model?",
];

/** Makers of prompts of the kinds that the embedded model was trained on, from predictable to nearly random answers. */
const GRAMMARS = {
  count(draw: Draw): string {
    const step = draw.one([1, 1, 1, 1, 2, 3, 5, 10]);
    const first = draw.integer(0, 200);
    const last = first + step * draw.integer(4, 29);
    const by = step > 1 ? ` by ${step}` : "";
    return draw.one([
      `Count from ${first} to ${last}${by}.`,
      `Please count from ${first} up to ${last}${by}.`,
      `Write the numbers from ${first} to ${last}${by}.`,
      `Count down from ${last} to ${first}${by}.`,
    ]);
  },
  spell(draw: Draw): string {
    const word = draw.one([...NOUNS, ...ANIMALS, ...OBJECTS]);
    return draw.one([`Spell the word ${word}.`, `How do you spell ${word}?`]);
  },
  reverse: (draw: Draw): string =>
    `Reverse this list: ${draw.some(NOUNS, draw.integer(3, 7)).join(", ")}.`,
  sort_words: (draw: Draw): string =>
    `Sort these words: ${draw.some(NOUNS, draw.integer(3, 6)).join(", ")}.`,
  table(draw: Draw): string {
    const [of, top] = [draw.integer(2, 12), draw.one([5, 10, 10, 12])];
    return draw.one([
      `Write the multiplication table of ${of} up to ${top}.`,
      `Show me the times table for ${of} up to ${top}.`,
    ]);
  },
  to_json(draw: Draw): string {
    const who = draw.one(["Turn this into JSON: ", "Make a JSON object from this: "]);
    return `${who}${draw.one(NAMES)} is ${draw.integer(18, 90)} years old, ` +
      `lives in ${draw.one(CITIES)}, works as a ${draw.one(JOBS)} and likes ${draw.one(HOBBIES)}.`;
  },
  story(draw: Draw): string {
    const [hero, object] = [draw.one(ANIMALS), draw.one(OBJECTS)];
    return draw.one([
      `Tell me a story about a ${hero} and a ${object}.`,
      `Write a short story about a ${hero} who finds a ${object}.`,
      `Please tell a story with a ${hero} and a ${object}.`,
    ]);
  },
  poem(draw: Draw): string {
    const place = draw.one(PLACES);
    return draw.one([`Write a short poem about the ${place}.`, `Write a poem about a ${place}.`]);
  },
  random_words(draw: Draw): string {
    const count = draw.integer(4, 12);
    return draw.one([`Give me ${count} random words.`, `List ${count} random words.`]);
  },
  random_numbers(draw: Draw): string {
    const count = draw.integer(4, 12);
    return draw.one([
      `Give me ${count} random numbers.`,
      `Write ${count} random numbers below 1000.`,
    ]);
  },
  code(draw: Draw): string {
    const name = draw.one(["add", "total", "combine", "mix"]);
    const verb = draw.one(["adds", "subtracts", "multiplies"]);
    const [a, b] = draw.some(["a", "b", "x", "y", "left", "right"], 2);
    const variable = draw.one(["item", "value", "n", "x"]);
    return draw.one([
      `Write a TypeScript function ${name} that ${verb} ${a} and ${b}.`,
      `Write a Python function ${name} that ${verb} ${a} and ${b}.`,
      `Write a Python function ${name} that sums a list, with loop variable ${variable}.`,
      `Write a TypeScript loop that prints the numbers from 1 to ${draw.integer(3, 100)}.`,
    ]);
  },
  chat: (draw: Draw): string => draw.one(CHAT),
};

/** The name of a task. */
export type TaskName = keyof typeof GRAMMARS;

/** The names of all tasks. */
export const TASKS: readonly TaskName[] = Object.keys(GRAMMARS) as TaskName[];

/** Tasks whose answers follow from the prompt: most drafts are accepted. */
export const EASY: readonly TaskName[] = ["count", "table", "to_json", "reverse"];
/** Tasks whose answers are close to random: few drafts are accepted. */
export const HARD: readonly TaskName[] = ["random_words", "random_numbers", "poem"];

/** A random prompt of a task. */
export function taskPrompt(task: TaskName, draw: Draw): string {
  return GRAMMARS[task](draw);
}
