// page.mjs BUILD [time]: what a report promises, tried in a browser. See page.sh.
import assert from "node:assert/strict";
import {execFileSync} from "node:child_process";
import {mkdirSync, readFileSync, statSync, writeFileSync} from "node:fs";
import {contrast, launch, open, range, runAll} from "./browser.mjs";

const [build, how] = process.argv.slice(2);
const folder = build + "/page";
const hostile = "</script><img src=x onerror=alert(1)><b>bold</b>\u2028";

const run = {
	samples: 32000, batches: 2000, seconds: 20.013, samples_per_s: 1598.96, mb_per_s: 191.8751, wait_share: 0.20154, first_batch_ms: 341.2,
	peak_rss_mib: 340.6, memory_mib: 256, threads: 4, limit: "decode", spec: "folder('" + hostile + "') | decode | batch(16)",
	sentence: "decode on 4 threads gives 1,600 samples/s; your step could take 2,600. " + hostile,
	batch_ms: {p50: 9.8, p99: 14.1, max: 31.5, histogram: [[4, 0], [8, 300], [11.3, 1500], [16, 190], [32, 10]]},
	first_batch: {list_ms: 20, index_ms: 110, connect_ms: 0, first_byte_ms: 90, decode_ms: 120},
	epochs: [0, 1, 2, 3, 4].map((epoch) => ({epoch, samples: 6400, seconds: 4 + (epoch ? 0.002 * epoch : 0.4), wait_share: 0.2})),
	stages: [
		{name: "read", tag: "fetch", busy_s: 2, starved_s: 0, blocked_s: 10, items: 32000, bytes: 3.1e9, errors: 0, share: 0.1, rate_alone: 9000, waits_for: ""},
		{name: hostile, tag: "decode", busy_s: 60, starved_s: 4, blocked_s: 16, items: 32000, bytes: 9e9, errors: 1, share: 0.76, rate_alone: 1620, waits_for: "nothing"}],
	queues: [{name: "ready", depth: 0, capacity: 8}],
	endpoints: [{host: "store.lab", requests: 900, retries: 3, hedges: 2, refused: 1, bytes: 3e9, latency_ms: {p50: 12, p99: 80, histogram: [[8, 10], [16, 700], [128, 190]]}}],
	tuning: [{what: "threads", value: 4, why: "one per CPU", set: false}, {what: "window", value: "64 MiB", why: "set", set: true}],
	remedies: [{name: "threads", what: "threads=8", helps: true, at_most: false, predicted: 2500, measured: 2410, now: 1598, why: ""},
		{name: "window", what: "a larger window", helps: false, at_most: true, predicted: 1600, measured: null, now: 1598, why: hostile}],
	parts: [{name: "storage", samples_per_s: 9000, mb_per_s: 880, note: "page cache"}, {name: "cpu", threads: 4, samples_per_s: 1640, mb_per_s: 190, note: ""}],
	ranks: [{rank: 0, samples_per_s: 1598, slow_stage: "decode"}, {rank: 1, samples_per_s: 1700, slow_stage: "decode"}],
	bad_count: 1, bad: [{epoch: 0, position: 17, sample: 3, uri: "/data/" + hostile, offset: 12, reason: hostile, replaced: true, status: "DATA"}],
	stats: {samples: 32000, batches: 2000},
};

function make(name, json, batches) {
	const out = execFileSync(build + "/tests/make_report", [folder + "/" + name, JSON.stringify(json), String(batches)], {encoding: "utf8"});
	console.log("      " + name + ": " + out.trim());
	return folder + "/" + name;
}

// ---- colours ----

async function colors(page) {
	return page.evaluate(() => {
		const style = getComputedStyle(document.documentElement), tags = ["get-batch", "to-device", "run-batch", "fetch", "decode", "transform", "cache", "collate", "other"];
		const names = ["--page", "--panel", "--sunk", "--ink", "--soft", "--accent", "--good", "--bad", "--on-tag", "--curve", ...tags.map((tag) => "--tag-" + tag)];
		return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(name).trim()]));
	});
}

