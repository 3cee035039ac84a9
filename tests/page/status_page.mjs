// The status page of a real group in a real browser: values, layout, and the message after a device's death.
//   node status_page.mjs RIVULET CHROMIUM FOLDER     FOLDER: for the demo's files and the pictures
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

// The browser driver is a dependency of the dashboards.
const { chromium } = createRequire(new URL("../../dashboards/package.json", import.meta.url))("playwright-core");

const [rivulet, browserPath, folder] = process.argv.slice(2);
const devices = 3;
const deadline = 360_000; // ends hangs; a slow machine is no error

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
  throw new Error(what + " did not occur within " + ms / 1000 + " s" + (last ? ": " + last.message : ""));
}

/// Addresses of the pages, from the devices' logs.
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

const digits = text => Number(text.replace(/[^0-9.]/g, ""));

/// Opens a page and records its errors.
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

/// Sum of a metric's values with these labels.
function sumOf(text, name, labels = "") {
  const lines = [...text.matchAll(new RegExp("^" + name + "(?:\\{([^}]*)\\})? (\\S+)$", "gm"))].filter(line => (line[1] ?? "").includes(labels));
  assert.ok(lines.length > 0, name + " is nowhere in the metrics");
  return lines.reduce((sum, line) => sum + Number(line[2]), 0);
}

const tile = async (page, id) => digits(await page.locator("#" + id).innerText());
const stateNumber = async (page, what) => digits((await page.locator("#state").innerText()).match(what)[1]);

/// Counters: value on the page and in the metrics.
const growing = {
  "rows trained": [page => tile(page, "rows_trained"), text => sumOf(text, "rivulet_rows_trained_total")],
  "rows dropped": [page => tile(page, "rows_refused"), text => sumOf(text, "rivulet_rows_dropped_total")],
};
/// The same in the first sentence of a training device's page.
const growingInSentence = {
  "rounds applied": [page => stateNumber(page, /, ([\d\s]+) rounds applied/), text => sumOf(text, "rivulet_train_steps_total", 'result="applied"')],
};
const standingInSentence = {
  "devices in the view": [page => stateNumber(page, /(\d+) devices in view/), text => sumOf(text, "rivulet_collective_world_size")],
  view: [page => stateNumber(page, /in view (\d+)/), text => sumOf(text, "rivulet_collective_view")],
};
/// Gauges that change while rows arrive. `precision`: decimals on the page.
const standing = {
  loss: [page => tile(page, "loss"), text => sumOf(text, "rivulet_train_loss", 'window="average"'), 4],
  "rows waiting": [page => tile(page, "rows_waiting"), text => sumOf(text, "rivulet_buffer_rows"), 0],
  "records behind": [page => tile(page, "lag_records"), text => sumOf(text, "rivulet_kafka_processed_lag_records"), 0],
};

async function checkNumbers(page, address) {
  await eventually("a training page", async () => /^training: 3 devices/.test(await page.locator("#state").innerText()));
  // The page is up to one second old: repeats until its value lies between two scrapes.
  for (const [name, [shownBy, saidBy]] of Object.entries({ ...growing, ...growingInSentence }))
    await eventually(name + " between two scrapes", async () => {
      const before = saidBy(await get(address, "/metrics"));
      await sleep(1500);
      const shown = await shownBy(page);
      const after = saidBy(await get(address, "/metrics"));
      return (before > 0 || name === "rows dropped") && before <= shown && shown <= after;
    });
  await checkBatches(page, address);
  assert.equal(await page.locator("#members tbody tr").count(), devices);
  assert.equal(await page.locator("#story li").count(), 3);
  assert.ok(await page.locator("#rounds tbody tr").count() >= 3);
  assert.match(await page.locator("#rounds").textContent(), /synchronize every \d* ?steps?, (\d+(\.\d)? % of the|all) parameters/);
  assert.ok(await page.locator("#partitions tbody tr").count() >= 1);
  await eventually("charts", async () => await page.locator("#charts polyline").count() >= 4);
}

