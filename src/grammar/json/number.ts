/** Texts of numbers between bounds. */
import { GrammarError } from "../rules/grammar.ts";
import { choice, type Expression, NOTHING, oneOf, repeat, sequence, text } from "../rules/rules.ts";

/**
 * Digits before the point and behind it: integers of 15 digits are exact in a double, and no number
 * becomes infinite.
 */
const DIGITS = 15;

/** Digits of a bound behind the point: xgrammar cannot parse the rules of some 80. */
const MAX_PLACES = 50;

/** Both included; undefined: none. */
export interface Bounds {
  readonly min?: Bound | undefined;
  readonly max?: Bound | undefined;
}

export interface Bound {
  readonly value: number;
  readonly exclusive: boolean;
}

const DIGIT = digitsFrom("0", "9");
const FRACTION = sequence(text("."), repeat(DIGIT, 1, DIGITS));

/** A whole number. */
export function integer({ min, max }: Bounds): Expression {
  const from = min && BigInt(
    min.exclusive ? Math.floor(min.value) + 1 : Math.ceil(min.value),
  );
  const to = max && BigInt(max.exclusive ? Math.ceil(max.value) - 1 : Math.floor(max.value));
  return signed(from, to, { max: limit(0), zero: false }, (low, high) => whole(low, high));
}

/** A number, with an exponent only where nothing bounds it. */
export function decimal({ min, max }: Bounds): Expression {
  if (min === undefined && max === undefined) {
    const exponent = sequence(
      oneOf([[0x45, 0x45], [0x65, 0x65]]),
      choice(text(""), oneOf([[0x2b, 0x2b], [0x2d, 0x2d]])),
      repeat(DIGIT, 1, 2),
    );
    const plain = whole(0n, limit(0));
    return sequence(optional(text("-")), plain, optional(FRACTION), optional(exponent));
  }
  const bounds = [min, max].filter((bound) => bound !== undefined);
  const scale = Math.max(...bounds.map(scaleOf));
  if (scale > MAX_PLACES) {
    throw new GrammarError(
      `a bound with more than ${MAX_PLACES} digits behind the point is not supported`,
    );
  }
  const from = min && within(min, scale, 1n);
  const to = max && within(max, scale, -1n);
  return signed(from, to, { max: limit(scale), zero: true }, (low, high, open) => {
    return fixed(low, high, { scale, open });
  });
}

/**
 * Digits behind the point that bounds are written with. The number next to an exclusive bound has DIGITS
 * digits where it can, so that a double still differs from the bound.
 */
function scaleOf({ value, exclusive }: Bound): number {
  if (!exclusive) return places(value);
  const before = Math.ceil(Math.log10(Math.abs(value) + 1));
  return Math.max(places(value) + 1, DIGITS - before);
}

/**
 * The last number that a bound allows, times 10^scale: beside an exclusive bound the next one at which a double differs
 * from it.
 */
function within(bound: Bound, scale: number, direction: 1n | -1n): bigint {
  const at = scaled(bound.value, scale);
  if (!bound.exclusive) return at;
  let gap = direction * 10n ** BigInt(scale - scaleOf(bound));
  while (Number(`${at + gap}e-${scale}`) === bound.value) gap *= 10n;
  return at + gap;
}

/** The largest integer of DIGITS digits before the point and `scale` behind. */
function limit(scale: number): bigint {
  return 10n ** BigInt(DIGITS + scale) - 1n;
}

function optional(part: Expression): Expression {
  return choice(part, text(""));
}

/**
 * @param of texts of numbers from `low` to `high`, 0 or more; `open`: nothing but the number of digits limits `high`.
 * @param zero whether a minus may stand before 0, as -0.5 needs it.
 */
function signed(
  from: bigint | undefined,
  to: bigint | undefined,
  { max, zero }: { readonly max: bigint; readonly zero: boolean },
  of: (low: bigint, high: bigint, open: boolean) => Expression,
): Expression {
  const low = from === undefined || from < -max ? -max : from;
  const high = to === undefined || to > max ? max : to;
  if (low > max || high < -max) {
    throw new GrammarError(`numbers of more than ${DIGITS} digits are not supported`);
  }
  const parts: Expression[] = [];
  if (low < 0n && high >= low) {
    const last = high < 0n ? -high : zero ? 0n : 1n;
    const open = from === undefined || from < -max;
    if (last <= -low) parts.push(sequence(text("-"), of(last, -low, open)));
  }
  const open = to === undefined || to > max;
  if (high >= 0n && high >= low) parts.push(of(low > 0n ? low : 0n, high, open));
  return parts.length === 0 ? NOTHING : choice(...parts);
}

