// deno-lint-ignore-file no-console -- it is what Deno itself calls
const WARNING = "Deno.serve: request.signal aborts on successful responses";

/**
 * Suppresses a warning of Deno. Without --unstable-no-legacy-abort, which deno.json sets but a bundle cannot
 * set, a request's signal aborts also when its answer was sent, and Deno warns of that once. It does no harm:
 * the signal still aborts when a client leaves, and after a sent answer there is nothing to end.
 */
export function withoutAbortWarning(): Disposable {
  const { warn } = console;
  console.warn = (...said) => {
    if (!String(said[0]).startsWith(WARNING)) warn(...said);
  };
  return { [Symbol.dispose]: () => void (console.warn = warn) };
}
