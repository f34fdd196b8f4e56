/** An object type whose fields may be absent but are never undefined. */
export type Defined<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

/**
 * Returns the fields that are not undefined. Optional fields have to be absent where they are not given:
 * `exactOptionalPropertyTypes` distinguishes an absent field from one that is undefined.
 */
export function defined<T extends object>(fields: T): Defined<T> {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as Defined<T>;
}
