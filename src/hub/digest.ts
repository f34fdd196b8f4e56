import { createHash } from "node:crypto";
import type { RemoteFile } from "./needed.ts";

/** A hash under way. */
export interface Digest {
  update(bytes: Uint8Array): void;
  /** In hex. */
  finish(): string;
}

/** Starts the digest by which the hub names a file: sha256 of the content, or git's sha1 of `blob SIZE\0` content. */
export function startDigest({ hash, size }: Pick<RemoteFile, "hash" | "size">): Digest {
  const state = createHash(hash === "sha256" ? "sha256" : "sha1");
  if (hash === "git-sha1") state.update(`blob ${size}\0`);
  return {
    update: (bytes) => void state.update(bytes),
    finish: () => state.digest("hex"),
  };
}
