/** Sets an environment variable until it is disposed of. */
export function variable(name: string, value: string): Disposable {
  const before = Deno.env.get(name);
  Deno.env.set(name, value);
  return {
    [Symbol.dispose]: () =>
      before === undefined ? Deno.env.delete(name) : Deno.env.set(name, before),
  };
}