/// A batch is the rows of one gradient, also with many local steps per synchronization: never above batch.max.
async function checkBatches(page, address) {
  const text = await eventually("batches", async () => {
    const said = await get(address, "/metrics");
    return sumOf(said, "rivulet_batch_rows_count") > 20 && sumOf(said, "rivulet_train_steps_total", 'result="local_step"') > 10 ? said : undefined;
  });
  assert.equal(sumOf(text, "rivulet_batch_rows_bucket", 'le="128"'), sumOf(text, "rivulet_batch_rows_count"));
  assert.ok(await tile(page, "batch_rows") <= 128);
}

/// The child process whose first argument is this word.
function childOf(parent, word) {
  return readdirSync("/proc").filter(name => /^\d+$/.test(name)).map(Number).find(pid => {
    try {
      const [, ppid] = readFileSync("/proc/" + pid + "/stat", "utf8").split(") ").at(-1).split(" ");
      return Number(ppid) === parent && readFileSync("/proc/" + pid + "/cmdline", "utf8").split("\0")[1] === word;
    } catch { return false; /* it has ended */ }
  });
}

/// Folded details stay open or closed when the page is patched.
async function checkFolded(page) {
  const rest = page.locator("#story-rest");
  assert.equal(await rest.evaluate(details => details.open), false);
  await rest.locator("summary").click();
  const fetched = page.waitForResponse(answer => new URL(answer.url()).pathname === "/", { timeout: deadline });
  await fetched;
  await sleep(500);
  assert.equal(await rest.evaluate(details => details.open), true);
  assert.ok(await rest.locator("li").count() >= 3);
  await rest.locator("summary").click();
}

/// Charts use their whole width also for a few values, scores come first and large, and no row of boxes has fewer than the one
/// before.
async function checkLayout(page, name) {
  const charts = await page.locator("#charts figure").evaluateAll(all => all.map(figure => {
    const points = figure.querySelector("polyline").getAttribute("points").split(" ").map(point => Number(point.split(",")[0]));
    const { width, height } = figure.querySelector("svg").getBoundingClientRect();
    return { id: figure.id, first: points[0], last: points.at(-1), width, height };
  }));
  for (const chart of charts) {
    assert.equal(chart.first, 0, name + ": " + chart.id + " begins at the left");
    assert.equal(chart.last, 300, name + ": " + chart.id + " ends at the right");
  }
  assert.equal(charts[0].id, "chart-loss", name);
  assert.match(charts[1].id, /accuracy/, name);
  for (const large of charts.slice(0, 2))
    for (const small of charts.slice(2)) assert.ok(large.height > 2 * small.height && large.width >= small.width, name + ": " + large.id);
  const tops = await page.locator(".tiles section").evaluateAll(all => all.map(one => Math.round(one.getBoundingClientRect().top)));
  const inRows = [...new Set(tops)].map(top => tops.filter(one => one === top).length);
  assert.equal(new Set(inRows).size, 1, name + ": boxes in rows of " + inRows);
}

/// Whether `shown` is `value` with `precision` decimals. The server and JavaScript round ties such as 96.25 differently.
const isRounded = (shown, value, precision) => Object.is(shown, value) || Math.abs(shown - value) <= 0.5 * 10 ** -precision + 1e-9;

/// Constant values: page and metrics must be equal.
async function checkSame(pages, numbers) {
  for (const [page, address] of pages)
    for (const [name, [shownBy, saidBy, precision]] of Object.entries(numbers))
      await eventually(name + " as in the metrics of " + address, async () => {
        const said = saidBy(await get(address, "/metrics"));
        const shown = await shownBy(page);
        if (isRounded(shown, said, precision ?? 0)) return true;
        throw new Error("the page shows " + shown + ", the metrics say " + said);
      }, 15_000);
}

