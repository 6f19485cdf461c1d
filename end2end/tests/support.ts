import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { test as base, expect, type APIRequestContext, type Page } from "@playwright/test";

export { expect };

export type Verdict = "found" | "mismatch" | "partial" | "absent" | "unavailable";
export type Row = { id: string; key: string; biz_type: string; biz_no: string; state: string; version: string; verdict: Verdict | null };

const PASSWORD = process.env.AMENDS_DEMO_PASSWORD!;
const DATA = process.env.AMENDS_DATA!;

/** Every test fails on any console error or uncaught exception; `request` posts as a page of the console would. */
export const test = base.extend<{ quiet: void }>({
  request: async ({ playwright, baseURL }, use) => {
    const request = await playwright.request.newContext({ baseURL, extraHTTPHeaders: { Origin: baseURL! } });
    await use(request);
    await request.dispose();
  },
  quiet: [
    async ({ page }, use) => {
      const complaints: string[] = [];
      page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
      page.on("pageerror", (error) => complaints.push(String(error)));
      await use();
      expect(complaints).toEqual([]);
    },
    { auto: true },
  ],
});

export async function signIn(page: Page, user: string) {
  await page.goto("/login");
  await page.getByLabel("User name").fill(user);
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Sign in" }).click();
  await expect(page).toHaveURL("/");
}

/** Waits until the page's scripts listen; without scripts there is nothing to wait for. */
export async function ready(page: Page, scripts = true) {
  if (scripts) await expect(page.locator("html")).toHaveAttribute("data-hydrated", "");
}

/** The API as this user, with a session of its own. */
export async function api(request: APIRequestContext, user: string) {
  const answer = await request.post("/api/v1/session", { data: { username: user, password: PASSWORD } });
  expect(answer.status()).toBe(204);
  return request;
}

/** A stuck record with this verdict, checked just now. */
export async function stuck(request: APIRequestContext, verdict: Verdict): Promise<Row> {
  const page = await (await request.get("/api/v1/records?stuck=true&limit=200")).json();
  for (const row of page.items as Row[]) {
    if (row.verdict && row.verdict !== verdict) continue;
    const checked = await (await request.post(`/api/v1/records/${row.id}/reverse-check`, { data: {} })).json();
    if (checked.verdict === verdict) return row;
  }
  throw new Error(`no stuck record is left whose verdict is ${verdict}`);
}

export async function record(request: APIRequestContext, id: string) {
  return (await request.get(`/api/v1/records/${id}`)).json();
}

/** What the shop's own table says, read past the console. */
export function shopState(key: string): string {
  return sql(key.startsWith("coupon") ? "promo.db" : "shop.db", `SELECT status FROM idempotent_record WHERE idempotent_id = '${key}'`);
}

export function sql(file: string, statement: string): string {
  return execFileSync("sqlite3", ["-cmd", ".timeout 5000", join(DATA, file), statement], { encoding: "utf8" }).trim();
}

/** Opens the record, then the dialog of an action, and gives a reason. */
export async function openDialog(page: Page, row: Row, action: string, scripts: boolean) {
  await page.goto(`/records/${row.id}`);
  await ready(page, scripts);
  await page.getByRole("button", { name: action, exact: true }).click();
  const dialog = page.locator("dialog[open]");
  await expect(dialog).toBeVisible();
  await dialog.getByLabel("Reason").fill("checked with the shop");
  return dialog;
}
