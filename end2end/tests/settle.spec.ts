import { api, expect, openDialog, ready, record, shopState, signIn, sql, stuck, test, type Verdict } from "./support";

// The same journeys with scripts and without: see the projects of playwright.config.ts.
const actions = [
  { verdict: "found", action: "Mark succeeded", verb: "mark_succeeded", state: "SUCCESS" },
  { verdict: "absent", action: "Mark timed out", verb: "mark_timed_out", state: "TIMEOUT" },
  { verdict: "absent", action: "Replay", verb: "replay", state: "SUCCESS" },
] as const;

for (const { verdict, action, verb, state } of actions) {
  test(`${action}: record, audit and source table agree`, async ({ page, request, javaScriptEnabled }) => {
    await api(request, "operator");
    const row = await stuck(request, verdict);
    await signIn(page, "operator");
    const dialog = await openDialog(page, row, action, javaScriptEnabled !== false);
    await dialog.locator("button[type=submit]").click();

    await expect(page).toHaveURL(new RegExp(`/records/${row.id}`));
    await expect(page.locator(".toast")).toBeVisible();
    expect((await record(request, row.id)).state).toBe(state);
    expect(shopState(row.key)).toBe(state);
    const audit = await (await request.get(`/api/v1/audit?record=${row.id}&action=${verb}.succeeded`)).json();
    expect(audit.items).toHaveLength(1);
    expect(audit.items[0].reason).toBe("checked with the shop");
    await page.goto(`/audit?record=${row.id}`);
    await expect(page.getByText("checked with the shop").first()).toBeVisible();
  });
}

test("from the queue: stuck, check, and what each verdict offers", async ({ page, request, javaScriptEnabled }) => {
  await api(request, "operator");
  await signIn(page, "operator");
  await page.getByRole("link", { name: /^Stuck/ }).first().click();
  await expect(page.locator("h1")).toContainText("Stuck");
  await ready(page, javaScriptEnabled !== false);
  const offers: Record<Verdict, string[]> = {
    found: ["Mark succeeded"],
    absent: ["Mark timed out", "Replay"],
    mismatch: [],
    partial: [],
    unavailable: [],
  };
  for (const [verdict, offered] of Object.entries(offers) as [Verdict, string[]][]) {
    const row = await stuck(request, verdict);
    await page.goto("/stuck");
    await page.locator(`[data-row="${row.id}"]`).getByRole("button", { name: "Check" }).click();
    await expect(page.locator("h1")).toContainText("Stuck");
    await page.goto(`/records/${row.id}`);
    for (const action of ["Mark succeeded", "Mark timed out", "Replay"]) {
      const button = page.locator(".offers").getByRole("button", { name: action, exact: true });
      await expect(button).toBeVisible();
      if (offered.includes(action)) await expect(button).toBeEnabled();
      else await expect(button).toBeDisabled();
    }
  }
});

test("evidence past its life must be renewed before anything is offered", async ({ page, request }) => {
  await api(request, "operator");
  const row = await stuck(request, "found");
  sql("amends.db", "UPDATE evidence SET document = json_set(document, '$.expires_at', '2020-01-01T00:00:00Z')");
  await signIn(page, "operator");
  await page.goto(`/records/${row.id}`);
  const button = page.locator(".offers").getByRole("button", { name: "Mark succeeded", exact: true });
  await expect(button).toBeDisabled();
  await expect(page.locator(".offers")).toContainText("too old");
  await page.getByRole("button", { name: "Check again" }).click();
  await expect(button).toBeEnabled();
});

test("a viewer reads and cannot act, on the page, by API and by server function", async ({ page, request, baseURL }) => {
  const headers = { Origin: baseURL! };
  await api(request, "operator");
  const row = await stuck(request, "found");
  const evidence = await (await request.post(`/api/v1/records/${row.id}/reverse-check`, { data: {} })).json();
  await signIn(page, "viewer");
  await page.goto(`/records/${row.id}`);
  for (const action of ["Mark succeeded", "Mark timed out", "Replay"]) {
    await expect(page.locator(".offers").getByRole("button", { name: action, exact: true })).toBeDisabled();
  }
  const viewer = page.context().request;
  const command = { action: "mark_succeeded", reason: "no", if_version: row.version, evidence_id: evidence.evidence_id };
  const byApi = await viewer.post(`/api/v1/records/${row.id}/compensations`, {
    data: command,
    headers: { ...headers, "Idempotency-Key": crypto.randomUUID() },
  });
  expect(byApi.status()).toBe(403);
  await viewer.post("/api/fn/settle", {
    form: { id: row.id, action: "mark_succeeded", reason: "no", if_version: row.version, evidence_id: evidence.evidence_id, command_key: crypto.randomUUID(), back: "/" },
    headers,
  });
  expect((await record(request, row.id)).state).toBe("PROCESSING");
});
