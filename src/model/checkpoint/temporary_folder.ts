/** A folder that is complete or absent: it is written under another name in the same parent folder, then renamed. */

/** A new folder that is being written. It is removed if it is disposed of before `moveIn`. */
export interface TemporaryFolder extends AsyncDisposable {
  readonly path: string;
  /** Renames it to its final name. A folder that was there is removed once the new one is in place. */
  moveIn(): Promise<void>;
}

/** A lock file that the writing process holds, so that others see whether that process is still running. */
const LOCK = ".eyrie-lock";
const PARTIAL = /^\.(.+)-[^-]+\.partial(\.old)?$/;

/**
 * Makes the folder, and removes abandoned ones in the same parent folder.
 * @param to its final path, on the same disk.
 */
export async function makeTemporary(to: string): Promise<TemporaryFolder> {
  const [, parent = "", name = ""] = /^(.*?)\/*([^/]+)\/*$/.exec(to) ?? [];
  const dir = to.startsWith("/") ? `${parent}/` : parent || ".";
  await Deno.mkdir(dir, { recursive: true });
  await removeAbandoned(dir);
  const path = await Deno.makeTempDir({ dir, prefix: `.${name}-`, suffix: ".partial" });
  const lock = await Deno.open(`${path}/${LOCK}.new`, { write: true, createNew: true });
  await lock.lock(true).catch(() => {}); // a file system without locks
  await Deno.rename(`${path}/${LOCK}.new`, `${path}/${LOCK}`);
  let open = true;
  const release = (): void => {
    if (open) lock.close();
    open = false;
  };
  return {
    path,
    async moveIn() {
      await Deno.chmod(path, 0o777 & ~Deno.umask());
      // The lock is held until the folder has its name: others would take an unlocked one for abandoned and remove it.
      // Windows renames no folder with an open file in it.
      if (Deno.build.os === "windows") release();
      const old = await isThere(to) ? `${path}.old` : undefined;
      if (old !== undefined) await Deno.rename(to, old);
      try {
        await Deno.rename(path, to);
      } catch (error) {
        if (old !== undefined) await Deno.rename(old, to);
        throw error;
      }
      await Deno.remove(`${to}/${LOCK}`);
      if (old !== undefined) await Deno.remove(old, { recursive: true });
    },
    async [Symbol.asyncDispose]() {
      release();
      await Deno.remove(path, { recursive: true }).catch(() => {}); // gone after the rename
    },
  };
}

/** Removes folders that a killed process left: unlocked ones, and old ones that a complete one has replaced. */
async function removeAbandoned(dir: string): Promise<void> {
  for await (const { name: folder, isDirectory } of Deno.readDir(dir)) {
    const [whole, name, old] = isDirectory ? PARTIAL.exec(folder) ?? [] : [];
    if (whole === undefined) continue;
    const path = `${dir}/${folder}`;
    const abandoned = old === undefined
      ? await isUnlocked(`${path}/${LOCK}`)
      : await isThere(`${dir}/${name}`) && !await isThere(path.slice(0, -old.length));
    // Folders that we may not remove stay.
    if (abandoned) await Deno.remove(path, { recursive: true }).catch(() => {});
  }
}

/** Whether the lock exists and no process holds it. */
async function isUnlocked(path: string): Promise<boolean> {
  try {
    using file = await Deno.open(path, { write: true });
    return file.tryLockSync(true);
  } catch {
    return false;
  }
}

async function isThere(path: string): Promise<boolean> {
  return await Deno.lstat(path).then(() => true, () => false);
}
