import { deepEqual, equal } from "node:assert/strict";
import {
  type AdapterAnswer,
  chooseFix,
  type Machine,
  parseOsRelease,
} from "../../../src/cli/doctor/machine.ts";

const DEBIAN = parseOsRelease('ID=debian\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n');
const APT = "apt-get install -y mesa-vulkan-drivers libvulkan1";

function linux(text: string | undefined, root = true): Machine {
  return { os: "linux", release: text === undefined ? undefined : parseOsRelease(text), root };
}

Deno.test("os-release: quotes, escapes, comments and absent fields", () => {
  deepEqual(DEBIAN, { id: "debian", like: [], name: "Debian GNU/Linux 12 (bookworm)" });
  deepEqual(
    parseOsRelease('# who\nID=\'mint\'\r\nID_LIKE="ubuntu  debian"\nPRETTY_NAME="a \\"b\\""\n'),
    {
      id: "mint",
      like: ["ubuntu", "debian"],
      name: 'a "b"',
    },
  );
  deepEqual(parseOsRelease(""), { id: "linux", like: [], name: "linux" });
});

const VULKAN: AdapterAnswer = {
  vendor: "Mesa",
  software: true,
  backend: { name: "vulkan", forced: false },
};
const GL = { ...VULKAN, backend: { name: "gl", forced: false } };

Deno.test("where OpenGL alone answers, Mesa's Vulkan is installed for what Mesa drives", () => {
  const debian = linux("ID=debian");
  const kind = (adapter: AdapterAnswer) => chooseFix(debian, adapter).kind;
  equal(kind(GL), "install");
  equal(kind({ ...GL, software: false, vendor: "Intel" }), "install");
  deepEqual(chooseFix(debian, { ...GL, software: false, vendor: "NVIDIA" }), {
    kind: "advice",
    text: "install NVIDIA's Vulkan driver; a container needs the host's " +
      "(NVIDIA_DRIVER_CAPABILITIES=all)",
  });
  equal(kind({ ...GL, backend: { ...GL.backend, forced: true } }), "none");
  equal(kind({ ...GL, backend: { ...GL.backend, vulkan: "llvmpipe" } }), "none");
});

Deno.test("a backend that the environment asks for and does not get is named; nothing is installed", () => {
  deepEqual(chooseFix(linux("ID=debian"), null, "dx12"), {
    kind: "advice",
    text: 'DENO_WEBGPU_BACKEND is set to "dx12", which is the likely cause: ' +
      "unset it and run doctor again",
  });
  equal(chooseFix(linux("ID=debian"), null, "").kind, "install");
  equal(chooseFix(linux("ID=debian"), VULKAN, "vulkan").kind, "none");
});

Deno.test("the fix follows the distribution and who we are", () => {
  const table: [Machine, string][] = [
    [linux("ID=debian"), `install ${APT}`],
    [linux("ID=debian", false), `run sudo ${APT}`],
    [linux('ID=linuxmint\nID_LIKE="ubuntu debian"'), `install ${APT}`],
    [linux("ID=fedora", false), "run sudo dnf install -y mesa-vulkan-drivers vulkan-loader"],
    [
      linux('ID=rocky\nID_LIKE="rhel fedora"'),
      "run dnf install -y mesa-vulkan-drivers vulkan-loader",
    ],
    [linux("ID=arch"), "run pacman -S --noconfirm vulkan-swrast vulkan-icd-loader"],
    [linux("ID=nixos"), "advice"],
    [linux(undefined), "advice"],
    [{ os: "darwin", release: undefined, root: false }, "advice"],
    [{ os: "windows", release: undefined, root: false }, "advice"],
  ];
  for (const [machine, expected] of table) {
    const fix = chooseFix(machine, null);
    equal("command" in fix ? `${fix.kind} ${fix.command}` : fix.kind, expected);
    equal(chooseFix(machine, VULKAN).kind, "none");
  }
});
