import { deepEqual, equal, match } from "node:assert/strict";
import { runDoctor } from "../../src/cli/doctor/doctor.ts";

const WITHOUT_DRIVER = {
  __EGL_VENDOR_LIBRARY_FILENAMES: "/none",
  VK_DRIVER_FILES: "/none",
  VK_ICD_FILENAMES: "/none",
};

async function doctor(
  args: string[],
  env: Record<string, string>,
): Promise<{ code: number; out: string; err: string }> {
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "main.ts", "doctor", ...args],
    env,
    cwd: new URL("../..", import.meta.url),
  });
  const { code, stdout, stderr } = await child.output();
  const decoder = new TextDecoder();
  return { code, out: decoder.decode(stdout), err: decoder.decode(stderr) };
}

Deno.test("doctor measures this machine's adapter", async () => {
  let text = "";
  const code = await runDoctor(
    { fix: false, json: true, webgpu: "builtin" },
    (piece) => text += piece,
  );
  const { healthy, adapter, deno } = JSON.parse(text);
  equal(code, 0);
  equal(healthy, true);
  equal(deno.version, Deno.version.deno);
  equal(adapter.problem, null);
  equal(adapter.speed.copy_gb_per_s > 0, true);
});

Deno.test("doctor without an adapter says what to do and ends with 1", async () => {
  const { code, out } = await doctor([], WITHOUT_DRIVER);
  equal(code, 1);
  match(out, /^adapter +none$/m);
  match(out, /^verdict +no WebGPU adapter; /m);
});

Deno.test({
  name: "doctor --fix installs, then looks again in a new process",
  ignore: !(Deno.build.os === "linux" && Deno.uid() === 0 && isDebian()),
  fn: async () => {
    const folder = await Deno.makeTempDir();
    try {
      const env = { ...WITHOUT_DRIVER, PATH: `${folder}:${Deno.env.get("PATH")}` };
      await writeAptGet(folder, `echo "$@" >> ${folder}/asked`);
      const looked = await doctor(["--fix", "--json"], env);
      equal(JSON.parse(looked.out).healthy, false); // the stand-in installed nothing
      match(
        await Deno.readTextFile(`${folder}/asked`),
        /update\n.*install -y .*mesa-vulkan-drivers/,
      );
      await writeAptGet(folder, 'echo "E: no such package" >&2; exit 100');
      const failed = await doctor(["--fix"], env);
      equal(failed.code, 2);
      match(failed.err, /E: no such package\n.*Cannot install "mesa-vulkan-drivers libvulkan1"/s);
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  },
});

const LAVAPIPE = "/usr/share/vulkan/icd.d/lvp_icd.x86_64.json";

Deno.test({
  name: "doctor --fix where OpenGL alone answers: Vulkan is installed, and then taken",
  ignore: !(Deno.build.os === "linux" && Deno.uid() === 0 && isDebian() && isThere(LAVAPIPE)),
  fn: async () => {
    const folder = await Deno.makeTempDir();
    try {
      const driver = `${folder}/lavapipe.json`;
      const path = `${folder}:${Deno.env.get("PATH")}`;
      const env = { VK_DRIVER_FILES: driver, VK_ICD_FILENAMES: driver, PATH: path };
      const before = JSON.parse((await doctor(["--json"], env)).out);
      // Where Mesa's GL is not installed either, nothing answers.
      if (before.adapter !== null) {
        deepEqual([before.adapter.backend, before.adapter.backend_certain], ["gl", true]);
      }
      equal(before.fix.kind, "install");
      await writeAptGet(folder, "exit 100");
      const failed = await doctor(["--fix", "--json"], env);
      if (before.adapter !== null) {
        equal(failed.code, 0);
        match(failed.err, /^warning: Cannot install "mesa-vulkan-drivers libvulkan1"/m);
        equal(JSON.parse(failed.out).adapter.backend, "gl");
      }
      await writeAptGet(folder, `cp ${LAVAPIPE} ${driver}`);
      const { code, out } = await doctor(["--fix", "--json"], env);
      const { adapter, fix } = JSON.parse(out);
      deepEqual([code, adapter.backend, adapter.backend_certain], [0, "vulkan", true]);
      equal(fix.kind, "none");
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  },
});

async function writeAptGet(folder: string, script: string): Promise<void> {
  await Deno.writeTextFile(`${folder}/apt-get`, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
}

function isThere(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false;
  }
}

function isDebian(): boolean {
  try {
    return /^ID(_LIKE)?=.*(debian|ubuntu)/m.test(Deno.readTextFileSync("/etc/os-release"));
  } catch {
    return false;
  }
}
