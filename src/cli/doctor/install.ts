/** Installs the software Vulkan driver on Debian and its kin. */
import { reason, UsageError } from "../../errors.ts";
import { DEBIAN_PACKAGES } from "./machine.ts";

// A mirror that does not answer must not block the whole setup.
const IMPATIENT = ["-o", "Acquire::Retries=1", "-o", "Acquire::http::Timeout=30"];

/**
 * Runs apt-get as root; says so on stderr, and repeats what it wrote only where it fails.
 *
 * @param why what is missing.
 * @throws UsageError when the packages cannot be installed.
 */
export async function installDebianDriver(why: string): Promise<void> {
  const packages = DEBIAN_PACKAGES.join(" ");
  await tell(`${why}: installing ${packages} with apt-get (about 60 MB) ...\n`);
  // One unreachable third-party source fails the update, yet the packages may be found: the
  // install decides.
  const update = await aptGet("update");
  const install = await aptGet("install", "-y", "--no-install-recommends", ...DEBIAN_PACKAGES);
  if (install.code === 0) return;
  await tell(update.said + install.said);
  throw new UsageError(
    `Cannot install "${packages}": apt-get install ended with code ${install.code}`,
  );
}

async function aptGet(
  verb: string,
  ...args: readonly string[]
): Promise<{ code: number; said: string }> {
  try {
    const { code, stdout, stderr } = await new Deno.Command("apt-get", {
      args: [...IMPATIENT, "-q", verb, ...args],
      env: { DEBIAN_FRONTEND: "noninteractive" },
      stdin: "null",
    }).output();
    const decoder = new TextDecoder();
    return { code, said: decoder.decode(stdout) + decoder.decode(stderr) };
  } catch (error) {
    throw new UsageError(`Cannot run "apt-get": ${reason(error)}`, { cause: error });
  }
}

async function tell(text: string): Promise<void> {
  await Deno.stderr.write(new TextEncoder().encode(text));
}
