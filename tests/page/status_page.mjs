// The status page in a real browser, of a real group: numbers, looks, silence when the device dies.
//   node status_page.mjs RIVULET CHROMIUM FOLDER     FOLDER takes the demo's files and the pictures
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

// What drives the browser comes with what makes the dashboards.
const { chromium } = createRequire(new URL("../../dashboards/package.json", import.meta.url))("playwright-core");

const [rivulet, browserPath, folder] = process.argv.slice(2);
const devices = 3;
const deadline = 60_000;

const sleep = ms => new Promise(done => setTimeout(done, ms));

async function eventually(what, look, ms = deadline) {
  const end = Date.now() + ms;
  let last;
  while (Date.now() < end) {
    try {
      const found = await look();
      if (found) return found;
    } catch (error) {
      last = error;
    }
    await sleep(100);
  }
  throw new Error(what + " did not come within " + ms / 1000 + " s" + (last ? ": " + last.message : ""));
}

/// The addresses that the devices say in their logs.
function addresses(kept) {
  return readdirSync(kept).filter(name => name.endsWith(".log")).sort().map(name => {
    const found = [...readFileSync(join(kept, name), "utf8").matchAll(/http="?(127\.0\.0\.1:\d+)/g)];
    return found.length === 0 ? "" : found.at(-1)[1];
  }).filter(address => address !== "");
}

async function get(address, path) {
  const answer = await fetch("http://" + address + path, { signal: AbortSignal.timeout(5000) });
  assert.equal(answer.status, 200, path);
  return answer.text();
}

const metric = (text, name) => Number(text.match(new RegExp("^" + name + " (\\S+)$", "m"))?.[1] ?? NaN);
const digits = text => Number(text.replace(/[^0-9.]/g, ""));

/// A page on which anything that is wrong is remembered.
async function open(browser, address, options) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  page.wrong = [];
  page.on("console", message => { if (message.type() === "error" && !/ERR_CONNECTION|Failed to load resource/.test(message.text())) page.wrong.push(message.text()); });
  page.on("pageerror", error => page.wrong.push(String(error)));
  page.on("request", request => { if (new URL(request.url()).host !== address && !request.url().startsWith("data:")) page.wrong.push("asked " + request.url()); });
  await page.goto("http://" + address + "/");
  return page;
}

async function checkNumbers(page, address) {
  await eventually("a training page", async () => /^training: 3 devices/.test(await page.locator("#state").innerText()));
  // Between two scrapes: the page is one second old at most, so look until one lies between.
  await eventually("numbers between two scrapes", async () => {
    const before = metric(await get(address, "/metrics"), "rivulet_rows_trained_total");
    await page.waitForFunction(() => document.querySelector("#rows_trained") !== null);
    await sleep(1500);
    const shown = digits(await page.locator("#rows_trained").innerText());
    const after = metric(await get(address, "/metrics"), "rivulet_rows_trained_total");
    return before > 0 && before <= shown && shown <= after;
  });
  assert.equal(await page.locator("#members tbody tr").count(), devices);
  assert.ok(await page.locator("#story li").count() >= 3);
  assert.ok(await page.locator("#rounds tbody tr").count() >= 3);
  assert.ok(await page.locator("#partitions tbody tr").count() >= 1);
  await eventually("charts", async () => await page.locator("#charts polyline").count() >= 4);
}

async function checkWithoutScript(browser, address) {
  const page = await open(browser, address, { javaScriptEnabled: false });
  assert.ok(digits(await page.locator("#rows_trained").innerText()) > 0);
  assert.equal(await page.locator("#members tbody tr").count(), devices);
  await page.context().close();
}

async function takePictures(browser, address) {
  for (const [name, options] of Object.entries({
    light: { colorScheme: "light", viewport: { width: 1100, height: 900 } },
    dark: { colorScheme: "dark", viewport: { width: 1100, height: 900 } },
    narrow: { colorScheme: "light", viewport: { width: 360, height: 780 } },
  })) {
    const page = await open(browser, address, options);
    await eventually("charts", async () => await page.locator("#charts polyline").count() >= 4);
    const topOf = async id => (await page.locator(id).boundingBox()).y;
    assert.ok(await topOf("#state") < await topOf("#charts") && await topOf("#charts") < await topOf("#members"), name + ": charts between state and tables");
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= options.viewport.width, name + " is " + width + " wide");
    const dark = await page.evaluate(() => getComputedStyle(document.body).backgroundColor !== "rgb(255, 255, 255)");
    assert.equal(dark, name === "dark");
    await page.screenshot({ path: join(folder, "status-" + name + ".png"), fullPage: true });
    assert.deepEqual(page.wrong, [], name);
    await page.context().close();
  }
}

/// The process that listens there, by the kernel's tables.
function pidOf(address) {
  const port = Number(address.split(":")[1]).toString(16).toUpperCase().padStart(4, "0");
  const line = readFileSync("/proc/net/tcp", "utf8").split("\n").find(l => l.includes(":" + port + " 00000000:0000 0A"));
  const inode = line.trim().split(/\s+/)[9];
  for (const pid of readdirSync("/proc").filter(name => /^\d+$/.test(name))) {
    try {
      for (const fd of readdirSync("/proc/" + pid + "/fd"))
        if (readlinkSync("/proc/" + pid + "/fd/" + fd) === "socket:[" + inode + "]") return Number(pid);
    } catch { /* it has ended, or is not ours */ }
  }
  throw new Error("nobody listens at " + address);
}

async function checkDeath(page, address) {
  process.kill(pidOf(address), "SIGKILL");
  await eventually("the page saying that nobody answers", () => page.locator("#silent").isVisible(), 15_000);
  assert.match(await page.locator("#silent").innerText(), /^No answer from this device for \d+ s/);
  // The demo starts it again.
  await eventually("the page's coming back", async () => !(await page.locator("#silent").isVisible()));
  await eventually("training again", async () => /^training/.test(await page.locator("#state").innerText()));
}




const kept = join(folder, "demo");
mkdirSync(folder, { recursive: true });
rmSync(kept, { recursive: true, force: true }); // of an earlier run
const demo = spawn(rivulet, ["demo", "--devices", String(devices), "--rates", "400,200,100", "--seconds", "300", "--keep", kept],
  { stdio: ["ignore", "ignore", "inherit"] });
const ended = new Promise(done => demo.on("exit", done));
let browser;
try {
  const [first] = await eventually("every device's address", () => {
    const all = addresses(kept);
    return all.length === devices ? all : undefined;
  });
  browser = await chromium.launch({ executablePath: browserPath, args: ["--no-sandbox"] });
  const page = await open(browser, first, {});
  await checkNumbers(page, first);
  await checkWithoutScript(browser, first);
  await takePictures(browser, first);
  await checkDeath(page, first);
  assert.deepEqual(page.wrong, []);
  console.log("status page: numbers, pictures, silence: as they should be");
} finally {
  await browser?.close();
  demo.kill("SIGINT");
  await Promise.race([ended, sleep(20_000)]);
  demo.kill("SIGKILL");
}
