/** `@mlc-ai/web-xgrammar`: grammars over a vocabulary, in WebAssembly. */
import { createRequire } from "node:module";
import { interruptible } from "./interruptible.ts";
import { packageText } from "./package_text.ts";
import { GrammarError } from "./rules/grammar.ts";

/** Objects in the WebAssembly memory, which `delete` frees. */
interface Owned {
  delete(): void;
}

/** Ids or a mask in that memory. */
type VectorInt = Owned & { readonly _int: never };
type VectorString = Owned & { readonly _string: never };

export type ParsedGrammar = Owned & { readonly _grammar: never };
export type CompiledGrammar = Owned & { readonly _compiled: never };
export type TokenizerInfo = Owned & { readonly _tokenizer: never };

export interface GrammarCompiler extends Owned {
  CompileGrammar(grammar: ParsedGrammar): CompiledGrammar;
}

export interface GrammarMatcher extends Owned {
  /** False, and nothing has happened, where it is not allowed. */
  AcceptToken(token: number, verbose: boolean): boolean;
  /** Takes back that many tokens; never more than were accepted. */
  Rollback(count: number): void;
  /** Bit t % 32 of word t / 32 is 1 where token t may follow; not after a token that ends. */
  GetNextTokenBitmask(vocabSize: number): VectorInt;
}

/** The package's inner binding. Its public classes can fill a mask only asynchronously. */
export interface Binding {
  readonly Grammar: { FromEBNF(text: string, root: string): ParsedGrammar };
  readonly TokenizerInfo: new (
    vocabulary: VectorString,
    type: "RAW",
    vocabSize: number,
    stopIds: VectorInt,
    addPrefixSpace: boolean,
  ) => TokenizerInfo;
  readonly GrammarCompiler: new (
    tokenizer: TokenizerInfo,
    threads: 1,
    cache: boolean,
  ) => GrammarCompiler;
  readonly GrammarMatcher: new (
    grammar: CompiledGrammar,
    stopIds: undefined,
    endsWithoutStop: boolean,
    maxRollback: -1,
  ) => GrammarMatcher;
  vecStringFromJSArray(texts: readonly Uint8Array[]): VectorString;
  vecIntFromJSArray(numbers: readonly number[]): VectorInt;
  /** The vector itself, until anything else is called. */
  vecIntToView(vector: VectorInt): Int32Array;
}

/** One instance of the module, with a memory of its own. */
export interface XGrammar {
  readonly binding: Binding;
  /** A check failed within: nothing new is to be made in this instance. */
  readonly aborted: boolean;
  /**
   * Runs what may not succeed. A check that fails within aborts the module.
   *
   * @throws GrammarError with the reason that the module gave.
   */
  attempt<T>(action: (binding: Binding) => T): T;
}

interface Package {
  readonly Grammar: { fromEBNF(text: string): Promise<unknown> };
  readonly binding: () => Binding;
}

const HELD = "exports.default = index;";

/** The published build allows an instance 2 GB. */
const HEAP_MAX = "getHeapMax=()=>2147483648";
const HEAP_BYTES = 256 * 1024 ** 2;
const TOO_LARGE = `compiled, it takes more than ${HEAP_BYTES / 1024 ** 2} MB`;

/** The module as base64, and its clock: a function that it imports, which `interruptible` lets it call often. */
const MODULE = /data:application\/octet-stream;base64,([A-Za-z0-9+/=]{1000,})/;
const CLOCK = "_emscripten_get_now=()=>performance.now()";
const CLOCK_IMPORT = /(\w+):_emscripten_get_now\b/;

let patched: Promise<string> | undefined;

async function patchedText(): Promise<string> {
  const published = await packageText();
  const [module = "", clock = ""] = [MODULE, CLOCK_IMPORT].map((part) => part.exec(published)?.[1]);
  for (const [name, part] of Object.entries({ HELD, HEAP_MAX, CLOCK, module, clock })) {
    if (part !== "" && published.includes(part)) continue;
    throw new Error(`web-xgrammar is another one: there is no ${name} in it`);
  }
  return published.replace(HELD, `${HELD} exports.binding = () => binding;`)
    .replace(HEAP_MAX, `getHeapMax=()=>${HEAP_BYTES}`)
    .replace(CLOCK, "_emscripten_get_now=()=>(check(),performance.now())")
    .replace(module, interruptible(Uint8Array.fromBase64(module), clock).toBase64());
}

/**
 * Opens a new instance. The published package (0.1.27) cannot be imported: it is CommonJS, but its package.json
 * says that it is not. So its source is run as a function. This also gives each instance its own memory, its own
 * `console` (the only place where the reason of an abort is reported), and access to the private binding.
 *
 * @param check called about once in a millisecond while the instance works; what it throws ends that work, as a check
 * that fails does.
 */
export async function openXGrammar(check: () => void = () => {}): Promise<XGrammar> {
  const text = await (patched ??= patchedText());
  const said: string[] = [];
  const say = (...words: readonly unknown[]) => void said.push(words.join(" "));
  const console = { log: () => {}, warn: () => {}, error: say };
  const made: Partial<Package> = {};
  const require = createRequire("file:///xgrammar.js");
  new Function("exports", "module", "require", "__filename", "console", "check", text)(
    ...[made, { exports: made }, require, "/xgrammar.js", console, check],
  );
  const { Grammar, binding: bindingOf } = made as Package;
  await Grammar.fromEBNF('root ::= ""'); // starts the module
  const binding = bindingOf();
  let aborted = false;
  return {
    binding,
    get aborted() {
      return aborted;
    },
    attempt(action) {
      said.length = 0;
      try {
        return action(binding);
      } catch (error) {
        aborted = true;
        if (!(error instanceof WebAssembly.RuntimeError)) throw error;
        throw new GrammarError(spoken(said) ?? TOO_LARGE, { cause: error });
      }
    },
  };
}

/** The reason in what an abort says: `[FATAL] file.cc:102: EBNF lexer error at line 1, ...`. */
function spoken(said: readonly string[]): string | undefined {
  const line = said.find((each) => each.startsWith("[FATAL]"));
  return line?.replace(/^\[FATAL\] \S+:\d+: /, "").replace(/^Check failed: .*? is false: /, "");
}
