import type { Environment, Interpreter } from "@huggingface/jinja";
import { FullerInterpreter } from "./jinja_gaps.ts";

type Statement = Parameters<Interpreter["evaluate"]>[0];
type Value = ReturnType<Interpreter["evaluate"]>;

/** What a template may use, for an input of this many characters. */
export interface TemplateBudget {
  /** Characters of one text, or elements of one list, each nested one counted where it is written. */
  readonly size: number;
  /** Expressions and statements that are evaluated. */
  readonly steps: number;
  /** Characters that are built in all; an element of a list counts for `ELEMENT` of them. */
  readonly built: number;
  readonly ms: number;
}

/**
 * Far above what templates of checkpoints use: those of tests/golden/templates build fewer than 20 times
 * their input. The memory stays below 1 GB.
 */
export function templateBudget(inputSize: number): TemplateBudget {
  return {
    size: 8_000_000 + 4 * inputSize,
    steps: 10_000_000 + 10 * inputSize,
    built: 64_000_000 + 64 * inputSize,
    ms: 10_000,
  };
}

/** What an element of a list, a method of a value and an iteration of a loop take, in characters. */
const ELEMENT = 8;
const METHOD = 128;
const ITERATION = 64;

/** Widest that `indent` and `tojson` may indent: it is written for every line. */
const WIDEST_INDENT = 64;

/** The clock is read after so many steps. */
const STEPS_A_LOOK = 1024;

/** What a template did that its budget does not hold: `takes more than 10 s`. */
export class TemplateLimit extends Error {}

/**
 * An interpreter that ends with a `TemplateLimit` before a template takes the machine: the package evaluates
 * whatever it is given, and one text of its can take all memory, which ends the whole process.
 *
 * What a step builds is counted when it is there. It is bounded by what the step is given: texts by V8,
 * at 2^29 characters, lists by the size of the text or list that they come from.
 */
export class BoundedInterpreter extends FullerInterpreter {
  readonly #budget: TemplateBudget;
  readonly #ends: number;
  readonly #sizes = new WeakMap<object, number>();
  /** Expressions that a loop goes through. */
  readonly #iterated = new WeakSet<object>();
  /** Arguments that say how wide lines are indented. */
  readonly #widths = new WeakSet<object>();
  #steps = 0;
  #built = 0;
  /** Size of the largest value that the step at hand was given. */
  #largest = 0;

  constructor(environment: Environment, budget: TemplateBudget) {
    super(environment);
    this.#budget = budget;
    this.#ends = performance.now() + budget.ms;
  }

  override evaluate(statement: Statement, environment: Environment): Value {
    if (statement === undefined) return super.evaluate(statement, environment);
    if (++this.#steps > this.#budget.steps) {
      throw new TemplateLimit(`takes more than ${this.#budget.steps} steps`);
    }
    if (this.#steps % STEPS_A_LOOK === 0 && performance.now() > this.#ends) {
      throw new TemplateLimit(`takes more than ${this.#budget.ms / 1000} s`);
    }
    this.#mark(statement);
    const outer = this.#largest;
    this.#largest = 0;
    const value = super.evaluate(statement, environment);
    const { size } = this.#sizeOf(value, this.#budget.size);
    if (size > this.#budget.size) {
      throw new TemplateLimit(`makes a value of more than ${this.#budget.size} characters`);
    }
    this.#charge(statement, value, size);
    this.#largest = Math.max(outer, size);
    return value;
  }

  /** Remembers the parts of a statement whose values are looked at more closely. */
  #mark(statement: object): void {
    const type = field(statement, "type");
    if (type === "For") {
      const iterable = field(statement, "iterable");
      const list = field(iterable, "type") === "SelectExpression"
        ? field(iterable, "lhs")
        : iterable;
      if (isObject(list)) this.#iterated.add(list);
    }
    if (type === "FilterExpression" || type === "FilterStatement") {
      const filter = field(statement, "filter");
      const name = field(field(filter, "callee"), "value");
      const args = field(filter, "args");
      if ((name !== "indent" && name !== "tojson") || !Array.isArray(args)) return;
      for (const arg of args) {
        const given = field(arg, "type") === "KeywordArgumentExpression"
          ? field(arg, "value")
          : arg;
        if (isObject(given)) this.#widths.add(given);
      }
    }
  }

  #charge(statement: object, value: Value, size: number): void {
    if (this.#widths.has(statement) && Number(value?.value) > WIDEST_INDENT) {
      throw new TemplateLimit(`indents by more than ${WIDEST_INDENT}`);
    }
    if (this.#iterated.has(statement)) this.#built += ITERATION * lengthOf(value);
    switch (field(statement, "type")) {
      case "Identifier":
      case "StringLiteral":
        break;
      case "MemberExpression":
        if (value?.type === "FunctionValue") this.#built += METHOD;
        if (field(field(statement, "property"), "type") !== "SliceExpression") break;
        this.#built += size;
        break;
      case "FilterExpression":
      case "FilterStatement":
      case "CallExpression":
        this.#built += size;
        break;
      default:
        // A longer text is a rope: what it was made of stays where it is.
        this.#built += Math.max(0, size - this.#largest);
    }
    if (this.#built > this.#budget.built) {
      throw new TemplateLimit(`builds more than ${this.#budget.built} characters in all`);
    }
  }

  /**
   * Characters that a value has as a text, about; more than `left` where it has more than that. A
   * namespace may change, and may be in itself: what has one in it is counted each time.
   */
  #sizeOf(value: Value | undefined, left: number, depth = 0): { size: number; fixed: boolean } {
    const inner: unknown = value?.value;
    if (typeof inner === "string") return { size: inner.length, fixed: true };
    if (!Array.isArray(inner) && !(inner instanceof Map)) return { size: 1, fixed: true };
    const known = this.#sizes.get(inner);
    if (known !== undefined) return { size: known, fixed: true };
    if (depth > DEEPEST) throw new TemplateLimit(`nests values deeper than ${DEEPEST}`);
    let size = 0;
    let fixed = value?.type !== "NamespaceValue";
    if (inner instanceof Map) { for (const key of inner.keys()) size += String(key).length; }
    for (const part of inner.values()) {
      const of = this.#sizeOf(part, left - size, depth + 1);
      size += ELEMENT + of.size;
      fixed &&= of.fixed;
      if (size > left) return { size, fixed: false };
    }
    if (fixed) this.#sizes.set(inner, size);
    return { size, fixed };
  }
}

/** Deeper values end the package's writer with a stack overflow. */
const DEEPEST = 500;

function lengthOf(value: Value | undefined): number {
  const inner: unknown = value?.value;
  return Array.isArray(inner) ? inner.length : inner instanceof Map ? inner.size : 0;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

function field(value: unknown, name: string): unknown {
  return isObject(value) ? Reflect.get(value, name) : undefined;
}
