import { type AST, RegExpParser } from "@eslint-community/regexpp";
import { reason } from "../../errors.ts";
import { type CodePoints, codePoints, except } from "./code_points.ts";
import { GrammarError } from "./grammar.ts";
import { choice, type Expression, oneOf, repeat, sequence } from "./rules.ts";

const LINE_ENDS: CodePoints = [[0x0a, 0x0a], [0x0d, 0x0d], [0x2028, 0x2029]];

/** \d, \w, \s as JavaScript has them. */
const NAMED: Readonly<Record<"digit" | "word" | "space", CodePoints>> = {
  digit: [[0x30, 0x39]],
  word: [[0x30, 0x39], [0x41, 0x5a], [0x5f, 0x5f], [0x61, 0x7a]],
  space: codePoints([
    ...[[0x09, 0x0d], [0x20, 0x20], [0xa0, 0xa0], [0x1680, 0x1680], [0x2000, 0x200a]] as const,
    ...[[0x2028, 0x2029], [0x202f, 0x202f], [0x205f, 0x205f], [0x3000, 0x3000]] as const,
    [0xfeff, 0xfeff],
  ]),
};

/**
 * The texts that the whole of a JavaScript regular expression matches (as with the flag u); ^ and $
 * may stand at its edges.
 *
 * @param character how one of a set of characters is written; default: as it is.
 * @throws GrammarError for what is no regular expression or looks around itself.
 */
export function regexExpression(
  pattern: string,
  character: (set: CodePoints) => Expression = oneOf,
): Expression {
  return new Translation(pattern, character).whole();
}

class Translation {
  readonly #source: string;
  readonly #character: (set: CodePoints) => Expression;

  constructor(source: string, character: (set: CodePoints) => Expression) {
    this.#source = source;
    this.#character = character;
  }

  whole(): Expression {
    return choice(
      ...this.#parse().alternatives.map(({ elements }) => {
        const from = isEdge(elements[0], "start") ? 1 : 0;
        const inner = elements.slice(from, isEdge(elements.at(-1), "end") ? -1 : undefined);
        return this.#sequence(inner);
      }),
    );
  }

  #parse(): AST.Pattern {
    try {
      return new RegExpParser({ ecmaVersion: 2024 }).parsePattern(
        this.#source,
        0,
        this.#source.length,
        { unicode: true },
      );
    } catch (error) {
      throw this.#fault(reason(error).replace(/^Invalid regular expression: .*\/\w*: /, ""));
    }
  }

  #sequence(elements: readonly AST.Element[]): Expression {
    return sequence(...elements.map((element) => this.#element(element)));
  }

  #element(element: AST.Element): Expression {
    switch (element.type) {
      case "Character":
        return this.#character([[element.value, element.value]]);
      case "CharacterSet":
        return this.#character(this.#setOf(element));
      case "CharacterClass":
        return this.#character(this.#classOf(element));
      case "Group":
        if (element.modifiers) throw this.#unsupported(element);
        return this.#group(element.alternatives);
      case "CapturingGroup":
        return this.#group(element.alternatives);
      case "Quantifier": {
        const { min, max, element: part } = element;
        return repeat(this.#element(part), min, max === Infinity ? undefined : max);
      }
      default:
        throw this.#unsupported(element);
    }
  }

  #group(alternatives: readonly AST.Alternative[]): Expression {
    return choice(...alternatives.map(({ elements }) => this.#sequence(elements)));
  }

  #classOf(element: AST.CharacterClass): CodePoints {
    const set = codePoints(element.elements.flatMap((part): CodePoints => {
      switch (part.type) {
        case "Character":
          return [[part.value, part.value]];
        case "CharacterClassRange":
          return [[part.min.value, part.max.value]];
        case "CharacterSet":
          return this.#setOf(part);
        default:
          throw this.#unsupported(part);
      }
    }));
    return element.negate ? except(set) : set;
  }

  #setOf(element: AST.CharacterSet): CodePoints {
    if (element.kind === "any") return except(LINE_ENDS);
    if (element.kind === "property") throw this.#unsupported(element);
    const set = NAMED[element.kind];
    return element.negate ? except(set) : set;
  }

  #unsupported({ raw }: AST.Node): GrammarError {
    return this.#fault(`"${raw}" is not supported`);
  }

  #fault(why: string): GrammarError {
    return new GrammarError(`regular expression "${this.#source}": ${why}`);
  }
}

function isEdge(element: AST.Element | undefined, kind: "start" | "end"): boolean {
  return element?.type === "Assertion" && element.kind === kind;
}
