/** Systems that a release has an executable for: the end of the executable's name, and Deno's name of the system. */
export const TARGETS: Readonly<Record<string, string>> = {
  "linux-x64": "x86_64-unknown-linux-gnu",
  "linux-arm64": "aarch64-unknown-linux-gnu",
  "macos-x64": "x86_64-apple-darwin",
  "macos-arm64": "aarch64-apple-darwin",
  "windows-x64": "x86_64-pc-windows-msvc",
};

/** Where the executable is written: `dist/eyrie`, or by target `dist/eyrie-windows-x64.exe`. */
export function outputOf(target: string | undefined): string {
  if (target === undefined) return "dist/eyrie";
  return `dist/eyrie-${target}${target.startsWith("windows") ? ".exe" : ""}`;
}
