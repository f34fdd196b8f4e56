/** The most steps that a round may have: what the request that allows most asks for; Infinity if one allows any. */
export function maxAsked(asked: readonly (number | undefined)[]): number {
  return asked.length === 0 ? Infinity : Math.max(...asked.map((steps = Infinity) => steps));
}

/**
 * The depths that a policy may choose for such requests: if all are too deep, the shallowest.
 *
 * @param steps rising.
 */
export function allowedSteps(
  steps: readonly number[],
  asked: readonly (number | undefined)[],
): readonly number[] {
  const most = maxAsked(asked);
  return steps.filter((depth, i) => i === 0 || depth <= most);
}

/** The steps that a policy stays with for such requests: its current ones, or the most below that they allow. */
export function stepsWithin(
  current: number,
  steps: readonly number[],
  asked: readonly (number | undefined)[],
): number {
  return allowedSteps(steps, asked).findLast((each) => each <= current) ?? current;
}
