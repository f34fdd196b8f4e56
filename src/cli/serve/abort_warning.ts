// deno-lint-ignore-file no-console -- it is what Deno itself calls
const WARNING = "Deno.serve: request.signal aborts on successful responses";

/**
 * Keeps a warning of Deno's off stderr. Without --unstable-no-legacy-abort, which deno.json sets and a
 * bundle cannot, a request's signal aborts when its answer was sent too, and Deno says so once. A
 * client that leaves aborts it either way, and of an answer that was sent there is nothing to end.
 */
export function withoutAbortWarning(): Disposable {
  const { warn } = console;
  console.warn = (...said) => {
    if (!String(said[0]).startsWith(WARNING)) warn(...said);
  };
  return { [Symbol.dispose]: () => void (console.warn = warn) };
}
