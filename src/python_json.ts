/** Matches texts, which stay as they are, and the numbers that Python writes and JSON does not have. */
const TEXT_OR_NUMBER = /"[^"\\]*(?:\\[^][^"\\]*)*"|-?Infinity|NaN/g;

/**
 * Parses JSON as Python writes it: NaN, Infinity and -Infinity, which configs of models have, become texts, which no
 * number may be.
 *
 * @throws SyntaxError
 */
export function parsePythonJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    const json = text.replaceAll(
      TEXT_OR_NUMBER,
      (found) => found.startsWith('"') ? found : `"${found}"`,
    );
    // The message of the text as it is has its positions.
    if (json === text) throw error;
    return JSON.parse(json) as unknown;
  }
}
