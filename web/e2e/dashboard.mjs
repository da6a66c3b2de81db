// The user's paths through the dashboard, in a real browser against a real server:
//   node e2e/dashboard.mjs URL [FOLDER for screenshots]
import { chromium } from "playwright-core";
import { strict as assert } from "node:assert";

const [url, shots] = process.argv.slice(2);
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
page.setDefaultTimeout(20_000);
const faults = [];
page.on("pageerror", (e) => faults.push(String(e)));
page.on("console", (m) => {
  if (m.type() === "error" && !m.text().includes("ERR_INCOMPLETE_CHUNKED") && !/status of (4|5)\d\d/.test(m.text())) faults.push(m.text());
});
page.on("dialog", (d) => {
  faults.push(`a script ran: ${d.message()}`);
  d.dismiss();
});
const shot = async (name) => {
  if (shots) await page.screenshot({ path: `${shots}/${name}.png`, fullPage: true });
};
const step = async (name, f) => {
  try {
    await f();
    console.log(`ok    ${name}`);
  } catch (e) {
    await shot("failed");
    console.log(`FAIL  ${name}\n${e.message}\n--- page\n${(await page.locator("body").innerText()).slice(0, 2000)}`);
    await browser.close();
    process.exit(1);
  }
};
const text = (s) => page.getByText(s);
const button = (name, scope = page) => scope.getByRole("button", { name, exact: true });

await step("an empty list shows the line that fills it", async () => {
  await page.goto(url);
  await text("No job yet").waitFor();
  await text("curl -s").first().waitFor();
  await shot("jobs-empty");
});

await step("a wrong query is refused with its place and a hint", async () => {
  await page.getByRole("link", { name: "SQL", exact: true }).click();
  await page.getByLabel("SQL", { exact: true }).fill("SELECT behavor, COUNT(*) AS n FROM user_behavior GROUP BY behavior");
  await button("Start job").click();
  await page.getByRole("alert").getByText("column 8").waitFor();
  await page.getByRole("alert").getByText("behavior", { exact: false }).first().waitFor();
  await shot("sql-refused");
});

await step("a query becomes a job whose result grows", async () => {
  await page.getByLabel("SQL", { exact: true }).fill("SET 'checkpoint.interval' = '1 s';\nSELECT behavior, COUNT(*) AS n\nFROM user_behavior\nGROUP BY behavior");
  await page.getByLabel("Name").fill("behaviors");
  await button("Start job").click();
  await page.waitForURL("**/jobs/behaviors");
  const table = page.getByRole("table", { name: "Result" });
  const pv = async () => Number((await table.getByRole("row").filter({ hasText: "pv" }).getByRole("cell").nth(1).innerText()).replaceAll(",", ""));
  await table.getByText("pv", { exact: true }).waitFor();
  const first = await pv();
  await page.waitForFunction((n) => [...document.querySelectorAll("table[aria-label=Result] tr")].some((r) => r.textContent.startsWith("pv") && Number(r.lastChild.textContent.replaceAll(",", "")) > n), first);
  await text("global_aggregate").first().waitFor();
  await shot("job-overview");
});

await step("the graph says how busy its operators are and which one holds the job up", async () => {
  const sql = "CREATE TABLE fast (k BIGINT, word STRING) WITH ('connector' = 'datagen'); SELECT k, COUNT(*) AS n, MAX(word) AS w FROM fast WHERE k < 100 GROUP BY k";
  const made = await page.request.post(`${url}/v1/jobs`, { data: { name: "unpaced", sql, parallelism: 1 } });
  assert.equal(made.status(), 201, await made.text());
  await page.goto(`${url}/jobs/unpaced`);
  const source = page.locator(".react-flow__node", { hasText: "fast" });
  await source.getByText(/^[\d.,]+( [kM])? rows\/s, [\d.]+ ([KMG]i)?B\/s$/).waitFor();
  await source.getByText("bottleneck", { exact: true }).waitFor();
  const load = await source.getByRole("img", { name: /^busy \d+%.*, back-pressured \d+%, idle \d+%$/ }).getAttribute("aria-label");
  assert.ok(Number(load.match(/busy (\d+)%/)[1]) >= 50, load);
  assert.equal(await page.locator(".node.bottleneck").count(), 1);
  const own = (await source.locator(".share").allInnerTexts()).map(parseFloat);
  assert.ok(own.length > 1 && own.reduce((a, b) => a + b) >= 50, own.join());
  await source.click();
  const row = page.getByRole("table", { name: "Operators" }).getByRole("row").filter({ hasText: "fast" });
  await row.getByRole("cell", { name: /^\d+%$/ }).waitFor();
  await shot("job-graph-light");
  await button("Dark").click();
  await shot("job-graph-dark");
  await button("Light").click();
  await page.request.post(`${url}/v1/jobs/unpaced/cancel`);
  await page.goto(`${url}/jobs/behaviors`);
});

