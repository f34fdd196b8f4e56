import { GrammarError } from "../rules/grammar.ts";
import type { Expression } from "../rules/rules.ts";
import { MAX_RULES } from "../rules/size.ts";
import { checkTime } from "../rules/time_limit.ts";

/** The most schemas that are read, nested ones included; a schema counts each time it is read. */
const MAX_SCHEMAS = 50_000;

/** Parts of expressions and characters of texts: what is refused for its size anyway must not fill the memory. */
const MAX_PARTS = 1_000_000;

/** What the schemas of one grammar may come to: references can multiply a schema. */
export class Budget {
  #schemas = 0;
  #parts = 0;
  #rules = 0;

  /** Counts a schema that is read. @throws GrammarError */
  schema(): void {
    checkTime();
    if (++this.#schemas > MAX_SCHEMAS) throw tooLarge(`${MAX_SCHEMAS} schemas`);
  }

  /** Counts a rule that is added. @throws GrammarError */
  rule(): void {
    if (++this.#rules > MAX_RULES) throw tooLarge(`${MAX_RULES} rules`);
  }

  /** Counts the expression, which is returned. @throws GrammarError */
  made(expression: Expression): Expression {
    this.parts(partsOf(expression));
    return expression;
  }

  /** @throws GrammarError */
  parts(count: number): void {
    this.#parts += count;
    if (this.#parts > MAX_PARTS) throw tooLarge(`${MAX_PARTS} characters`);
  }
}

function partsOf(expression: Expression): number {
  switch (expression.kind) {
    case "text":
      return 1 + expression.text.length;
    case "one of":
      return 1 + expression.set.length;
    case "sequence":
    case "choice":
      return expression.parts.reduce((sum, part) => sum + partsOf(part), 1);
    case "repeat":
      return 1 + partsOf(expression.part);
    default:
      return 1;
  }
}

function tooLarge(than: string): GrammarError {
  return new GrammarError(`JSON schema: it comes to more than ${than}`);
}
