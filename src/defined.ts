/** Those fields of an object that have a value. */
export type Defined<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

/**
 * The fields that are not undefined, for options that are absent where nothing was said
 * (`exactOptionalPropertyTypes` distinguishes an absent field from one that is undefined).
 */
export function defined<T extends object>(fields: T): Defined<T> {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as Defined<T>;
}