await step("a savepoint is taken by its button", async () => {
  await button("Savepoint").click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name (optional)").fill("before-stop");
  await button("Take savepoint", dialog).click();
  await dialog.waitFor({ state: "detached" });
  await text(/Savepoint before-stop .*has started/).waitFor();
  await page.waitForURL("**/jobs/behaviors?tab=checkpoints");
});

await step("the history is filtered, a checkpoint opens to its waterfall, and the URL holds both", async () => {
  await page.getByRole("tab", { name: "Checkpoints" }).click();
  await page.getByRole("cell", { name: "savepoint before-stop" }).waitFor();
  await text("A failure now would throw it back").waitFor();
  await page.getByLabel("Type", { exact: true }).selectOption("savepoint");
  const rows = page.getByRole("table", { name: "Checkpoints" }).locator("tr[data-row]");
  await page.waitForFunction(() => document.querySelectorAll("tr[data-row]").length === 1);
  await rows.first().click();
  const waterfall = page.getByRole("table", { name: "Waterfall" });
  await waterfall.getByText("slowest").first().waitFor();
  assert.match(page.url(), /type=savepoint/);
  await page.reload();
  await waterfall.getByText("slowest").first().waitFor();
  await shot("job-checkpoints");
  await button("Clear filters").click();
  await button("Take checkpoint").click();
  await text(/Checkpoint \d+ .*has started/).waitFor();
});

await step("a pending checkpoint says whom it waits for, and is canceled", async () => {
  const late = { ...(await (await page.request.get(`${url}/v1/jobs/behaviors/checkpoints?limit=1`)).json()).checkpoints[0] };
  const one = { ...late, id: late.id + 1000, status: "pending", completed_at: undefined, triggered_at: new Date().toISOString() };
  const task = (name, subtask) => ({ operator: name, name, subtask });
  const waiting_for = [{ ...task("global_aggregate", 1), worker: "worker-1", stage: "aligning", since_ms: 61_000, back_pressured: 0, busy: 0.1, missing: [task("user_behavior", 0)] }];
  let ended = false;
  const answer = (more) => JSON.stringify({ ...one, ...(ended ? { status: "aborted", completed_at: one.triggered_at, failure: { reason: "canceled", message: "canceled by its user" } } : {}), ...more });
  await page.route(/checkpoints\?(?!.*status=)/, (r) => r.fulfill({ contentType: "application/json", body: `{"checkpoints":[${answer({})}]}` }));
  await page.route(`**/checkpoints/${one.id}`, (r) => {
    ended ||= r.request().method() === "DELETE";
    return r.fulfill({ contentType: "application/json", body: answer({ operators: [], ...(ended ? {} : { waiting_for }) }) });
  });
  await page.getByRole("button", { name: `Checkpoint ${one.id}` }).last().click();
  await text("It waits for 1 subtask, the longest for 1 min 1 s: global_aggregate subtask 1").waitFor();
  await shot("job-checkpoint-pending");
  await button("Cancel checkpoint").click();
  await button("Cancel checkpoint", page.getByRole("dialog")).click();
  await text("canceled by its user").first().waitFor();
  await page.unroute(/checkpoints\?(?!.*status=)/);
  await page.unroute(`**/checkpoints/${one.id}`);
});

await step("the events read as the job's life", async () => {
  await page.getByRole("tab", { name: "Events" }).click();
  await page.getByRole("cell", { name: "status" }).first().waitFor();
  await shot("job-events");
});

await step("a job is stopped with a savepoint and restored from the first one", async () => {
  await button("Stop").click();
  await button("Stop with savepoint", page.getByRole("dialog")).click();
  await page.locator(".head .status", { hasText: "stopped" }).waitFor();
  await button("Restore…").click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("From").selectOption("savepoint:before-stop");
  await dialog.getByLabel("Parallelism").fill("3");
  await button("Restore", dialog).click();
  await dialog.waitFor({ state: "detached" });
  await page.locator(".head .status", { hasText: "running" }).waitFor();
  await text("savepoint:before-stop").first().waitFor();
});

await step("every page stands in both themes and on a small screen", async () => {
  for (const theme of ["Dark", "Light"]) {
    await button(theme).click();
    for (const name of ["Savepoints", "Tables", "Workers", "Jobs"]) {
      await page.getByRole("link", { name, exact: true }).click();
      await page.getByRole("heading", { level: 1, name }).waitFor();
      await shot(`${name.toLowerCase()}-${theme.toLowerCase()}`);
    }
  }
  await page.setViewportSize({ width: 380, height: 800 });
  await page.goto(`${url}/jobs/behaviors`);
  await page.getByRole("table", { name: "Result" }).waitFor();
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(wide <= 380, `the page is ${wide} px wide on a screen of 380`);
  await shot("job-small");
  await page.setViewportSize({ width: 1280, height: 900 });
});

