import { isObject } from "../../objects.ts";
import { choice, type Expression, NOTHING, sequence, text } from "../rules/rules.ts";
import { countOf, fault, type Schema } from "./keywords.ts";
import { COMMA, list, otherKey } from "./text.ts";

/** What the parts of a grammar share. */
export interface SchemaContext {
  /** The texts of a schema's values. */
  value(schema: unknown, path: string): Expression;
  /** Counts an expression that grows with the schema and returns it. */
  made(expression: Expression): Expression;
  /** Adds a rule and refers to it. */
  add(body: Expression): Expression;
}

/** A member of an object, its key included. */
export interface Member {
  readonly text: Expression;
  readonly required: boolean;
}

/**
 * Objects: the properties in their order, then others if "additionalProperties" allows them. If it is absent,
 * others are allowed only for a schema without properties.
 */
export function objectExpression(
  schema: Schema,
  path: string,
  context: SchemaContext,
): Expression {
  const { properties = {}, required = [], additionalProperties } = schema;
  if (!isObject(properties)) throw fault(path, `"properties" is no object`);
  if (!Array.isArray(required) || required.some((name) => typeof name !== "string")) {
    throw fault(path, `"required" is no list of names`);
  }
  const named = Object.keys(properties);
  const unnamed = [...new Set<string>(required)].filter((name) => !Object.hasOwn(properties, name));
  const names = [...named, ...unnamed];
  checkCounts(schema, path, {
    required: new Set(required).size,
    closed: additionalProperties === false,
    names,
  });
  const members = names.map((name): Member => ({
    text: sequence(
      context.made(text(`${JSON.stringify(name)}: `)),
      Object.hasOwn(properties, name)
        ? context.value(properties[name], `${path}/properties/${name}`)
        : context.value(additionalProperties ?? true, `${path}/additionalProperties`),
    ),
    required: required.includes(name),
  }));
  const others = additionalProperties ?? names.length === 0;
  const other = others === false ? NOTHING : context.add(sequence(
    names.length === 0
      ? sequence(anyKey())
      : otherKey(names, (body) => context.add(context.made(body))),
    text(": "),
    context.value(others, `${path}/additionalProperties`),
  ));
  return sequence(text("{"), chained(members, other, context), text("}"));
}

function anyKey(): Expression {
  return { kind: "rule", name: "string" };
}

/**
 * Members in their order, with `comma`s between those that are present. Each member has two rules, which share
 * the rules of the members after it,
 *
 *     some(k)  ::= member(k) after(k + 1) | some(k + 1)    where a list begins with k or a later one
 *     after(k) ::= "" | ", " some(k)
 *
 * If member k is required, some(k) lacks its second alternative; if any member from k on is required, after(k)
 * lacks "". With the form `(", " member(k))? after(k + 1)`, xgrammar's time grew with the square of the number
 * of members.
 */
export function chained(
  members: readonly Member[],
  other: Expression,
  context: Pick<SchemaContext, "add">,
  comma: Expression = COMMA,
): Expression {
  let some = list(other, 1);
  let optional = true;
  const maybe = (list: Expression) => optional ? choice(list, text("")) : list;
  for (const { text: member, required } of members.toReversed()) {
    const rest = context.add(some);
    const after = context.add(maybe(sequence(comma, rest)));
    const own = sequence(member, after);
    some = required ? own : choice(own, rest);
    optional &&= !required;
  }
  return maybe(some);
}

/** Refuses "minProperties" and "maxProperties" unless the other keywords imply them anyway. */
function checkCounts(
  schema: Schema,
  path: string,
  { required, closed, names }: {
    readonly required: number;
    readonly closed: boolean;
    readonly names: readonly string[];
  },
): void {
  const min = countOf(schema, "minProperties", path) ?? 0;
  const max = countOf(schema, "maxProperties", path) ?? Infinity;
  if (min > required) throw fault(path, `"minProperties" is not supported`);
  const open = !closed && (schema.additionalProperties !== undefined || names.length === 0);
  if (max < (open ? Infinity : names.length)) {
    throw fault(path, `"maxProperties" is not supported`);
  }
}
