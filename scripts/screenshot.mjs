// Takes a picture of a page once it is complete: node screenshot.mjs URL WAIT_FOR FILE WIDTH HEIGHT [TOP_OF]
//   WAIT_FOR: a selector that must match; TOP_OF: a selector whose first match is the top of the picture
import { createRequire } from "node:module";

// The browser driver is a dependency of the dashboards.
const { chromium } = createRequire(new URL("../dashboards/package.json", import.meta.url))("playwright-core");

const [url, waitFor, file, width, height, topOf] = process.argv.slice(2);
const viewport = { width: Number(width), height: Number(height) };
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
try {
  const page = await browser.newPage({ viewport });
  await page.goto(url);
  await page.locator(waitFor).first().waitFor({ state: "attached", timeout: 60_000 });
  await page.waitForTimeout(20_000 * Number(url.startsWith("http"))); // lets charts grow
  const y = topOf ? (await page.locator(topOf).first().boundingBox()).y : 0;
  await page.screenshot({ path: file, fullPage: true, clip: { x: 0, y, ...viewport } });
} finally {
  await browser.close();
}
