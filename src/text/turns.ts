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