function checkContrast(c) {
	for (const background of ["--page", "--panel"])
		for (const text of ["--ink", "--soft", "--good", "--bad"])
			assert.ok(contrast(c[text], c[background]) >= 4.5, text + " on " + background + ": " + contrast(c[text], c[background]).toFixed(2));
	for (const name of Object.keys(c).filter((key) => key.startsWith("--tag-") || key === "--curve")) {
		assert.ok(contrast(c[name], c["--panel"]) >= 3, name + " on --panel: " + contrast(c[name], c["--panel"]).toFixed(2));
		assert.ok(contrast(c[name], c["--on-tag"]) >= 3, "text on " + name + ": " + contrast(c[name], c["--on-tag"]).toFixed(2));
	}
}

// How colours look to people who cannot tell some of them apart: matrices of Machado, Oliveira and Fernandes (2009) for
// linear RGB, with full severity.
const VISIONS = {
	normal: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
	protan: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
	deutan: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
	tritan: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
};

function lab(hex, vision) {
	const rgb = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16) / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
	const [r, g, b] = vision.map((row) => Math.min(Math.max(row.reduce((sum, weight, i) => sum + weight * rgb[i], 0), 0), 1));
	const f = (t) => (t > 0.008856 ? Math.cbrt(t) : 7.787 * t + 16 / 116);
	const [x, y, z] = [(0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505, 0.2126 * r + 0.7152 * g + 0.0722 * b, (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089].map(f);
	return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

function checkVisions(c) {
	for (const lane of [["get-batch", "to-device", "run-batch"], ["fetch", "decode", "transform", "cache", "collate"]])
		for (const [a, b] of lane.flatMap((one, i) => lane.slice(i + 1).map((other) => [one, other])))
			for (const [name, vision] of Object.entries(VISIONS)) {
				const distance = Math.hypot(...lab(c["--tag-" + a], vision).map((x, i) => x - lab(c["--tag-" + b], vision)[i]));
				assert.ok(distance >= 20, a + " and " + b + " look alike (" + distance.toFixed(0) + ") with " + name + " vision");
			}
}

// ---- the timeline ----

async function box(page) {
	const canvas = page.locator("canvas").first();
	await canvas.scrollIntoViewIfNeeded();
	return canvas.boundingBox();
}

const GUTTER = 150; // as in src/xray/page/timeline.js

// Moves the pointer to a time and a height of the canvas; the text of the tooltip, or null.
async function hover(page, time, y) {
	const at = await box(page), [begin, end] = await range(page);
	const x = GUTTER + (time - begin) / (end - begin) * (at.width - GUTTER);
	await page.mouse.move(at.x + x, at.y + y);
	return page.evaluate(() => { const tip = document.querySelector(".tip"); return tip.hidden ? null : [...tip.children].map((line) => line.textContent); });
}

// The heights of the lanes, found by what tooltips say.
async function laneHeights(page, time) {
	const found = {}, {height} = await box(page);
	for (let y = 60; y < height; y += 6) {
		const lines = await hover(page, time, y);
		if (lines)
			found[lines[lines.length - 1]] ??= y + 6;
	}
	return found;
}

const tests = {
	async "a report opens from a file, without errors and without a request"({browser, file}) {
		const page = await open(browser, file);
		await page.waitForTimeout(300);
		assert.deepEqual(page.faults, []);
		assert.equal(await page.locator("[data-failed]").count(), 0);
		assert.equal(await page.title(), "Leat report");
	},

	async "the headline figures are those of the JSON"({browser, file}) {
		const page = await open(browser, file);
		const shown = async (key) => (await page.locator(`[data-figure=${key}]`).innerText()).replace(/\u202f/g, " ");
		assert.match(await shown("samples_per_s"), /samples\/s\s+1,599\s+32,000 in 20 s/);
		assert.match(await shown("mb_per_s"), /MB\/s\s+192\s+2,000 batches/);
		assert.match(await shown("wait_share"), /20\.2 %[^]*limit: decode/);
		assert.match(await shown("p50"), /9\.8 ms[^]*p99 14\.1 ms\s+longest 31\.5 ms/);
		assert.match(await shown("first_batch_ms"), /341 ms[^]*listing 20 ms, index 110 ms, first byte 90 ms, decode 120 ms/);
		assert.match(await shown("device_use"), /6\d\.\d %/);
		assert.equal(await page.locator("h1").textContent(), run.sentence);
	},

	async "every section of the run is there, with its numbers"({browser, file}) {
		const page = await open(browser, file);
		for (const title of ["Timeline", "Stages", "Time per batch", "Latency of store.lab", "Epochs", "Parts measured alone", "What to try", "Ranks", "Settings", "Servers", "Queues", "Bad samples", "All counters"])
			assert.equal(await page.locator(`section[aria-label="${title}"]`).count(), 1, title);
		const stages = await page.locator('section[aria-label="Stages"] tbody tr').nth(1).innerText();
		assert.match(stages, /76\.0\u202f%[^]*1,620/);
		assert.equal(await page.locator('section[aria-label="Epochs"] tbody tr').count(), 5);
		assert.match(await page.locator('section[aria-label="What to try"]').innerText(), /1,598\s+2,500\s+2,410\s+4\u202f%/);
		const align = await page.locator('section[aria-label="Stages"] td.n').first().evaluate((cell) => { const s = getComputedStyle(cell); return s.textAlign + " " + s.fontVariantNumeric; });
		assert.equal(align, "right tabular-nums");
	},

	async "sections that the run lacks are left out"({browser, bare}) {
		const page = await open(browser, bare);
		assert.deepEqual(page.faults, []);
		assert.equal(await page.locator("section").count(), 0);
		assert.equal(await page.locator("[data-failed]").count(), 0);
	},

	async "the parts of a loop are told from parts measured alone"({browser}) {
		const page = await open(browser, make("loop.html", {parts: [{name: "Get batch", tag: "get batch", ms: 7.5, share: 0.75}]}, 20));
		assert.match(await page.locator('section[aria-label="The loop, per batch"]').innerText(), /Get batch[^]*7\.5/);
		assert.equal(await page.locator('section[aria-label="Parts measured alone"]').count(), 0);
		assert.deepEqual(page.faults, []);
	},

	async "the result of leat xray shows its run as well"({browser}) {
		const {parts, remedies, sentence, ...inner} = run, file = make("xray.html", {sentence, parts, remedies, limit: "decode", samples_per_s: 1598.96, seconds: 99, step_ms: 0, run: {...inner, stages: [{name: "read", busy_s: 2}, ...inner.stages]}}, 20);
		const page = await open(browser, file);
		assert.match((await page.locator("[data-figure=samples_per_s]").innerText()).replace(/\u202f/g, " "), /32,000 in 20 s/);
		assert.equal(await page.locator("[data-figure=wait_share]").count(), 0);
		assert.equal(await page.locator('section[aria-label="Stages"] tbody tr').nth(0).locator(".meter").count(), 0);
		for (const title of ["Stages", "Epochs", "Parts measured alone", "What to try"])
			assert.equal(await page.locator(`section[aria-label="${title}"]`).count(), 1, title);
		assert.deepEqual(page.faults, []);
	},

	async "names never become markup"({browser, file}) {
		const page = await open(browser, file);
		assert.equal(await page.locator("img, main script, main b:not(.tip b)").count(), 0);
		assert.match(await page.locator('section[aria-label="Bad samples"]').innerText(), /<\/script><img src=x onerror=alert\(1\)><b>bold<\/b>/);
		const refused = await page.evaluate(() => { try { document.body.insertAdjacentHTML("beforeend", "<i>x</i>"); return false; } catch { return true; } });
		assert.ok(refused, "trusted types let markup in");
	},

	async "the wheel zooms around the pointer"({browser, file}) {
		const page = await open(browser, file), at = await box(page), all = await range(page);
		await page.mouse.move(at.x + GUTTER + (at.width - GUTTER) / 4, at.y + 100);
		await page.mouse.wheel(0, -480);
		const [begin, end] = await range(page), around = all[1] / 4;
		assert.ok(Math.abs((end - begin) - all[1] / 4) < all[1] / 100, "length " + (end - begin));
		assert.ok(Math.abs(begin + (end - begin) / 4 - around) < all[1] / 100, "the time under the pointer moved");
		await page.mouse.wheel(0, 2000);
		assert.deepEqual(await range(page), all);
	},

	async "keys zoom and move"({browser, file}) {
		const page = await open(browser, file), all = await range(page), canvas = page.locator("canvas").first();
		await canvas.focus();
		assert.notEqual(await canvas.evaluate((element) => getComputedStyle(element).outlineStyle), "none");
		await page.keyboard.press("+");
		const zoomed = await range(page);
		assert.ok(Math.abs((zoomed[1] - zoomed[0]) - all[1] / 2) < 1e-6);
		await page.keyboard.press("ArrowRight");
		assert.ok((await range(page))[0] > zoomed[0]);
		await page.keyboard.press("ArrowLeft");
		assert.ok(Math.abs((await range(page))[0] - zoomed[0]) < 1e-6);
		await page.keyboard.press("-");
		assert.deepEqual(await range(page), all);
		for (let i = 0; i < 60; i++)
			await page.keyboard.press("+");
		const [begin, end] = await range(page);
		assert.ok(end - begin > 0 && end - begin < 1e-5);
		await page.keyboard.press("0");
		assert.deepEqual(await range(page), all);
	},

	async "dragging moves the view"({browser, file}) {
		const page = await open(browser, file), at = await box(page);
		await page.locator("canvas").first().focus();
		await page.keyboard.press("+");
		const before = await range(page);
		await page.mouse.move(at.x + 700, at.y + 100);
		await page.mouse.down();
		await page.mouse.move(at.x + 600, at.y + 100, {steps: 3});
		await page.mouse.up();
		const after = await range(page), moved = 100 / (at.width - GUTTER) * (before[1] - before[0]);
		assert.ok(Math.abs(after[0] - before[0] - moved) < moved / 50);
	},

	async "hovering names the tag and the span that are there"({browser, file}) {
		const page = await open(browser, file), lanes = await laneHeights(page, 3);
		const overall = await hover(page, 3, lanes.consumer);
		assert.match(overall[0], /^run batch [56]\d/, overall[0]);
		assert.match(overall[1], /^get batch [12]\d/, overall[1]);
		await page.locator("canvas").first().focus();
		await page.keyboard.press("Home");
		for (let i = 0; i < 10; i++)
			await page.keyboard.press("+");
		await page.keyboard.press("Home");
		const [begin, end] = await range(page);
		assert.ok(begin === 0 && end > 0.011 && end < 0.03, "view " + begin + " to " + end);
		// Batch 1 begins at 10 ms; make_report.c says what follows.
		for (const [time, lane, text] of [[0.0105, "consumer", "get batch"], [0.0125, "consumer", "to device"], [0.0135, "consumer", "run batch"],
			[0.0101, "worker 0", "fetch: read"], [0.0106, "worker 0", "decode: decode + resize"], [0.0119, "worker 1", "collate"]]) {
			const lines = await hover(page, Math.min(time, end), lanes[lane]);
			assert.equal(lines[0], text, lane + " at " + time + ": " + lines);
		}
		const lines = await hover(page, 0.0105, lanes.consumer);
		assert.deepEqual(lines.slice(1).map((line) => line.replace(/\u202f/g, " ")), ["2 ms, from 0.010000 s", "batch 1", "consumer"]);
		assert.match((await hover(page, 0.0014, lanes["worker 0"]))[0], /^transform: <\/script><img/);
	},

	async "curves are shown below the lanes, and hovering gives their value"({browser, file}) {
		const page = await open(browser, file), {height} = await box(page), seen = new Set();
		for (let y = 60; y < height; y += 6) {
			const lines = await hover(page, 3, y);
			if (lines)
				seen.add(lines[0].replace(/ [\d.,]+$/, ""));
		}
		for (const name of ["CPU %", "rss MB", "gpu %", "disk MB/s"])
			assert.ok(seen.has(name), name + " is not in " + [...seen]);
		assert.ok(!seen.has("network MB/s"), "a curve that is always zero takes room");
	},

	async "stages can be shown instead of threads"({browser, file}) {
		const page = await open(browser, file);
		await page.getByRole("button", {name: "One row per kind of work"}).click();
		const lanes = await laneHeights(page, 3);
		assert.deepEqual(Object.keys(lanes).slice(0, 7), ["get batch", "to device", "run batch", "fetch", "decode", "transform", "collate"]);
	},

	async "the timeline is there as a table too"({browser, file}) {
		const page = await open(browser, file);
		await page.locator("summary", {hasText: "The timeline as a table"}).click();
		const row = await page.locator("table", {hasText: "share of the run"}).locator("tbody tr").first().innerText();
		assert.match(row.replace(/\u202f/g, " "), /consumer\s+get batch\s+2,000\s+4\.02 s\s+20\.1 %\s+6 ms/);
		assert.match(await page.locator("canvas").first().getAttribute("aria-label"), /Plus and minus zoom/);
	},

	async "both themes are readable and differ"({browser, file}) {
		const light = await open(browser, file), dark = await open(browser, file, {colorScheme: "dark"});
		const [a, b] = [await light.screenshot({path: folder + "/light.png"}), await dark.screenshot({path: folder + "/dark.png"})];
		assert.notDeepEqual(a, b);
		checkContrast(await colors(light));
		checkContrast(await colors(dark));
		checkVisions(await colors(light));
		checkVisions(await colors(dark));
		await light.locator("#theme").click();
		assert.deepEqual(await colors(light), await colors(dark));
		assert.equal(await light.locator("#theme").getAttribute("aria-pressed"), "true");
	},

	async "the canvas has the colours of the theme"({browser, file}) {
		for (const colorScheme of ["light", "dark"]) {
			const page = await open(browser, file, {colorScheme}), panel = (await colors(page))["--panel"];
			const pixel = await page.locator("canvas").first().evaluate((canvas) => [...canvas.getContext("2d").getImageData(1, canvas.height - 2, 1, 1).data].slice(0, 3));
			assert.equal("#" + pixel.map((c) => c.toString(16).padStart(2, "0")).join(""), panel);
		}
	},

	async "on paper it is light, without buttons, with all tables open"({browser, file}) {
		const page = await open(browser, file, {colorScheme: "dark"});
		await page.emulateMedia({media: "print"});
		await page.waitForSelector("html[data-theme=light]");
		assert.equal(await page.locator("button:visible").count(), 0);
		assert.equal(await page.locator("details:not([open])").count(), 0);
		assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(255, 255, 255)");
		await page.emulateMedia({media: "screen"});
		await page.waitForSelector("html[data-theme=dark]");
		assert.equal(await page.locator("details[open]").count(), 0);
		const pdf = await page.pdf({path: folder + "/print.pdf", format: "A4"});
		assert.ok(pdf.length > 20000);
	},

	async "a narrow window does not scroll sideways"({browser, file}) {
		const page = await open(browser, file, {viewport: {width: 400, height: 800}});
		assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
	},

	async "a comparison shows both runs and its sentence"({browser, file}) {
		const slower = {...run, samples_per_s: 1300, epochs: run.epochs.map((epoch) => ({...epoch, seconds: epoch.seconds * 1.25}))};
		const other = make("slower.html", slower, 300), out = folder + "/compared.html";
		execFileSync(build + "/leat", ["report", "--compare", file, other, "-o", out]);
		const page = await open(browser, out);
		assert.match(await page.locator("h1").innerText(), /^B is 20 % slower than A: 12\d\d instead of 15\d\d samples\/s/);
		assert.equal(await page.locator("canvas").count(), 2);
		assert.equal(await page.locator("[data-failed]").count(), 0);
		assert.deepEqual(page.faults, []);
		await page.locator("canvas").nth(1).focus();
		await page.keyboard.press("+");
		const [first, second] = [await range(page, 0), await range(page, 1)];
		assert.ok(first[1] > 19 && second[1] - second[0] < 2);
	},

	async "ten million spans make a small page that zooms like any other"({browser}) {
		const file = make("large.html", run, 150000), size = statSync(file).size;
		assert.ok(size < 50e6 && size < 4e6, size + " bytes");
		const begin = performance.now(), page = await open(browser, file), took = (performance.now() - begin) / 1000;
		console.log("      opened in " + took.toFixed(2) + " s");
		if (how === "time")
			assert.ok(took < 3, "it took " + took + " s to open");
		assert.deepEqual(page.faults, []);
		assert.match(await page.locator("section.timeline").innerText(), /10,050,000 spans/);
		const all = await range(page);
		await page.locator("canvas").first().focus();
		await page.keyboard.press("+");
		assert.ok(Math.abs((await range(page))[1] - (await range(page))[0] - all[1] / 2) < 1e-3);
		const lanes = await laneHeights(page, 700), [overall] = await hover(page, 700, lanes.consumer);
		assert.match(overall, /^run batch [56]\d/);
	},
};

mkdirSync(folder, {recursive: true});
const bare = folder + "/bare.html", plainRun = folder + "/plain.json";
writeFileSync(plainRun, "{}");
execFileSync(build + "/leat", ["report", plainRun, "-o", bare]);
const file = make("report.html", run, 2000);
assert.ok(readFileSync(file, "utf8").length > 10000);

const browser = await launch(build);
const good = await runAll(browser, tests, {file, bare});
await browser.close();
process.exit(good ? 0 : 1);