await step("markup that strangers put into a job is text", async () => {
  const markup = "<img src=x onerror=alert(1)></script>";
  const sql = `-- ${markup}\nCREATE TABLE m (k STRING) WITH ('connector' = 'datagen', 'rows-per-second' = '100', 'fields.k.values' = '${markup}');\nSELECT k, COUNT(*) AS \`${markup}\` FROM m GROUP BY k`;
  const status = await page.evaluate(async (sql) => (await fetch("/v1/jobs", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ name: "marked", sql }) })).status, sql);
  assert.equal(status, 201);
  await page.goto(`${url}/jobs/marked`);
  const table = page.getByRole("table", { name: "Result" });
  await table.getByRole("cell", { name: markup }).waitFor();
  await table.getByRole("columnheader", { name: markup }).waitFor();
  for (const tab of await page.getByRole("tab").all()) {
    await tab.click();
    await page.waitForLoadState("networkidle", { timeout: 500 }).catch(() => {});
    assert.equal(await page.locator("img[src=x]").count(), 0, "markup became an element");
  }
  await shot("job-markup");
});

await step("a result of 300,000 rows is drawn at once, and the page stays quick", async () => {
  const sql = `CREATE TABLE g (k BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '150000', 'fields.k.kind' = 'sequence', 'fields.k.start' = '0', 'fields.k.end' = '299999'); SELECT k, COUNT(*) AS n FROM g GROUP BY k`;
  const answer = await page.request.post(`${url}/v1/jobs`, { data: { name: "large", sql } });
  assert.equal(answer.status(), 201);
  for (let total = 0; total < 300_000; ) {
    total = (await (await page.request.get(`${url}/v1/jobs/large/results?limit=1`)).json()).total ?? 0;
    await page.waitForTimeout(100);
  }
  await page.goto(`${url}/jobs/large`);
  await text("300,000 rows, 200 shown").waitFor();
  let received = 0;
  const network = await page.context().newCDPSession(page);
  network.on("Network.dataReceived", (e) => (received += e.dataLength));
  await network.send("Network.enable");
  const turns = await page.evaluate(async () => {
    let n = 0;
    for (const end = performance.now() + 1500; performance.now() < end; n++) await new Promise((done) => setTimeout(done, 10));
    return n;
  });
  await network.detach();
  assert.ok(turns >= 20, `the page had ${turns} turns in 1.5 s`); // of 140
  assert.ok(received < 2e6, `the page received ${received} bytes in 1.5 s`);
  const table = page.getByRole("table", { name: "Result" });
  assert.equal(await table.locator("tbody tr").count(), 200);
  await table.getByRole("button", { name: "k", exact: true }).click();
  await table.locator("tbody tr").first().getByText("299,999", { exact: true }).waitFor();
  await shot("job-large");
  assert.ok((await page.request.post(`${url}/v1/jobs/large/cancel`)).ok());
});

await step("M15: a skipped row is found with its place, its reason and its text", async () => {
  const sql = `CREATE TABLE s (k STRING, v INT) WITH ('connector' = 'filesystem', 'path' = 'rejects', 'format' = 'csv'); SELECT k, SUM(v) AS v FROM s GROUP BY k`;
  const answer = await page.request.post(`${url}/v1/jobs`, { data: { name: "skipping", sql, on_row_error: "skip" } });
  assert.equal(answer.status(), 201);
  await page.goto(`${url}/jobs/skipping`);
  await page.getByRole("link", { name: "1 row rejected" }).click();
  const row = page.getByRole("table", { name: "Rejected rows" }).locator("tbody tr");
  await row.getByText("rejects/2.csv:7", { exact: true }).waitFor();
  await row.getByText("is not an INT", { exact: false }).waitFor();
  await row.getByText("<img src=x onerror=alert(1)>,one", { exact: true }).waitFor();
  await shot("job-rejects");
});

await step("a path that is nowhere is a page that says so", async () => {
  const answer = await page.goto(`${url}/nowhere`);
  assert.equal(answer.status(), 404);
  await text("There is no such page").waitFor();
});

await step("Swagger's Try it out works", async () => {
  await page.goto(`${url}/docs`);
  await page.locator(".opblock-get").filter({ hasText: "/v1/workers" }).first().click();
  await page.getByRole("button", { name: "Execute" }).first().click();
  await page.locator(".responses-table.live-responses-table").getByText("200").first().waitFor();
  await shot("docs");
});

await step("no script failed on the way", async () => assert.deepEqual(faults, []));
await browser.close();
