// profile.mjs BUILD: what the page of a profile promises, tried in a browser. See profile.sh.
import assert from "node:assert/strict";
import {execFileSync} from "node:child_process";
import {mkdirSync, writeFileSync} from "node:fs";
import {launch, open, runAll} from "./browser.mjs";

const [build] = process.argv.slice(2);
const folder = build + "/page";
const hostile = "</script><img src=x onerror=alert(1)><b>bold</b>";

function write(name, from, to) {
	const rows = ["id,amount," + hostile + ",day,empty"];
	for (let i = from; i < to; i++)
		rows.push([i, (i * 7919 % 1009) / 10, i % 4 ? hostile : "x" + i % 3, "2026-01-" + String(1 + i % 28).padStart(2, "0"), ""].join(","));
	writeFileSync(folder + "/" + name, rows.join("\n") + "\n");
	return folder + "/" + name;
}

function make(name, ...args) {
	execFileSync(build + "/leat", ["profile", ...args, "--html", folder + "/" + name]);
	return folder + "/" + name;
}

const tests = {
	async "a page opens without errors and without the network"({browser, file, compared}) {
		for (const one of [file, compared]) {
			const page = await open(browser, one);
			assert.deepEqual(page.faults, []);
			assert.equal(await page.locator("[data-failed]").count(), 0);
			assert.equal(await page.title(), "Leat profile");
		}
	},

	async "every column has a section, with a histogram or its most frequent values"({browser, file}) {
		const page = await open(browser, file);
		assert.equal(await page.locator(".columns section").count(), 5);
		assert.equal(await page.locator("svg.bars").count(), 3);
		assert.ok(await page.locator('section[aria-label="amount"] svg.bars rect').count() > 30);
		assert.match((await page.locator('section[aria-label="amount"]').innerText()).replace(/\u202f/g, " "), /DOUBLE[^]*distinct\s+1,000[^]*mean\s+50\.47[^]*50 %\s+50\.55/);
		assert.match(await page.locator("[data-figure=rows]").innerText(), /1,000/);
		assert.match((await page.locator('section[aria-label="empty"]').innerText()).replace(/\u202f/g, " "), /NULL\s+100 %/);
	},

	async "links of the overview lead to their columns"({browser, file}) {
		const page = await open(browser, file);
		await page.locator('section[aria-label="Columns"] a', {hasText: "day"}).click();
		assert.match(page.url(), /#column-3$/);
		assert.equal(await page.locator("#column-3 h2").textContent(), "day");
	},

	async "names and values never become markup"({browser, file}) {
		const page = await open(browser, file);
		assert.equal(await page.locator("img, main script, main b").count(), 0);
		assert.equal(await page.locator("#column-2 h2").textContent(), hostile);
		assert.ok((await page.locator("#column-2 tbody").innerText()).includes(hostile));
	},

	async "a comparison says what moved, and draws both"({browser, compared}) {
		const page = await open(browser, compared);
		const row = await page.locator('section[aria-label="What moved"] tbody tr').first().innerText();
		assert.match(row, /^id\s+moved a lot\s+5\.216\s+0\.529\s+median 499\.5 \u2192 1749\.5/);
		assert.equal(await page.locator("svg.bars path.two").count(), 3);
		assert.match(await page.locator("[data-figure=moved]").innerText(), /1/);
	},

	async "both themes differ, and a narrow window does not scroll sideways"({browser, file}) {
		const light = await open(browser, file), dark = await open(browser, file, {colorScheme: "dark"});
		assert.notDeepEqual(await light.screenshot({path: folder + "/profile-light.png", fullPage: true}), await dark.screenshot({path: folder + "/profile-dark.png"}));
		const narrow = await open(browser, file, {viewport: {width: 400, height: 800}});
		assert.ok(await narrow.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
	},
};

mkdirSync(folder, {recursive: true});
const events = write("events.csv", 0, 1000), later = write("later.csv", 500, 3000);
const file = make("profile.html", events), compared = make("profile-compared.html", later, "--compare", events);
const browser = await launch(build);
const good = await runAll(browser, tests, {file, compared});
await browser.close();
process.exit(good ? 0 : 1);
