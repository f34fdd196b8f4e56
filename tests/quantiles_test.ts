import { ok } from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import { betaQuantile, gammaQuantile, tQuantile } from "../src/quantiles.ts";

function near(actual: number, expected: number, what: string, tolerance = 1e-8): void {
  const size = Math.max(1e-3, Math.abs(expected));
  ok(Math.abs(actual - expected) <= tolerance * size, `${what}: ${actual}, not ${expected}`);
}

Deno.test("quantiles are those of printed tables", () => {
  const t = [[0.975, 1, 12.7062047364], [0.975, 2, 4.3026527299], [0.975, 4, 2.7764451052]];
  const more = [[0.95, 5, 2.0150483733], [0.975, 30, 2.0422724563], [0.995, 10, 3.1692726726]];
  for (const [p = 0, freedom = 0, value = 0] of [...t, ...more, [0.975, 1000, 1.9623390808]]) {
    near(tQuantile(p, freedom), value, `t(${p}, ${freedom})`);
    near(tQuantile(1 - p, freedom), -value, `t(1 - ${p}, ${freedom})`);
  }
  const chiSquared = [[0.95, 1, 3.8414588207], [0.95, 2, 5.9914645471], [0.95, 10, 18.3070380533]];
  for (const [p = 0, k = 0, value = 0] of [...chiSquared, [0.05, 10, 3.9402991361]]) {
    near(2 * gammaQuantile(p, k / 2), value, `chi squared(${p}, ${k})`);
  }
  // F(0.95; 3, 10) = 3.708264821 is 10 x / (3 (1 - x)) where x is of Beta(3 / 2, 10 / 2).
  const x = betaQuantile(0.95, 1.5, 5);
  near(10 * x / (3 * (1 - x)), 3.708264821, "F(0.95; 3, 10)");
});

const chance = fc.double({ min: 1e-6, max: 1 - 1e-6, noNaN: true });
const shape = fc.double({ min: 0.05, max: 200, noNaN: true });

Deno.test("quantiles are the inverse where that has a formula", () => {
  fc.assert(fc.property(chance, shape, (p, a) => {
    near(tQuantile(p, 1), Math.tan(Math.PI * (p - 0.5)), "Cauchy");
    near(tQuantile(p, 2), (2 * p - 1) * Math.sqrt(2 / (4 * p * (1 - p))), "t(2)");
    near(gammaQuantile(p, 1), -Math.log1p(-p), "exponential");
    near(betaQuantile(p, 0.5, 0.5), Math.sin(Math.PI * p / 2) ** 2, "arcsine");
    near(betaQuantile(p, a, 1), p ** (1 / a), `Beta(${a}, 1)`);
    near(betaQuantile(p, 1, a), -Math.expm1(Math.log1p(-p) / a), `Beta(1, ${a})`);
    near(betaQuantile(p, a, a) + betaQuantile(1 - p, a, a), 1, `Beta(${a}, ${a})`);
  }));
});

/** Share of a density over u that is below `end`, by Simpson's rule. */
function shareBelow(
  end: number,
  [from, to]: readonly [number, number],
  log: (u: number) => number,
) {
  const area = (low: number, high: number) => {
    const step = (high - low) / 20_000;
    let sum = 0;
    for (let n = 0; n <= 20_000; n++) {
      const weight = n === 0 || n === 20_000 ? 1 : n % 2 === 0 ? 2 : 4;
      sum += weight * Math.exp(log(low + n * step));
    }
    return sum * step / 3;
  };
  const below = area(from, end);
  return below / (below + area(end, to));
}

Deno.test("the share of the density that is below a quantile is its p", () => {
  for (const p of [0.001, 0.2, 0.5, 0.9, 0.999]) {
    for (const a of [0.4, 1.7, 30]) {
      const gamma = Math.log(gammaQuantile(p, a)); // over log x the density is x^a e^-x
      const share = shareBelow(gamma, [-80, 6], (u) => a * u - Math.exp(u));
      near(share, p, `gamma(${a}) at ${p}`, 1e-6);
      for (const b of [0.6, 4]) {
        const x = betaQuantile(p, a, b); // over log-odds it is x^a (1 - x)^b
        const log = (u: number) => -a * Math.log1p(Math.exp(-u)) - b * Math.log1p(Math.exp(u));
        near(
          shareBelow(Math.log(x / (1 - x)), [-60, 60], log),
          p,
          `Beta(${a}, ${b}) at ${p}`,
          1e-6,
        );
      }
    }
  }
});

Deno.test("quantiles at the ends of what can be asked", () => {
  ok(gammaQuantile(0, 0.5) === 0 && gammaQuantile(1e-300, 0.01) >= 0);
  ok(tQuantile(0.5, 3) === 0);
  const far = gammaQuantile(1 - 2 ** -32, 2); // (1 + x) e^-x are above it
  near((1 + far) * Math.exp(-far) * 2 ** 32, 1, "a far tail", 1e-6);
  near(gammaQuantile(0.5, 1e5), 1e5 - 1 / 3, "the median of a large shape", 1e-9);
  near(tQuantile(0.975, 1e6), 1.959966, "as the normal distribution", 1e-6);
});
