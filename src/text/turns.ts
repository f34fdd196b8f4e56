/**
 * Joins consecutive messages of the user into one: many templates require that the roles alternate.
 *
 * @param textOf gives the text of a message of the user.
 */
export function joinedTurns<M extends { readonly role: string }>(
  messages: readonly M[],
  textOf: (message: M) => string,
): M[] {
  const joined: M[] = [];
  for (const message of messages) {
    const last = joined.at(-1);
    if (message.role !== "user" || last?.role !== "user") joined.push(message);
    else joined[joined.length - 1] = { ...last, content: `${textOf(last)}\n\n${textOf(message)}` };
  }
  return joined;
}

/**
 * Joins the system messages at the beginning into one: most templates take no second one.
 *
 * @param textOf gives the text of a system message.
 */
export function joinedSystem<M extends { readonly role: string }>(
  messages: readonly M[],
  textOf: (message: M) => string,
): (M | SystemMessage)[] {
  const first = messages.findIndex(({ role }) => role !== "system" && role !== "developer");
  const count = first < 0 ? messages.length : first;
  if (count < 2) return [...messages];
  const content = messages.slice(0, count).map(textOf).join("\n\n");
  return [{ role: "system", content }, ...messages.slice(count)];
}

interface SystemMessage {
  readonly role: "system";
  readonly content: string;
}

/** A system message among the others as the user's, for templates that take one at the beginning only. */
export function systemReminder(
  text: string,
): { readonly role: "user"; readonly content: string } {
  return { role: "user", content: `<system-reminder>\n${text}\n</system-reminder>` };
}
