import { api, expect, openDialog, ready, record, signIn, stuck, test } from "./support";

// What only scripts can do: run in the project with scripts.

test("a double click has one effect", async ({ page, request }) => {
  await api(request, "operator");
  const row = await stuck(request, "found");
  await signIn(page, "operator");
  const dialog = await openDialog(page, row, "Mark succeeded", true);
  await dialog.locator("button[type=submit]").dblclick();
  await expect(page.locator(".toast")).toBeVisible();
  const audit = await (await request.get(`/api/v1/audit?record=${row.id}&action=mark_succeeded.intended`)).json();
  expect(audit.items).toHaveLength(1);
  expect((await record(request, row.id)).state).toBe("SUCCESS");
});

test("a record that finished while the dialog was open is shown as it is now and not changed", async ({ page, request }) => {
  await api(request, "operator");
  const row = await stuck(request, "found");
  const evidence = await (await request.post(`/api/v1/records/${row.id}/reverse-check`, { data: {} })).json();
  await signIn(page, "approver");
  const dialog = await openDialog(page, row, "Mark succeeded", true);
  const first = await request.post(`/api/v1/records/${row.id}/compensations`, {
    data: { action: "mark_succeeded", reason: "the worker came back", if_version: row.version, evidence_id: evidence.evidence_id },
    headers: { "Idempotency-Key": crypto.randomUUID() },
  });
  expect(first.status()).toBe(200);
  const settled = await record(request, row.id);
  await dialog.locator("button[type=submit]").click();
  await expect(page.locator(".toast")).toContainText("changed since you looked");
  await expect(page.locator("h1")).toContainText("succeeded");
  expect((await record(request, row.id)).version).toBe(settled.version);
});

test("the dialog: Cancel has the focus, Esc closes, the focus returns", async ({ page, request }) => {
  await api(request, "operator");
  const row = await stuck(request, "found");
  await signIn(page, "operator");
  await page.goto(`/records/${row.id}`);
  await ready(page);
  const opener = page.getByRole("button", { name: "Mark succeeded", exact: true });
  await opener.click();
  await expect(page.locator("dialog[open] [data-cancel]")).toBeFocused();
  await page.keyboard.press("Escape");
  await expect(page.locator("dialog[open]")).toHaveCount(0);
  await expect(opener).toBeFocused();
});

test("the keyboard: search, rows, open, pages; nothing fires while typing", async ({ page }) => {
  await signIn(page, "operator");
  await ready(page);
  await page.keyboard.press("g");
  await page.keyboard.press("s");
  await expect(page).toHaveURL(/\/stuck/);
  await ready(page);
  await page.keyboard.press("/");
  await expect(page.locator("#search")).toBeFocused();
  await page.keyboard.type("gs?jk");
  await expect(page.locator("#search")).toHaveValue("gs?jk");
  await page.locator("#search").fill("");
  await page.locator("h1").click();
  await page.keyboard.press("j");
  await expect(page.locator("[data-row]").first()).toBeFocused();
});

test("a rule's preview follows the fields", async ({ page }) => {
  await signIn(page, "admin");
  await page.goto("/alerts?rule=new");
  await ready(page);
  await page.locator("#level-warn").fill("");
  await page.locator("#level-critical").fill("99");
  await expect(page.locator("#rule-preview")).toContainText("0 times");
  await page.locator("#level-critical").fill("1");
  await expect(page.locator("#rule-preview")).not.toContainText("0 times");
});

test("changes elsewhere arrive by themselves", async ({ page, request }) => {
  await api(request, "operator");
  const row = await stuck(request, "found");
  const evidence = await (await request.post(`/api/v1/records/${row.id}/reverse-check`, { data: {} })).json();
  await signIn(page, "viewer");
  await page.goto(`/records/${row.id}`);
  await ready(page);
  await request.post(`/api/v1/records/${row.id}/compensations`, {
    data: { action: "mark_succeeded", reason: "settled elsewhere", if_version: row.version, evidence_id: evidence.evidence_id },
    headers: { "Idempotency-Key": crypto.randomUUID() },
  });
  await expect(page.locator("h1")).toContainText("succeeded", { timeout: 15_000 });
});
