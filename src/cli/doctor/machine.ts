/** What kind of system this is and what would give it a WebGPU adapter. Pure. */

/** What /etc/os-release says, as far as it matters here. */
export interface OsRelease {
  readonly id: string;
  /** Distributions that this one is like, nearest first (`ID_LIKE`). */
  readonly like: readonly string[];
  /** For people (`PRETTY_NAME`). */
  readonly name: string;
}

/** The facts a fix is chosen by. */
export interface Machine {
  readonly os: typeof Deno.build.os;
  /** Undefined where there is no /etc/os-release. */
  readonly release: OsRelease | undefined;
  readonly root: boolean;
}

/** What is to be done about a missing adapter, or a missing Vulkan driver. */
export type Fix =
  | { readonly kind: "none" }
  /** `doctor --fix` can do it: apt-get is there and we are root. */
  | { readonly kind: "install"; readonly command: string }
  /** A command for the person to run. */
  | { readonly kind: "run"; readonly command: string }
  | { readonly kind: "advice"; readonly text: string };

/** Lavapipe, Mesa's Vulkan on the CPU, and the loader that finds it. */
export const DEBIAN_PACKAGES = ["mesa-vulkan-drivers", "libvulkan1"] as const;

const DEBIAN_COMMAND = `apt-get install -y ${DEBIAN_PACKAGES.join(" ")}`;

const OTHER_COMMANDS: Readonly<Record<string, string>> = {
  fedora: "dnf install -y mesa-vulkan-drivers vulkan-loader",
  rhel: "dnf install -y mesa-vulkan-drivers vulkan-loader",
  arch: "pacman -S --noconfirm vulkan-swrast vulkan-icd-loader",
  suse: "zypper install -y libvulkan_lvp libvulkan1",
};

/**
 * Reads the text of /etc/os-release (shell assignments, values quoted or not).
 *
 * @example
 * ```ts
 * import { equal } from "node:assert/strict";
 * equal(parseOsRelease('ID=ubuntu\nID_LIKE="debian"\n').like[0], "debian");
 * ```
 */
export function parseOsRelease(text: string): OsRelease {
  const fields = new Map<string, string>();
  for (const line of text.split("\n")) {
    const match = /^\s*([A-Z0-9_]+)=(.*?)\s*$/.exec(line);
    if (match?.[1] !== undefined && match[2] !== undefined) fields.set(match[1], unquote(match[2]));
  }
  const id = fields.get("ID") ?? "linux"; // the default that os-release(5) gives
  return {
    id,
    like: (fields.get("ID_LIKE") ?? "").split(/\s+/).filter((word) => word !== ""),
    name: fields.get("PRETTY_NAME") ?? id,
  };
}

/** What a fix depends on, of the adapter that answered. */
export interface AdapterAnswer {
  readonly vendor: string;
  readonly software: boolean;
  readonly backend: { readonly name: string; readonly forced: boolean; readonly vulkan?: string };
}

/** Vendors whose Vulkan drivers are Mesa's. */
const MESA = ["Mesa", "Intel", "AMD"];

/** Dawn answers on fewer drivers: on Mesa 25.0, not on Debian 12's 22.3. */
export const DAWN_FIX: Fix = {
  kind: "advice",
  text: "Dawn needs a newer driver (Mesa 22.3 is too old); --webgpu builtin may work",
};

/**
 * Chooses a fix where no adapter answered, or only OpenGL; else `none`.
 *
 * @param forced the value of DENO_WEBGPU_BACKEND: no other backend was tried, so a driver may be installed.
 */
export function chooseFix(machine: Machine, adapter: AdapterAnswer | null, forced?: string): Fix {
  if (adapter === null && forced) {
    const text = `DENO_WEBGPU_BACKEND is set to "${forced}", which is the likely cause: ` +
      "unset it and run doctor again";
    return { kind: "advice", text };
  }
  if (adapter !== null && !lacksVulkan(adapter)) return { kind: "none" };
  if (machine.os === "linux") {
    if (adapter === null || adapter.software || MESA.includes(adapter.vendor)) {
      return linuxFix(machine);
    }
    const text = `install ${adapter.vendor}'s Vulkan driver; a container needs the host's ` +
      "(NVIDIA_DRIVER_CAPABILITIES=all)";
    return { kind: "advice", text };
  }
  const text = machine.os === "darwin"
    ? "Metal answers on every Mac that Deno runs on, except in most virtual machines"
    : "install the graphics driver of your GPU's vendor";
  return { kind: "advice", text };
}

/** OpenGL was taken, unasked, because there is no Vulkan. */
function lacksVulkan({ backend }: AdapterAnswer): boolean {
  return backend.name === "gl" && !backend.forced && backend.vulkan === undefined;
}

function linuxFix(machine: Machine): Fix {
  const kinds = machine.release ? [machine.release.id, ...machine.release.like] : [];
  if (kinds.includes("debian")) {
    return machine.root
      ? { kind: "install", command: DEBIAN_COMMAND }
      : { kind: "run", command: `sudo ${DEBIAN_COMMAND}` };
  }
  const command = kinds.map((kind) => OTHER_COMMANDS[kind]).find((found) => found !== undefined);
  if (command !== undefined) {
    return { kind: "run", command: machine.root ? command : `sudo ${command}` };
  }
  return { kind: "advice", text: "install a Vulkan driver: your GPU vendor's, or Mesa's lavapipe" };
}

function unquote(value: string): string {
  const inner = /^(["'])(.*)\1$/.exec(value);
  return inner?.[2] === undefined ? value : inner[2].replace(/\\(["$`\\])/g, "$1");
}