/// Scores on this device's own rows, and for each class.
async function checkOwn(pages) {
  for (const [page, address] of pages)
    await eventually("own scores as in the metrics of " + address, async () => {
      const text = await get(address, "/metrics");
      const same = (shown, share, what) => assert.ok(isRounded(shown, 100 * share, 1), what + ": " + shown + " for " + share);
      same(await tile(page, "own_accuracy"), sumOf(text, "rivulet_eval_score", 'metric="own_prequential_accuracy"'), "own accuracy");
      same(await tile(page, "largest_class"), sumOf(text, "rivulet_live_largest_class_ratio"), "largest class");
      const rows = await page.locator("#classes tbody tr").evaluateAll(all => all.map(row => [...row.cells].map(cell => cell.innerText)));
      assert.equal(rows.length, 10);
      for (const [name, , recall, precision] of rows)
        for (const [shown, metric] of [[recall, "recall"], [precision, "precision"]])
          same(digits(shown), sumOf(text, "rivulet_live_class_" + metric, 'class="' + name + '"'), name + " " + metric);
      return true;
    }, 15_000);
}

/// A change of the stream is a line in the charts of scores, with its time and text. Replaces the server's list by one of
/// the test, since the demo's streams need not change.
async function checkMarks(browser, address) {
  const page = await open(browser, address, {});
  const points = () => page.locator("#chart-loss polyline").getAttribute("points").then(text => text.split(" ").length);
  await eventually("ten seconds of a chart", async () => await points() > 10);
  const ago = 4;
  await page.route("http://" + address + "/", async route => {
    const answer = await route.fetch();
    const list = `<ul id="marks"><li data-ago="${ago}">${ago} s ago: <span>feature &lt;b&gt; has moved</span></li><li data-ago="290">x: <span>old</span></li></ul>`;
    await route.fulfill({ response: answer, body: (await answer.text()).replace(/<ul id="marks">.*<\/ul>\n/, "").replace('</div>\n<section id="charts"', list + '</div>\n<section id="charts"') });
  });
  const titles = () => page.locator("#charts .marks title").allTextContents();
  await eventually("a mark in both charts", async () => (await titles()).join() === "feature <b> has moved,feature <b> has moved");
  const [x, count] = await page.evaluate(() => {
    const figure = document.getElementById("chart-loss");
    return [Number(figure.querySelector(".marks line").getAttribute("x1")), figure.querySelector("polyline").getAttribute("points").split(" ").length];
  });
  assert.ok(Math.abs(x - 300 * (count - 1 - ago) / (count - 1)) < 0.1, "the mark is at " + x + " of " + count + " seconds");
  assert.ok((await page.locator("#marks").innerText()).includes("feature <b> has moved"));
  await page.screenshot({ path: join(folder, "status-mark.png"), fullPage: true });
  // The page fetches itself every second: an answer may still be in flight.
  await page.unrouteAll({ behavior: "ignoreErrors" });
  await eventually("the server's marks again", async () => !(await titles()).includes("feature <b> has moved"));
  assert.deepEqual(page.wrong, []);
  await page.context().close();
}

/// All devices show the same group, each with its own rank.
async function checkGroup(pages) {
  const columns = page => page.locator("#members tbody tr").evaluateAll(rows => rows.map(row => [row.cells[0].innerText, row.cells[1].innerText]));
  const without = name => name.replace(" (this device)", "");
  const groups = [];
  for (const [page, address] of pages) {
    const members = await columns(page);
    const own = members.filter(([name]) => name !== without(name));
    assert.equal(own.length, 1, address);
    assert.equal(without(own[0][0]), await page.locator("#id").innerText());
    assert.equal(Number(own[0][1]), sumOf(await get(address, "/metrics"), "rivulet_collective_rank"));
    groups.push(members.map(([name, rank]) => without(name) + " " + rank));
  }
  assert.equal(new Set(groups.map(group => group.join())).size, 1, JSON.stringify(groups));
  assert.equal(new Set(groups[0]).size, devices);
}

