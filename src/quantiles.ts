/**
 * Quantiles of the t, gamma and beta distributions, to about ten digits. The typed package that has
 * them (stdlib's three of `stats-base-dists`) takes 27 MB of an install of 40.
 *
 * Each quantile is the point where the distribution has the value p. The search runs over log x (gamma) or
 * the log-odds of x (beta): in these variables a tail is as easy to reach as the middle.
 */

/** The share of a distribution that is below a point, and its derivative there. */
interface Below {
  readonly share: number;
  readonly slope: number;
}

/**
 * Quantile of Student's t distribution.
 *
 * With x of Beta(freedom / 2, 1 / 2), |t| = sqrt(freedom (1 - x) / x) (Abramowitz and Stegun 26.5.27).
 */
export function tQuantile(p: number, freedom: number): number {
  if (p === 0.5) return 0;
  const odds = Math.exp(-betaLogit(2 * Math.min(p, 1 - p), freedom / 2, 0.5));
  return Math.sign(p - 0.5) * Math.sqrt(freedom * odds);
}

/** Quantile of the gamma distribution of that shape and scale 1. */
export function gammaQuantile(p: number, shape: number): number {
  if (p <= 0) return 0;
  return Math.exp(solve(p, (u) => gammaBelow(Math.exp(u), shape)));
}

/** Quantile of the beta distribution. */
export function betaQuantile(p: number, a: number, b: number): number {
  return 1 / (1 + Math.exp(-betaLogit(p, a, b)));
}

/** The log-odds of a quantile of the beta distribution. */
function betaLogit(p: number, a: number, b: number): number {
  return solve(p, (u) => betaBelow(1 / (1 + Math.exp(-u)), 1 / (1 + Math.exp(u)), { a, b }));
}

/** Newton's steps within an interval, which is halved where a step would leave it. */
function solve(p: number, below: (u: number) => Below): number {
  let [low, high, u] = [-745, 745, 0]; // e^-745 is the smallest positive number
  for (let steps = 0; steps < 200; steps++) {
    const { share, slope } = below(u);
    if (share < p) low = u;
    else high = u;
    const newton = u - (share - p) / slope;
    const next = newton > low && newton < high ? newton : (low + high) / 2;
    if (Math.abs(next - u) <= 1e-13 * Math.max(1, Math.abs(u))) return next;
    u = next;
  }
  return u;
}

/**
 * The regularized incomplete gamma function P(a, x) and its derivative by log x, x^a e^-x / gamma(a):
 * by its series (DLMF 8.11.4) below a + 1, by the continued fraction of 1 - P (DLMF 8.9.2) above.
 */
function gammaBelow(x: number, a: number): Below {
  const slope = Math.exp(a * Math.log(x) - x - logGamma(a));
  if (x >= a + 1) {
    const rest = fraction((n) => [n === 0 ? 1 : n * (a - n), x + 2 * n + 1 - a]);
    return { share: 1 - slope * rest, slope };
  }
  let [term, sum] = [1 / a, 1 / a];
  for (let n = 1; term > 1e-17 * sum; n++) {
    term *= x / (a + n);
    sum += term;
  }
  return { share: slope * sum, slope };
}

/**
 * The regularized incomplete beta function I_x(a, b) and its derivative by the log-odds of x,
 * x^a (1 - x)^b / B(a, b): by its continued fraction (DLMF 8.17.22), above the mean that of 1 - I.
 *
 * @param rest 1 - x, exact also where x is next to 1.
 */
function betaBelow(
  x: number,
  rest: number,
  { a, b }: { readonly a: number; readonly b: number },
): Below {
  if (x > (a + 1) / (a + b + 2)) {
    const { share, slope } = betaBelow(rest, x, { a: b, b: a });
    return { share: 1 - share, slope };
  }
  const beta = logGamma(a) + logGamma(b) - logGamma(a + b);
  const slope = Math.exp(a * Math.log(x) + b * Math.log(rest) - beta);
  const fractionOf = fraction((n) => {
    if (n === 0) return [1, 1];
    const m = Math.floor(n / 2);
    const top = n % 2 === 0 ? m * (b - m) : -(a + m) * (a + b + m);
    return [top * x / ((a + n - 1) * (a + n)), 1];
  });
  return { share: slope / a * fractionOf, slope };
}

/**
 * top(0) / (bottom(0) + top(1) / (bottom(1) + ...)), by Lentz's method (Numerical Recipes, third
 * edition, 5.2).
 */
function fraction(part: (n: number) => readonly [top: number, bottom: number]): number {
  const nonzero = (value: number) => value === 0 ? 1e-300 : value;
  const [first, bottom] = part(0);
  let [value, c, d] = [first / nonzero(bottom), 1e300, 1 / nonzero(bottom)];
  for (let n = 1; n < 100_000; n++) {
    const [top, bottom] = part(n);
    d = 1 / nonzero(bottom + top * d);
    c = nonzero(bottom + top / c);
    value *= c * d;
    if (Math.abs(c * d - 1) < 1e-15) break;
  }
  return value;
}

/** log gamma(x), x above 0: Lanczos' approximation, g = 7 and nine terms (Godfrey 2001). */
function logGamma(x: number): number {
  const base = x + 6.5;
  const sum = LANCZOS.reduce((sum, term, n) => sum + (n === 0 ? term : term / (x + n - 1)), 0);
  return Math.log(2 * Math.PI) / 2 + (x - 0.5) * Math.log(base) - base + Math.log(sum);
}

const LANCZOS = [
  0.99999999999980993,
  676.5203681218851,
  -1259.1392167224028,
  771.32342877765313,
  -176.61502916214059,
  12.507343278686905,
  -0.13857109526572012,
  9.9843695780195716e-6,
  1.5056327351493116e-7,
] as const;
