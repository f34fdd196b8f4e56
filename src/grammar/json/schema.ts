/** A grammar of the JSON that is valid for a schema. */
import { isObject } from "../../objects.ts";
import { type ArgumentSyntax, GrammarError } from "../rules/grammar.ts";
import { regexExpression } from "../rules/regex.ts";
import {
  choice,
  type Expression,
  NOTHING,
  rule,
  type Rules,
  sequence,
  text,
} from "../rules/rules.ts";
import { areApart } from "./apart.ts";
import { Budget } from "./budget.ts";
import { FORMATS } from "./formats.ts";
import {
  constraints,
  countOf,
  fault,
  isSame,
  type Schema,
  textOf,
  type Type,
  typeOf,
  typesOf,
} from "./keywords.ts";
import { withPointers } from "./ids.ts";
import { merged } from "./merge.ts";
import { type Bounds, decimal, integer } from "./number.ts";
import { chained, objectExpression, type SchemaContext } from "./object.ts";
import { stringWithoutTags, textWithout } from "./tags.ts";
import { jsonRules, list, quoted, stringCharacter, stringOf } from "./text.ts";

/** The most characters of a pattern: one of them can become dozens of parts. */
const MAX_PATTERN = 10_000;

/** The longest chain of `$ref`s; a longer one is taken for a cycle that leads to no schema. */
const MAX_REFERENCES = 64;

/** Rules that do not depend on a schema, at most on the syntax of arguments. */
export const COMMON_RULES: readonly string[] = [
  ...jsonRules().map(([name]) => name),
  "number",
  "integer",
  "text",
];

/** The arguments of a call as `syntax` has them, one after the other. @throws GrammarError as below. */
export function argumentRules(
  schema: unknown,
  syntax: ArgumentSyntax,
  budget: Budget,
): Rules {
  const local = withPointers(schema);
  const whole = (grammar: SchemaGrammar) => grammar.arguments(local, syntax);
  return new SchemaGrammar(local, whole, { budget }).rules;
}

/**
 * The grammar of JSON texts that are valid for the schema, on one line, with the properties in the schema's order.
 * Where a schema leaves open what else is allowed, the grammar allows less: see docs/constrained.md.
 *
 * @param of.objects only of its values that are objects: the arguments of a call.
 * @param of.budget shared by the schemas of one grammar.
 * @throws GrammarError for what is no schema or not supported.
 */
export function schemaRules(
  schema: unknown,
  { objects = false, budget = new Budget() }: {
    readonly objects?: boolean;
    readonly budget?: Budget;
  } = {},
): Rules {
  const local = withPointers(schema);
  const asked = objects ? { allOf: [local, { type: "object" }] } : local;
  const whole = (grammar: SchemaGrammar) => grammar.value(asked, "#");
  // A reference to the whole schema means all of its values, not only objects.
  return new SchemaGrammar(local, whole, { budget, ...objects ? {} : { name: "root" } }).rules;
}

class SchemaGrammar implements SchemaContext {
  readonly rules: Map<string, Expression> = new Map();
  readonly #schema: unknown;
  readonly #budget: Budget;
  /** Names of rules by `$ref`, or by a schema that has a `$ref` and other keywords, beside it or around it. */
  readonly #references = new Map<string, string>();

  /** @param of.name of the rule that the whole schema's values are, where there is one. */
  constructor(
    schema: unknown,
    root: (grammar: SchemaGrammar) => Expression,
    { budget, name }: { readonly budget: Budget; readonly name?: string },
  ) {
    this.#schema = schema;
    this.#budget = budget;
    this.rules.set("root", NOTHING);
    for (const [name, body] of jsonRules()) this.rules.set(name, body);
    this.rules.set("number", decimal({}));
    this.rules.set("integer", integer({}));
    if (name !== undefined) this.#references.set("#", name);
    this.rules.set("root", root(this));
  }

