/** Levels of effort that templates know, the weakest first. */
const LEVELS = ["minimal", "low", "medium", "high", "xhigh", "max"] as const;

/** The levels of a template that does not list its own: gpt-oss, Muse Glimmer. */
const USUAL: readonly string[] = ["low", "medium", "high"];

/** Variables that templates have for it. */
const NAMES = ["reasoning_effort", "reasoning_strength"];

/**
 * Template variables for a level of effort: the nearest level that the template knows, of two the
 * stronger. Empty where it has no such variable.
 *
 * @param effort one of the levels or "none"; another is given as it is.
 */
export function effortArguments(
  template: string | undefined,
  effort: string,
): Readonly<Record<string, string>> {
  if (template === undefined) return {};
  const names = NAMES.filter((name) => new RegExp(`\\b${name}\\b`).test(template));
  return Object.fromEntries(names.map((name) => [name, levelFor(template, effort)]));
}

function levelFor(template: string, effort: string): string {
  const quoted = (level: string) => new RegExp(`["']${level}["']`).test(template);
  const order: readonly string[] = ["none", ...LEVELS];
  const at = order.indexOf(effort);
  if (at < 0 || quoted(effort)) return effort;
  const own = LEVELS.filter(quoted);
  const known = own.length > 1 ? own : USUAL;
  const distance = (level: string) => Math.abs(order.indexOf(level) - at);
  const [nearest = effort] = known.toReversed().toSorted((a, b) => distance(a) - distance(b));
  return nearest;
}
