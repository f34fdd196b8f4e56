import type { Expression, Rules } from "../../src/grammar/rules/rules.ts";

/** Whether the rules accept a text, by the definition: finds all ends of all parts at all places. */
export function recognizes(rules: Rules, whole: string): boolean {
  const characters = [...whole];
  /** The places where a part that begins at a place may end. The sets are recomputed until none grows. */
  const known = new Map<string, Set<number>>();
  let grown = true;

  function ends(expression: Expression, from: number): Set<number> {
    switch (expression.kind) {
      case "text": {
        const text = [...expression.text];
        const there = text.every((character, i) => characters[from + i] === character);
        return new Set(there ? [from + text.length] : []);
      }
      case "one of": {
        const point = characters[from]?.codePointAt(0) ?? -1;
        const there = expression.set.some(([low, high]) => low <= point && point <= high);
        return new Set(there ? [from + 1] : []);
      }
      case "sequence":
        return expression.parts.reduce((at, part) => all(at, part), new Set([from]));
      case "choice":
        return new Set(expression.parts.flatMap((part) => [...ends(part, from)]));
      case "repeat": {
        const { part, min, max = Infinity } = expression;
        let at = new Set([from]);
        for (let n = 0; n < min; n++) at = all(at, part);
        let found = at;
        for (let n = min; n < max; n++) {
          at = all(at, part);
          const more = found.union(at);
          if (more.size === found.size) break;
          found = more;
        }
        return found;
      }
      case "counted string":
        throw new Error("no grammar here counts");
      case "rule":
        return known.getOrInsertComputed(`${expression.name} ${from}`, () => {
          grown = true;
          return new Set();
        });
    }
  }

  function all(places: Set<number>, part: Expression): Set<number> {
    return new Set([...places].flatMap((place) => [...ends(part, place)]));
  }

  known.set("root 0", new Set());
  while (grown) {
    grown = false;
    for (const [key, found] of [...known]) {
      const [name = "", from] = key.split(" ");
      const more = found.union(ends(rules.get(name) as Expression, Number(from)));
      if (more.size === found.size) continue;
      known.set(key, more);
      grown = true;
    }
  }
  return known.get("root 0")?.has(characters.length) ?? false;
}
