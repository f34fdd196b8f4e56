import type { TokenBytes } from "../text/token_bytes.ts";
import { type Constraint, openConstraint } from "./constraint.ts";
import { grammarFault } from "./fault.ts";
import { openCounter } from "./counts.ts";
import { mendedEbnf } from "./rules/ebnf_text.ts";
import { type Grammar, GrammarError, GrammarInterrupted } from "./rules/grammar.ts";
import { formRules } from "./json/forms.ts";
import { schemaRules } from "./json/schema.ts";
import { openMatcher } from "./matcher.ts";
import { regexExpression } from "./rules/regex.ts";
import { COUNTED_FROM, type CountedFrom, relaxed } from "./rules/relaxed.ts";
import { countsStrings, ebnf, productive, type Rules } from "./rules/rules.ts";
import { checkSize, MAX_TEXT, maxWidePlaces } from "./rules/size.ts";
import { timeLimited } from "./rules/time_limit.ts";
import { type TokenClasses, tokenClasses } from "./token_classes.ts";
import {
  type CompiledGrammar,
  type GrammarCompiler,
  openXGrammar,
  type XGrammar,
} from "./xgrammar.ts";

/** Grammars for one vocabulary. Nothing is loaded before the first is opened. */
export interface Grammars {
  /**
   * A new output's constraint.
   *
   * @param of.ignoreEos see `openConstraint`.
   * @param of.signal ends the wait for the constraint; a compilation that has begun goes on and its result is kept.
   * @throws UsageError for a grammar that cannot be used; the signal's reason.
   */
  open(
    grammar: Grammar,
    of: { readonly ignoreEos: boolean; readonly signal?: AbortSignal },
  ): Promise<Constraint>;
  /** Ends all threads of grammars; constraints that are open fail. */
  close(): void;
}

/** Grammars that are compiled in this thread. */
export interface LocalGrammars extends Pick<Grammars, "open"> {
  /** Loads what every grammar needs, so that the first one does not wait for it. */
  load(): Promise<void>;
}

/** The vocabulary of a target. */
export interface Vocabulary {
  /** Called when the first grammar is opened. */
  tokens(): TokenBytes;
  /** Ids of the target: 0 to one less. */
  readonly vocabSize: number;
  readonly eosTokenIds: readonly number[];
}

/** Compiled grammars that are kept for requests that want the same. */
export const KEPT = 16;

/**
 * @param of.from which counted repeats are counted outside xgrammar; default: those that are slow to compile.
 * @param of.check called often while xgrammar works; may throw a GrammarInterrupted.
 */
export function openGrammars(
  vocabulary: Vocabulary,
  { from = COUNTED_FROM, check }: {
    readonly from?: CountedFrom;
    readonly check?: () => void;
  } = {},
): LocalGrammars {
  const probe = openProbe(check);
  let module: Promise<Compiling> | undefined;
  let classes: TokenClasses | undefined;
  /** Compiled grammars by their text, the least recently used first. */
  const compiled = new Map<string, { readonly grammar: CompiledGrammar; readonly of: Compiling }>();

  async function compile(text: string) {
    const known = compiled.get(text);
    compiled.delete(text);
    // Running matchers keep their instance, even an aborted one; it compiles no new grammars.
    if (known && !known.of.xgrammar.aborted) return known;
    const before = await alive();
    try {
      return compiledIn(before ?? await openModule(), text);
    } catch (error) {
      // The memory may be full of other grammars: what a fresh instance cannot compile is too large.
      if (before?.xgrammar.aborted !== true || error instanceof GrammarInterrupted) throw error;
      await alive();
      return compiledIn(await openModule(), text);
    }
  }

  function openModule(): Promise<Compiling> {
    module ??= openCompiling(vocabulary, check);
    // It may have been interrupted.
    module.catch(() => void (module = undefined));
    return module;
  }

  /** The instance that compiles, unless it was aborted. */
  async function alive(): Promise<Compiling | undefined> {
    const found = await module;
    if (!found?.xgrammar.aborted) return found;
    module = undefined;
    // Drops all references to the aborted instance; its memory is freed when its matchers are closed.
    for (const [text, { of }] of compiled) if (of.xgrammar.aborted) compiled.delete(text);
    return undefined;
  }

  return {
    async load() {
      await Promise.all([openModule(), probe.load()]);
    },
    open: (grammar, { ignoreEos }) =>
      usable(async () => {
        const { vocabSize, eosTokenIds } = vocabulary;
        const { text, rules } = timeLimited(() => ebnfOf(grammar, { vocabSize, from }));
        if (!compiled.has(text)) await probe.parse(text);
        const found = await compile(text);
        compiled.set(text, found);
        const [oldest] = compiled;
        if (compiled.size > KEPT && oldest) {
          compiled.delete(oldest[0]);
          oldest[1].grammar.delete();
        }
        const { xgrammar, bytes, stripsSpace } = found.of;
        const matcher = openMatcher(xgrammar, found.grammar, vocabSize);
        const counter = rules &&
          openCounter(rules, classes ??= tokenClasses(bytes, eosTokenIds), {
            stripsSpace,
            few: from.tokens,
          });
        return openConstraint(matcher, { bytes, eosTokenIds, ignoreEos, counter });
      }),
  };
}