  /** The schema's properties, written one by one; the syntax cannot express other properties. */
  arguments(schema: unknown, syntax: ArgumentSyntax): Expression {
    const { properties = {}, required = [] } = isObject(schema) ? schema : {};
    if (!isObject(properties)) throw fault("#", `"properties" is no object`);
    if (!Array.isArray(required)) throw fault("#", `"required" is no list of names`);
    // A text ends before the first mark; in JSON a slash behind "<" can be escaped.
    const isTagged = syntax.ends.some((end) => end.startsWith("</"));
    if (isTagged) this.rules.set("string", stringWithoutTags());
    const [before, after] = syntax.text;
    // The rule includes the text after the value, so xgrammar decides from its tables where a token may end.
    this.rules.set("text", sequence(textWithout(syntax.ends), text(after)));
    const members = Object.entries(properties).map(([name, each]) => {
      const path = `#/properties/${name}`;
      const key = text(`${syntax.key[0]}${name}${syntax.key[1]}`);
      const value = syntax.texts.includes(name)
        ? [text(before), this.#freeText(each, path, { any: rule("text"), after })]
        : [text(syntax.value[0]), this.#argument(each, path, syntax), text(syntax.value[1])];
      return { text: sequence(key, ...value), required: required.includes(name) };
    });
    return chained(members, NOTHING, this, text(syntax.between));
  }

  #argument(schema: unknown, path: string, { booleans }: ArgumentSyntax): Expression {
    const target = this.#target(schema, path);
    const isBoolean = isObject(target) && target.type === "boolean" &&
      target.enum === undefined && target.const === undefined;
    return booleans && isBoolean ? choice(...booleans.map(text)) : this.value(schema, path);
  }

  /** A text without quotes, or one of those that a schema lists, and what follows it. */
  #freeText(
    schema: unknown,
    path: string,
    { any, after }: { readonly any: Expression; readonly after: string },
  ): Expression {
    this.#budget.schema();
    const target = this.#target(schema, path);
    if (!isObject(target)) return any;
    const { anyOf, oneOf, enum: listed, type } = target;
    const parts = anyOf ?? oneOf;
    if (Array.isArray(oneOf)) this.#checkApart(oneOf, path);
    if (Array.isArray(parts)) {
      return choice(...parts.map((part) => this.#freeText(part, path, { any, after })));
    }
    const values = Object.hasOwn(target, "const") ? [target.const] : listed;
    if (Array.isArray(values)) {
      return this.#budget.made(choice(...values.map((value) => text(`${value}${after}`))));
    }
    return type === "null" ? text(`null${after}`) : any;
  }

  made(expression: Expression): Expression {
    return this.#budget.made(expression);
  }

  add(body: Expression): Expression {
    this.#budget.rule();
    const name = `rule_${this.rules.size}`;
    this.rules.set(name, body);
    return rule(name);
  }

  value(schema: unknown, path: string): Expression {
    this.#budget.schema();
    if (schema === true) return rule("value");
    if (schema === false) return NOTHING;
    if (!isObject(schema)) throw fault(path, "it is neither an object nor true or false");
    const asked = constraints(schema, path);
    const { $ref, anyOf, oneOf, allOf, ...rest } = asked;
    if (Object.keys(asked).length === 0) return rule("value");
    if ($ref !== undefined) {
      if (Object.keys(asked).length === 1) return this.#reference($ref, path);
      return this.#named(JSON.stringify(asked), () => {
        const target = this.#resolve($ref, path);
        return this.value(merged(target, without(asked, "$ref"), path), path);
      });
    }
    if (allOf !== undefined) {
      const parts = this.#schemas(allOf, path, "allOf");
      return this.#shared(parts, asked, () => {
        const all = parts.map((each) => this.#target(each, path));
        return this.value(all.reduce((a, b) => merged(a, b, path), without(asked, "allOf")), path);
      });
    }
    if (oneOf !== undefined || anyOf !== undefined) {
      const keyword = oneOf === undefined ? "anyOf" : "oneOf";
      const parts = this.#schemas(asked[keyword], path, keyword);
      if (oneOf !== undefined) this.#checkApart(parts, path);
      const beside = without(asked, keyword);
      const at = (i: number) => `${path}/${keyword}/${i}`;
      if (Object.keys(beside).length === 0) {
        return choice(...parts.map((part, i) => this.value(part, at(i))));
      }
      return this.#shared(parts, asked, () =>
        choice(...parts.map((part, i) => {
          return this.value(merged(this.#target(part, at(i)), beside, at(i)), at(i));
        })));
    }
    if (rest.enum !== undefined || Object.hasOwn(rest, "const")) return this.#values(rest, path);
    return choice(...typesOf(rest, path).map((type) => this.#ofType(type, rest, path)));
  }

  #values(schema: Schema, path: string): Expression {
    const { enum: listed, type, ...rest } = schema;
    if (listed !== undefined && !Array.isArray(listed)) throw fault(path, `"enum" is no list`);
    const beside = Object.keys(rest).find((keyword) => keyword !== "const");
    if (beside !== undefined) throw fault(path, `"${beside}" beside "enum" is not supported`);
    const types = type === undefined ? undefined : typesOf({ type }, path);
    const fits = (value: unknown) => {
      const own = typeOf(value);
      if (Object.hasOwn(rest, "const") && !isSame(value, rest.const)) return false;
      return types === undefined || types.includes(own) ||
        (own === "integer" && types.includes("number"));
    };
    const values: readonly unknown[] = listed ?? [rest.const];
    const fitting = values.filter(fits).map((value) => text(JSON.stringify(value)));
    return this.#budget.made(choice(...fitting));
  }

  #ofType(type: Type, schema: Schema, path: string): Expression {
    switch (type) {
      case "object":
        return objectExpression(schema, path, this);
      case "array":
        return this.#array(schema, path);
      case "string":
        return this.#string(schema, path);
      case "number":
        return this.#number("number", decimal, schema, path);
      case "integer":
        return this.#number("integer", integer, schema, path);
      case "boolean":
        return choice(text("true"), text("false"));
      case "null":
        return text("null");
    }
  }

