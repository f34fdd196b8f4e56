import { hash32 } from "../src/speculate/noise.ts";

/** A row of masks: the bits of the tokens for which `allows` is true. */
export function maskOf(vocab: number, allows: (token: number) => boolean): Uint32Array {
  const words = new Uint32Array(Math.ceil(vocab / 32));
  for (let token = 0; token < vocab; token++) {
    const at = token >>> 5;
    if (allows(token)) words[at] = ((words[at] ?? 0) | 1 << (token & 31)) >>> 0;
  }
  return words;
}

/** Forbids one token in `rare`, others after every text. */
export function mostAllowed(vocab: number, ids: readonly number[], rare = 5): Uint32Array {
  return maskOf(vocab, (token) => hash32(ids.at(-1) ?? 0, ids.length, token) % rare > 0);
}