/** Whole numbers, 0 or more, both ends included. */
function whole(low: bigint, high: bigint): Expression {
  const parts: Expression[] = [];
  /** The consecutive lengths of which every number is allowed; they become a single repeat. */
  let all: [min: number, max: number] | undefined;
  for (let length = `${low}`.length; length <= `${high}`.length; length++) {
    const [first, last] = [length === 1 ? 0n : 10n ** BigInt(length - 1), 10n ** BigInt(length)];
    const from = low > first ? low : first;
    const to = high < last ? high : last - 1n;
    if (length > 1 && from === first && to === last - 1n) all = [all?.[0] ?? length, length];
    else if (from <= to) parts.push(between(`${from}`, `${to}`));
  }
  if (all) parts.push(sequence(digitsFrom("1", "9"), repeat(DIGIT, all[0] - 1, all[1] - 1)));
  return choice(...parts);
}

/** Numbers low / 10^scale to high / 10^scale, 0 or more; `open`: also those up to the next integer. */
function fixed(
  low: bigint,
  high: bigint,
  { scale, open }: { readonly scale: number; readonly open: boolean },
): Expression {
  const unit = 10n ** BigInt(scale);
  const [first, last] = [low / unit, high / unit];
  /** The numbers with one integer part; without `to` every fraction from `from` on is allowed. */
  const part = (whole: bigint, from: bigint, to?: bigint): Expression => {
    const written = (value: bigint) => scale === 0 ? "" : `${value}`.padStart(scale, "0");
    const bounds = { low: written(from), high: to === undefined ? undefined : written(to) };
    const fraction = sequence(text("."), digitsWithin(bounds, Math.max(scale + 1, DIGITS)));
    return sequence(text(`${whole}`), from === 0n ? optional(fraction) : fraction);
  };
  if (first === last) return part(first, low % unit, open ? undefined : high % unit);
  const end = open ? last : last - 1n;
  const inner = first < end ? [sequence(whole(first + 1n, end), optional(FRACTION))] : [];
  const upTo = open ? [] : [part(last, 0n, high % unit)];
  return choice(part(first, low % unit), ...inner, ...upTo);
}

/**
 * Digits behind a point, 1 to `room`, of fractions from `low` to `high`, which are given by their own digits. Each
 * digit is chosen once, not once for each number of digits: the vocabulary is looked through at every place.
 *
 * @param bounds.high absent: no bound.
 */
function digitsWithin(
  { low, high }: { readonly low: string; readonly high: string | undefined },
  room: number,
): Expression {
  const met = isZero(low);
  if (met && high === undefined) return repeat(DIGIT, 1, room);
  if (met && high === "") return repeat(text("0"), 1, room);
  const after = (low: string, high: string | undefined): Expression => {
    if (room === 1) return text("");
    const more = digitsWithin({ low, high }, room - 1);
    return isZero(low) ? optional(more) : more;
  };
  const digit = (from: number, to: number) => digitsFrom(`${from}`, `${to}`);
  const [a, b] = [Number(low[0] ?? 0), high === undefined ? 10 : Number(high[0] ?? 0)];
  const [lower, upper] = [low.slice(1), high?.slice(1)];
  if (!met && a === b) return sequence(digit(a, a), after(lower, upper));
  const from = met ? 0 : a + 1;
  return choice(
    ...met ? [] : [sequence(digit(a, a), after(lower, undefined))],
    ...from < b ? [sequence(digit(from, b - 1), after("", undefined))] : [],
    ...high === undefined ? [] : [sequence(digit(b, b), after("", upper))],
  );
}

function isZero(digits: string): boolean {
  return /^0*$/.test(digits);
}

/** Digits of the same number, from `low` to `high`. */
function between(low: string, high: string): Expression {
  if (low === "") return text("");
  if (/^0+$/.test(low) && /^9+$/.test(high)) return repeat(DIGIT, low.length, low.length);
  const [a, b] = [low.charCodeAt(0), high.charCodeAt(0)];
  const [lowRest, highRest] = [low.slice(1), high.slice(1)];
  if (a === b) return sequence(digits(a, a), between(lowRest, highRest));
  const length = lowRest.length;
  const [zeros, nines] = ["0".repeat(length), "9".repeat(length)];
  const all = repeat(DIGIT, length, length);
  return choice(
    sequence(digits(a, a), between(lowRest, nines)),
    ...a + 1 < b ? [sequence(digits(a + 1, b - 1), all)] : [],
    sequence(digits(b, b), between(zeros, highRest)),
  );
}

function digitsFrom(from: string, to: string): Expression {
  return digits(from.charCodeAt(0), to.charCodeAt(0));
}

function digits(from: number, to: number): Expression {
  return from === to ? text(String.fromCharCode(from)) : oneOf([[from, to]]);
}

/** Digits behind the point, as JavaScript writes the number. */
function places(value: number): number {
  const [digits = "", exponent = "0"] = String(value).split("e");
  return Math.max(0, (digits.split(".")[1]?.length ?? 0) - Number(exponent));
}

/** The number times 10^scale, which has no places left. */
function scaled(value: number, scale: number): bigint {
  const [digits = "", exponent = "0"] = String(value).split("e");
  const [integer = "", behind = ""] = digits.split(".");
  return BigInt(integer + behind) * 10n ** BigInt(scale - behind.length + Number(exponent));
}
