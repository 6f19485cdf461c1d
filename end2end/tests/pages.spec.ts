import { api, expect, ready, signIn, stuck, test } from "./support";

const pages = ["/", "/stuck", "/records", "/alerts", "/alerts?rule=new", "/audit", "/sources", "/me"];

for (const locale of ["en", "zh-CN"]) {
  for (const theme of ["light", "dark"]) {
    test(`every page, ${locale}, ${theme}, wide and narrow: one heading, nothing overflows`, async ({ page, context, baseURL, javaScriptEnabled }) => {
      await signIn(page, "operator");
      await context.addCookies([
        { name: "amends_lang", value: locale, url: baseURL! },
        { name: "amends_theme", value: theme, url: baseURL! },
      ]);
      for (const width of [1440, 390]) {
        await page.setViewportSize({ width, height: 900 });
        for (const path of pages) {
          await page.goto(path);
          await ready(page, javaScriptEnabled !== false);
          await expect(page.locator("html")).toHaveAttribute("lang", locale);
          await expect(page.locator("h1")).toHaveCount(1);
          const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
          expect(overflow, `${path} at ${width}px`).toBeLessThanOrEqual(0);
        }
      }
    });
  }
}

test("strangers are sent to sign in and come back where they were going", async ({ page }) => {
  await page.goto("/stuck?lane=no_effect");
  await expect(page).toHaveURL(/\/login\?next=/);
  await page.getByLabel("User name").fill("operator");
  await page.getByLabel("Password").fill(process.env.AMENDS_DEMO_PASSWORD!);
  await page.getByRole("button", { name: "Sign in" }).click();
  await expect(page).toHaveURL("/stuck?lane=no_effect");
});

test("a wrong password says so and keeps the name", async ({ page }) => {
  await page.goto("/login");
  await page.getByLabel("User name").fill("nobody");
  await page.getByLabel("Password").fill("wrong");
  await page.getByRole("button", { name: "Sign in" }).click();
  await expect(page.getByRole("alert")).toBeVisible();
  await expect(page.getByLabel("User name")).toHaveValue("nobody");
});

test("filters live in the URL and survive a reload; searching a key lands on its record", async ({ page, request }) => {
  await api(request, "operator");
  const row = await stuck(request, "found");
  await signIn(page, "viewer");
  await page.goto(`/records?state=PROCESSING&biz_type=${row.biz_type}`);
  const rows = page.locator("[data-row]");
  const count = await rows.count();
  expect(count).toBeGreaterThan(0);
  await page.reload();
  await expect(rows).toHaveCount(count);
  await page.locator("#search").fill(row.key);
  await page.locator("#search").press("Enter");
  await expect(page).toHaveURL(new RegExp(`/records/${row.id}`));
});