  /** All numbers without bounds share one rule. */
  #number(
    all: string,
    between: (bounds: Bounds) => Expression,
    schema: Schema,
    path: string,
  ): Expression {
    const { min, max } = boundsOf(schema, path);
    if (min === undefined && max === undefined) return rule(all);
    return this.#budget.made(between({ min, max }));
  }

  #string(schema: Schema, path: string): Expression {
    const [pattern, format] = [textOf(schema, "pattern", path), textOf(schema, "format", path)];
    const [min, max] = [countOf(schema, "minLength", path), countOf(schema, "maxLength", path)];
    const asked = ["pattern", "format"].filter((keyword) => schema[keyword] !== undefined);
    if (min !== undefined || max !== undefined) asked.push("minLength or maxLength");
    if (asked.length > 1) throw fault(path, `${asked.join(" and ")} at once is not supported`);
    if (pattern !== undefined) {
      if (pattern.length > MAX_PATTERN) {
        throw fault(path, `a "pattern" of more than ${MAX_PATTERN} characters is not supported`);
      }
      return this.#budget.made(quoted(regexExpression(pattern, stringCharacter)));
    }
    if (format !== undefined) {
      const expression = Object.hasOwn(FORMATS, format) ? FORMATS[format] : undefined;
      if (expression === undefined) {
        const known = Object.keys(FORMATS).join(", ");
        throw fault(path, `the format "${format}" is not supported, only ${known}`);
      }
      // All strings with the same format share one rule.
      return this.#named(
        `format ${format}`,
        () => quoted(regexExpression(expression, stringCharacter)),
      );
    }
    if (min === undefined && max === undefined) return rule("string");
    return max !== undefined && max < (min ?? 0) ? NOTHING : stringOf(min ?? 0, max);
  }

  #array(schema: Schema, path: string): Expression {
    if (schema.uniqueItems === true) throw fault(path, `"uniqueItems" is not supported`);
    // Before 2020 "items" could be the list and "additionalItems" what comes after it.
    const tuple = Array.isArray(schema.items);
    if (tuple && schema.prefixItems !== undefined) {
      throw fault(path, `"prefixItems" and a list as "items" at once`);
    }
    const first = this.#schemas(
      schema.prefixItems ?? (tuple ? schema.items : []),
      path,
      "prefixItems",
      0,
    );
    const min = countOf(schema, "minItems", path) ?? 0;
    // No array reaches an item that nothing is valid for.
    const never = first.indexOf(false);
    const end = never < 0 ? Infinity : never;
    const most = Math.min(countOf(schema, "maxItems", path) ?? Infinity, end);
    const max = most === Infinity ? undefined : most;
    if (max !== undefined && max < min) return NOTHING;
    const items = tuple ? schema.additionalItems : schema.items;
    const more = items ?? (first.length === 0 || min > first.length);
    const begin = first.slice(0, max)
      .map((each, i) => this.value(each, `${path}/prefixItems/${i}`));
    const entry = this.add(this.value(more, `${path}/items`));
    const left = max === undefined ? undefined : max - begin.length;
    if (begin.length === 0) return bracketed(list(entry, min, left));
    const rest = sequence(text(", "), list(entry, Math.max(1, min - begin.length), left));
    const fixed = sequence(...begin.flatMap((part, i) => i === 0 ? [part] : [text(", "), part]));
    if (min > begin.length) return bracketed(sequence(fixed, rest));
    return bracketed(left === 0 ? fixed : sequence(fixed, choice(text(""), rest)));
  }

  #schemas(value: unknown, path: string, keyword: string, min = 1): readonly unknown[] {
    if (Array.isArray(value) && value.length >= min) return value;
    throw fault(path, `"${keyword}" is no list of schemas`);
  }

  #checkApart(parts: readonly unknown[], path: string): void {
    const resolved = (schema: unknown) => this.#target(schema, path);
    for (const [i, a] of parts.entries()) {
      const same = parts.slice(i + 1).findIndex((b) => !areApart(a, b, resolved));
      if (same < 0) continue;
      throw fault(
        path,
        `"oneOf" is supported where its schemas exclude each other by type, const, enum or a ` +
          `required property; ${i} and ${i + 1 + same} do not ("anyOf" has no such limit)`,
      );
    }
  }

  #reference(reference: unknown, path: string): Expression {
    const target = this.#resolve(reference, path);
    return this.#named(reference as string, () => this.value(target, reference as string));
  }

  /**
   * What is merged of a schema with the parts. If one is a reference, it becomes a rule: the reference may lead back to
   * the schema.
   */
  #shared(parts: readonly unknown[], schema: Schema, body: () => Expression): Expression {
    const refers = parts.some((part) => isObject(part) && part.$ref !== undefined);
    return refers ? this.#named(JSON.stringify(schema), body) : body();
  }

  /** Adds a rule before its body is made, so that the body may refer to it. */
  #named(key: string, body: () => Expression): Expression {
    const known = this.#references.get(key);
    if (known !== undefined) return rule(known);
    this.#budget.rule();
    this.#budget.parts(key.length);
    const name = `reference_${this.#references.size}`;
    this.#references.set(key, name);
    this.rules.set(name, NOTHING);
    this.rules.set(name, body());
    return rule(name);
  }

  /** The schema, or what its `$ref` leads to. */
  #target(schema: unknown, path: string): unknown {
    let at = schema;
    for (let n = 0; isObject(at) && at.$ref !== undefined; n++) {
      if (n === MAX_REFERENCES) throw fault(path, `"$ref" leads in a circle`);
      at = merged(this.#resolve(at.$ref, path), without(at, "$ref"), path);
    }
    return at;
  }

  /** What a local `$ref` points to. */
  #resolve(reference: unknown, path: string): unknown {
    const missing = (): GrammarError =>
      fault(path, `"$ref" ${JSON.stringify(reference)} leads nowhere in this schema`);
    if (typeof reference !== "string" || !/^#(\/|$)/.test(reference)) throw missing();
    const pointer = percentDecoded(reference);
    if (pointer === undefined) {
      throw fault(path, `"$ref" ${JSON.stringify(reference)} has a "%" that begins no character`);
    }
    const parts = pointer.split("/").slice(1)
      .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
    return parts.reduce((at: unknown, part) => {
      const found = Array.isArray(at)
        ? at[Number(part)]
        : isObject(at) && Object.hasOwn(at, part)
        ? at[part]
        : undefined;
      if (found === undefined) throw missing();
      return found;
    }, this.#schema);
  }
}

