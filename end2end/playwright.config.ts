import { defineConfig } from "@playwright/test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

// The runner's workers load this file again: what is made once is handed on through the environment.
const port = (process.env.AMENDS_PORT ??= String(20000 + (process.pid % 20000)));
const data = (process.env.AMENDS_DATA ??= temporaryFolder());
const password = (process.env.AMENDS_DEMO_PASSWORD ??= "correct horse battery staple");
const binary = process.env.AMENDS_BIN ?? resolve(__dirname, "../target/release/amends");
const address = `http://127.0.0.1:${port}`;

export default defineConfig({
  testDir: "tests",
  outputDir: "test-results",
  forbidOnly: Boolean(process.env.CI),
  fullyParallel: false,
  // The tests settle records of one shared shop: order matters more than speed.
  workers: 1,
  reporter: [["list"]],
  timeout: 60_000,
  projects: [
    { name: "with scripts" },
    { name: "without scripts", testIgnore: "scripts.spec.ts", use: { javaScriptEnabled: false } },
  ],
  use: {
    locale: "en-US",
    baseURL: address,
    browserName: "chromium",
    screenshot: "only-on-failure",
    trace: "retain-on-failure",
    launchOptions: {
      executablePath: process.env.AMENDS_CHROMIUM ?? "/usr/bin/chromium",
      args: [
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
      ],
    },
  },
  webServer: {
    command: `"${binary}" demo --listen 127.0.0.1:${port} --data "${data}" --traffic off --stuck 6 --seed 7`,
    env: { AMENDS_DEMO_PASSWORD: password },
    url: `${address}/healthz`,
    reuseExistingServer: false,
    gracefulShutdown: { signal: "SIGTERM", timeout: 10_000 },
    stdout: "pipe",
    timeout: 60_000,
  },
});

/** A folder that goes when the process that made it does. */
function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "amends-end2end-"));
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