/// Invalid records in the topic are dropped, counted, and shown by reason.
async function checkRefusals(kept, pages) {
  const job = readFileSync(join(kept, "job.toml"), "utf8");
  const rubbish = join(folder, "rubbish.csv");
  writeFileSync(rubbish, "words\n" + Array.from({ length: 30 }, (_, i) => "no image " + i + "\n").join(""));
  execFileSync(rivulet, ["feed", rubbish, "--brokers", job.match(/bootstrap\.servers = "([^"]+)"/)[1], "--topic", job.match(/topics = \["([^"]+)"/)[1],
    "--rates", "100"], { stdio: "ignore", timeout: 30_000 });
  const refused = async address => sumOf(await get(address, "/metrics"), "rivulet_rows_dropped_total");
  await eventually("30 refused rows", async () => {
    let all = 0;
    for (const [, address] of pages) all += await refused(address);
    return all === 30;
  });
  for (const [page, address] of pages) {
    if (await refused(address) === 0) continue;
    await eventually("the refusals of " + address, async () => {
      const text = await get(address, "/metrics");
      const rows = await page.locator("#refusals tbody tr").evaluateAll(all => all.map(row => [row.cells[0].innerText, row.cells[1].innerText]));
      for (const [reason, count] of rows) assert.equal(digits(count), sumOf(text, "rivulet_rows_dropped_total", 'reason="' + reason + '"'));
      return rows.length > 0 && rows.reduce((sum, [, count]) => sum + digits(count), 0) === await tile(page, "rows_refused");
    }, 15_000);
  }
}

/// A page opened later shows the device's history immediately: the first drawn line is long.
async function checkPast(browser, address) {
  const page = await open(browser, address, {});
  for (const name of ["loss", "rows-s-arriving"]) {
    const points = await page.locator("#chart-" + name + " polyline").getAttribute("points");
    assert.ok(points.split(" ").length >= 5, name + " begins with " + points);
  }
  await page.context().close();
}

/// Every device's page while the stream is stopped.
async function checkPages(browser, all, kept) {
  const pages = [];
  for (const address of all) pages.push([await open(browser, address, {}), address]);
  await checkSame(pages, standingInSentence);
  const feeder = await eventually("the demo's feeder", () => childOf(demo.pid, "feed"));
  process.kill(feeder, "SIGSTOP");
  try {
    // Without rows all values are constant.
    await checkSame(pages, { ...standing, ...growing });
    await checkOwn(pages);
    await eventually("the same group on all pages", async () => { await checkGroup(pages); return true; }, 15_000);
    await checkRefusals(kept, pages);
    await checkSame(pages, { ...standing, ...growing });
  } finally {
    try { process.kill(feeder, "SIGCONT"); } catch { /* it has ended, which is not what went wrong first */ }
  }
  for (const [page] of pages) {
    assert.deepEqual(page.wrong, []);
    await page.context().close();
  }
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
    await checkLayout(page, name);
    const dark = await page.evaluate(() => getComputedStyle(document.body).backgroundColor !== "rgb(255, 255, 255)");
    assert.equal(dark, name === "dark");
    await page.screenshot({ path: join(folder, "status-" + name + ".png"), fullPage: true });
    assert.deepEqual(page.wrong, [], name);
    await page.context().close();
  }
}

/// The process that listens at this address, from the kernel's tables.
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
  // The demo restarts it.
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
  const all = await eventually("every device's address", () => {
    const found = addresses(kept);
    return found.length === devices ? found : undefined;
  });
  browser = await chromium.launch({ executablePath: browserPath, args: ["--no-sandbox"] });
  const [first] = all;
  const page = await open(browser, first, {});
  await checkNumbers(page, first);
  await checkFolded(page);
  await checkWithoutScript(browser, first);
  await checkPast(browser, first);
  await takePictures(browser, first);
  await checkMarks(browser, first);
  await checkPages(browser, all, kept);
  await checkDeath(page, first);
  assert.deepEqual(page.wrong, []);
  console.log("status page: numbers, pictures, silence: as they should be");
} catch (error) {
  console.error(error);
  process.exitCode = 1;
} finally {
  await browser?.close();
  demo.kill("SIGINT");
  await Promise.race([ended, sleep(20_000)]);
  demo.kill("SIGKILL");
}
