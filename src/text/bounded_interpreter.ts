import type { Environment, Interpreter } from "@huggingface/jinja";
import { FullerInterpreter } from "./jinja_gaps.ts";
import { field, isObject } from "../objects.ts";

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

/** The charge, in characters, for an element of a list, a method of a value or an iteration of a loop. */
const ELEMENT = 8;
const METHOD = 128;
const ITERATION = 64;

/** The widest indent of `indent` and `tojson`, because it is written for every line. */
const WIDEST_INDENT = 64;

/** The clock is read after so many steps. */
const STEPS_A_LOOK = 1024;

/** Thrown when a template exceeds its budget; the message says how: `takes more than 10 s`. */
export class TemplateLimit extends Error {}

/**
 * An interpreter that throws a `TemplateLimit` before a template uses up the machine. The package itself evaluates
 * any template, and a single text can take all memory, which ends the whole process.
 *
 * The result of a step is counted after the step. Its size is bounded by the step's inputs: V8 limits texts to
 * 2^29 characters, and a list is no larger than the text or list that it comes from.
 */
export class BoundedInterpreter extends FullerInterpreter {
  readonly #budget: TemplateBudget;
  readonly #ends: number;
  readonly #sizes = new WeakMap<object, number>();
  /** Expressions that a loop iterates over. */
  readonly #iterated = new WeakSet<object>();
  /** Arguments that say how wide lines are indented. */
  readonly #widths = new WeakSet<object>();
  #steps = 0;
  #built = 0;
  /** Size of the largest input of the current step. */
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
        // V8 stores a longer text as a rope that refers to its parts, so only the growth is charged.
        this.#built += Math.max(0, size - this.#largest);
    }
    if (this.#built > this.#budget.built) {
      throw new TemplateLimit(`builds more than ${this.#budget.built} characters in all`);
    }
  }

  /**
   * The approximate number of characters of a value as text; any number above `left` if it is larger than that.
   * A namespace can change and can contain itself, so a value with one in it is counted again each time.
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
