/** What is known of the drafts of an answer or of a period. Undefined: not reported. */
export interface Acceptance {
  /**
   * `answer`: reported with it. `metrics`: counters of the server before and after, others' requests
   * included. `server_info`: a mean since the server started.
   */
  readonly source: "answer" | "metrics" | "server_info";
  /** Rounds of a sequence that verified drafts. */
  readonly drafts?: number | undefined;
  readonly draftTokens?: number | undefined;
  readonly acceptedTokens?: number | undefined;
  /** Mean tokens that a drafting round produced, the bonus token included. */
  readonly acceptLength?: number | undefined;
}

/** Drafts that were counted. Where nothing was drafted there is no length. */
export function counted(
  source: Acceptance["source"],
  { drafts, draftTokens, acceptedTokens }: {
    readonly drafts?: number | undefined;
    readonly draftTokens: number;
    readonly acceptedTokens: number;
  },
): Acceptance {
  const acceptLength = drafts === undefined || drafts === 0
    ? undefined
    : 1 + acceptedTokens / drafts;
  return { source, drafts, draftTokens, acceptedTokens, acceptLength };
}

/** Share of the drafts that were accepted, 0 to 1; undefined where it is not reported. */
export function acceptanceRate(
  { draftTokens, acceptedTokens }: Acceptance,
): number | undefined {
  return draftTokens === undefined || draftTokens === 0 || acceptedTokens === undefined
    ? undefined
    : acceptedTokens / draftTokens;
}

/** Acceptance of several answers; undefined if one does not report it. */
export function total(answers: readonly (Acceptance | undefined)[]): Acceptance | undefined {
  const known = answers.filter((each) => each !== undefined);
  if (known.length === 0 || known.length < answers.length) return undefined;
  const sum = (of: (each: Acceptance) => number | undefined) =>
    known.reduce<number | undefined>((all, each) => {
      const value = of(each);
      return all === undefined || value === undefined ? undefined : all + value;
    }, 0);
  const draftTokens = sum((each) => each.draftTokens);
  const acceptedTokens = sum((each) => each.acceptedTokens);
  if (draftTokens === undefined || acceptedTokens === undefined) return undefined;
  return counted("answer", { drafts: sum((each) => each.drafts), draftTokens, acceptedTokens });
}

/** Combines what was reported with the answer and the server's own counters. */
export function together(
  answer: Acceptance | undefined,
  server: Acceptance | undefined,
): Acceptance | undefined {
  if (answer === undefined) return server;
  if (answer.acceptLength !== undefined || answer.draftTokens === 0) return answer;
  // Equal counts: the server's counters hold the drafts of this answer alone.
  const alone = server?.draftTokens === answer.draftTokens;
  return alone ? { ...answer, drafts: server?.drafts, acceptLength: server?.acceptLength } : answer;
}