function compiledIn(of: Compiling, text: string) {
  const root = of.stripsSpace ? "spaced_root" : "root";
  const source = of.stripsSpace ? `${text}\nspaced_root ::= " " root\n` : text;
  const grammar = of.xgrammar.attempt(({ Grammar }) => {
    const parsed = Grammar.FromEBNF(source, root);
    try {
      return of.compiler.CompileGrammar(parsed);
    } finally {
      parsed.delete();
    }
  });
  return { grammar, of };
}

/** Parses grammars in an instance of its own first, because a mistake in one aborts the instance. */
interface Probe {
  load(): Promise<void>;
  /** @throws GrammarError for a text that cannot be parsed. */
  parse(text: string): Promise<void>;
}

function openProbe(check?: () => void): Probe {
  let instance: Promise<XGrammar> | undefined;

  function open(): Promise<XGrammar> {
    instance ??= openXGrammar(check);
    // It may have been interrupted.
    instance.catch(() => void (instance = undefined));
    return instance;
  }

  return {
    async load() {
      await open();
    },
    async parse(text) {
      const { attempt } = await open();
      try {
        attempt(({ Grammar }) => Grammar.FromEBNF(text, "root").delete());
      } catch (error) {
        instance = undefined;
        throw error;
      }
    },
  };
}

const checking = openProbe();

/**
 * Whether a grammar can be used at all, with no vocabulary yet.
 *
 * @throws UsageError where it cannot.
 */
export function checkGrammar(grammar: Grammar): Promise<void> {
  return usable(() => checking.parse(timeLimited(() => ebnfOf(grammar)).text));
}

interface Compiling {
  readonly xgrammar: XGrammar;
  readonly compiler: GrammarCompiler;
  readonly bytes: TokenBytes["bytes"];
  readonly stripsSpace: boolean;
}

async function openCompiling(
  { tokens, vocabSize, eosTokenIds }: Vocabulary,
  check: (() => void) | undefined,
): Promise<Compiling> {
  const { bytes, stripsSpace } = tokens();
  const xgrammar = await openXGrammar(check);
  const compiler = xgrammar.attempt((binding) => {
    const vocabulary = binding.vecStringFromJSArray(bytes);
    const stops = binding.vecIntFromJSArray(eosTokenIds);
    const info = new binding.TokenizerInfo(vocabulary, "RAW", vocabSize, stops, false);
    vocabulary.delete();
    stops.delete();
    return new binding.GrammarCompiler(info, 1, false);
  });
  return { xgrammar, compiler, bytes, stripsSpace };
}

/** A grammar as EBNF for xgrammar, and its rules if they contain counts that are handled outside xgrammar. */
interface Written {
  readonly text: string;
  readonly rules?: Rules;
}

/**
 * @param of.vocabSize of the target, where it is known.
 * @param of.from see `openGrammars`.
 * @throws GrammarError
 */
function ebnfOf(
  grammar: Grammar,
  { vocabSize = 1, from = COUNTED_FROM }: {
    readonly vocabSize?: number;
    readonly from?: CountedFrom;
  } = {},
): Written {
  const maxWide = maxWidePlaces(vocabSize);
  const written = (rules: Rules, what: string) => writtenRules(rules, what, { maxWide, from });
  switch (grammar.kind) {
    case "ebnf":
      return { text: mendedEbnf(grammar.text, maxWide) };
    case "regex":
      return written(new Map([["root", regexExpression(grammar.pattern)]]), "regular expression");
    case "json object":
      return written(schemaRules({ type: "object" }), "JSON schema");
    case "json schema":
      return written(schemaRules(grammar.schema), "JSON schema");
    case "forms":
      return written(formRules(grammar.forms), "form of a call");
  }
}

function writtenRules(
  rules: Rules,
  what: string,
  { maxWide, from }: { readonly maxWide: number; readonly from: CountedFrom },
): Written {
  const found = productive(rules);
  if (found === undefined) throw new GrammarError(`${what}: no text satisfies it`);
  const compiled = relaxed(found, from);
  checkSize(compiled, maxWide);
  const text = ebnf(compiled);
  if (text.length > MAX_TEXT) {
    throw new GrammarError(
      `it comes to ${text.length} characters of rules, of at most ${MAX_TEXT}`,
    );
  }
  return compiled !== found || countsStrings(found) ? { text, rules: found } : { text };
}

/** Whatever is thrown becomes the error of the request whose grammar this is, and of no other. */
async function usable<T>(action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (error) {
    throw grammarFault(error);
  }
}
