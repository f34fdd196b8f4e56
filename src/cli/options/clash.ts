import { UsageError } from "../../errors.ts";

/** Refuses two flags that contradict each other. @throws UsageError */
export function clash(flag: string | undefined, other: string, why: string): never {
  throw new UsageError(`Cannot use "${flag}" with "${other}": ${why}`);
}
