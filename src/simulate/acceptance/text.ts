import { UsageError } from "../../errors.ts";
import { type AcceptanceModel, betaMixed, byPosition, geometric, spreadOut } from "./model.ts";
import { phasesOfText, phasesOfTime } from "./phases.ts";

/** What `--simulate-acceptance` takes, for help and messages. */
const ACCEPTANCE_FORMS =
  "geometric:A, positions:A/B/C, beta:A/B, phases:A/B,dwell=TOKENS or replay:FILE";

const DEFAULT_DWELL = 150;

/**
 * An acceptance model as `--simulate-acceptance` takes it: `KIND:NUMBERS,key=value`, numbers with `/` between
 * them. Every kind takes `spread` and `tokens`, standard deviations of log-odds between requests and
 * between tokens; `phases` takes `dwell` in tokens, or `every` in seconds for all requests at once.
 *
 * @param replay makes the model of `replay:FILE`.
 * @throws UsageError
 */
export function acceptanceOf(
  text: string,
  replay: (file: string) => AcceptanceModel,
): AcceptanceModel {
  const refuse = (why: string) =>
    new UsageError(`Cannot use "--simulate-acceptance ${text}": ${why}`);
  const at = text.indexOf(":");
  const kind = at < 0 ? text : text.slice(0, at);
  const [values = "", ...parts] = at < 0 ? [] : text.slice(at + 1).split(",");
  const make = Object.hasOwn(KINDS, kind) ? KINDS[kind] : undefined;
  if (make === undefined || values === "") throw refuse(`allowed is ${ACCEPTANCE_FORMS}`);
  const options = optionsOf(parts, refuse);
  const take = (key: string, absent: number) => {
    const value = options.get(key) ?? absent;
    options.delete(key);
    return value;
  };
  const spread = { requests: take("spread", 0), tokens: take("tokens", 0) };
  const model = make({ values, take, refuse, replay });
  const [unknown] = options.keys();
  if (unknown !== undefined) throw refuse(`${kind} has no option "${unknown}"`);
  return spreadOut(model, spread);
}

/** What a kind is made of. */
interface ModelArguments {
  /** What is before the options. */
  readonly values: string;
  /** An option, which is then known. */
  readonly take: (key: string, absent: number) => number;
  readonly refuse: (why: string) => UsageError;
  readonly replay: (file: string) => AcceptanceModel;
}

const KINDS: Readonly<Record<string, (given: ModelArguments) => AcceptanceModel>> = {
  geometric({ values, refuse }) {
    const [alpha = 0, ...more] = chancesOf(values, refuse);
    if (more.length > 0) throw refuse("geometric has one number; positions has one for each draft");
    return geometric(alpha);
  },
  positions: ({ values, refuse }) => byPosition(chancesOf(values, refuse)),
  beta({ values, refuse }) {
    const [a = 0, b = 0, ...more] = numbersOf(values, refuse);
    if (a <= 0 || b <= 0 || more.length > 0) throw refuse("beta has two numbers above 0");
    return betaMixed(a, b);
  },
  phases({ values, take, refuse }) {
    const alphas = chancesOf(values, refuse);
    if (alphas.length < 2) throw refuse("phases has two numbers or more");
    const every = take("every", 0);
    if (every > 0) return phasesOfTime(alphas, every * 1000);
    const dwell = take("dwell", DEFAULT_DWELL);
    if (dwell < 1) throw refuse("dwell is tokens, 1 or more");
    return phasesOfText(alphas, dwell);
  },
  replay: ({ values, replay }) => replay(values),
};

function optionsOf(
  parts: readonly string[],
  refuse: (why: string) => UsageError,
): Map<string, number> {
  return new Map(parts.map((part) => {
    const [key = "", value = ""] = part.split("=", 2).map((half) => half.trim());
    const number = decimal(value);
    if (key === "" || number === undefined) {
      throw refuse(`options are key=number with commas between them, got "${part}"`);
    }
    return [key, number] as const;
  }));
}

/** Probabilities. */
function chancesOf(text: string, refuse: (why: string) => UsageError): number[] {
  const numbers = numbersOf(text, refuse);
  if (numbers.every((number) => number <= 1)) return numbers;
  throw refuse("probabilities are from 0 to 1");
}

function numbersOf(text: string, refuse: (why: string) => UsageError): number[] {
  return text.split("/").map((part) => {
    const number = decimal(part.trim());
    if (number === undefined) throw refuse(`"${part}" is not a number of at least 0`);
    return number;
  });
}

/** A plain decimal of at least 0. */
function decimal(text: string): number | undefined {
  return /^(\d+\.?\d*|\.\d+)$/.test(text) ? Number(text) : undefined;
}
