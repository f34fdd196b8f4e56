/** The most steps that a round may have: what the request that allows most asks for; Infinity if one allows any. */
export function mostAsked(asked: readonly (number | undefined)[]): number {
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
  const most = mostAsked(asked);
  return steps.filter((depth, i) => i === 0 || depth <= most);
}
