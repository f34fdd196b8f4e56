import { type CallForm, GrammarError } from "../rules/grammar.ts";
import {
  choice,
  type Expression,
  productive,
  rule,
  type Rules,
  sequence,
  text,
} from "../rules/rules.ts";
import { argumentRules, schemaRules } from "./schema.ts";

/** Characters of a form in a message. */
const MOST_SHOWN = 80;

/**
 * A grammar of texts that are one of the forms. Arguments of a call are a JSON object, whatever else
 * their schema would allow, or as the form's syntax writes them. Each schema has its own rules: what `$ref` names in one is not seen from
 * another.
 *
 * @throws GrammarError as `schemaRules`, and for a schema that no object satisfies.
 */
export function formRules(forms: readonly CallForm[]): Rules {
  const rules = new Map<string, Expression>();
  const parts = forms.map(({ before, schema, after, syntax }, i) => {
    const arguments_ = productive(
      syntax ? argumentRules(schema, syntax) : schemaRules(schema, { objects: true }),
    );
    if (arguments_ === undefined) {
      const begin = JSON.stringify(before.slice(0, MOST_SHOWN));
      throw new GrammarError(
        `JSON schema of the arguments of the call that begins with ${begin}: no object satisfies it`,
      );
    }
    for (const [name, body] of arguments_) rules.set(own(name, i), renamed(body, i));
    return sequence(text(before), rule(own("root", i)), text(after));
  });
  return new Map([["root", choice(...parts)], ...rules]);
}

function own(name: string, form: number): string {
  return `form_${form}_${name}`;
}

/** The expression with the rules of its form. */
function renamed(expression: Expression, form: number): Expression {
  switch (expression.kind) {
    case "rule":
      return rule(own(expression.name, form));
    case "sequence":
    case "choice":
      return { ...expression, parts: expression.parts.map((part) => renamed(part, form)) };
    case "repeat":
      return { ...expression, part: renamed(expression.part, form) };
    case "counted string":
      return { ...expression, of: own(expression.of, form) };
    default:
      return expression;
  }
}