/** A fragment of a URI without its percent escapes; undefined where they are no UTF-8. */
function percentDecoded(fragment: string): string | undefined {
  try {
    return decodeURIComponent(fragment);
  } catch (error) {
    if (error instanceof URIError) return undefined;
    throw error;
  }
}

function bracketed(inside: Expression): Expression {
  return sequence(text("["), inside, text("]"));
}

function without(schema: Schema, keyword: string): Schema {
  const { [keyword]: _, ...rest } = schema;
  return rest;
}

function boundsOf(schema: Schema, path: string): Bounds {
  const of = (keyword: string, exclusive: boolean) => {
    const value = schema[keyword];
    if (value === undefined) return [];
    if (typeof value === "number" && Number.isFinite(value)) return [{ value, exclusive }];
    throw fault(path, `"${keyword}" is ${JSON.stringify(value)}, not a number`);
  };
  const byValue = (a: { value: number }, b: { value: number }) => a.value - b.value;
  // Of two bounds the exclusive one is the tighter where they are equal.
  const low = [...of("minimum", false), ...of("exclusiveMinimum", true)].toSorted(byValue).at(-1);
  const high = [...of("exclusiveMaximum", true), ...of("maximum", false)].toSorted(byValue)[0];
  return { min: low, max: high };
}
