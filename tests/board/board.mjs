// board.mjs BUILD: what the board promises, tried in a browser and by raw requests. See board.sh.
//
// Commands of the project wait for files ("gates") that the tests make, so a build is seen in each of its states however
// slow the machine is.
import assert from "node:assert/strict";
import {spawn} from "node:child_process";
import {mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync} from "node:fs";
import {connect} from "node:net";
import {deflateSync, crc32} from "node:zlib";
import {contrast, launch, newPage, runAll} from "../page/browser.mjs";

const [build] = process.argv.slice(2);
const folder = build + "/board", project = folder + "/project", gates = folder + "/gates";
const children = [];

// ---- the project ----

function png(width, height) {
	const crc = (bytes) => { const out = Buffer.alloc(4); out.writeUInt32BE(crcOf(bytes)); return out; };
	const chunk = (kind, data) => { const body = Buffer.concat([Buffer.from(kind), data]), size = Buffer.alloc(4); size.writeUInt32BE(data.length); return Buffer.concat([size, body, crc(body)]); };
	const head = Buffer.alloc(13);
	head.writeUInt32BE(width, 0);
	head.writeUInt32BE(height, 4);
	head.set([8, 2, 0, 0, 0], 8);
	const rows = Buffer.alloc(height * (1 + 3 * width), 120);
	for (let y = 0; y < height; y++)
		rows[y * (1 + 3 * width)] = 0;
	return Buffer.concat([Buffer.from("\x89PNG\r\n\x1a\n", "latin1"), chunk("IHDR", head), chunk("IDAT", deflateSync(rows)), chunk("IEND", Buffer.alloc(0))]);
}

function crcOf(bytes) {
	if (crc32)
		return crc32(bytes);
	let crc = 0xffffffff;
	for (const byte of bytes) {
		crc ^= byte;
		for (let bit = 0; bit < 8; bit++)
			crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
	}
	return (crc ^ 0xffffffff) >>> 0;
}

// A page that tries what it must not be able to do, and shows how it went.
const HOSTILE = `<!doctype html><title>report</title><body><h1 id="out">script runs</h1><script>
const out = document.getElementById("out");
const tell = (text) => { out.textContent += "; " + text; };
try { tell("cookie " + document.cookie.length); } catch (error) { tell("no cookies"); }
try { parent.document.title = "stolen"; tell("parent changed"); } catch (error) { tell("no parent"); }
fetch("/api/runs").then(() => tell("read the board"), () => tell("no network"));
</script>`;
const SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="60" height="40"><rect width="60" height="40" fill="teal"/><script>alert(1)</script></svg>';

function yaml(rate, note = "") {
	const wait = (name) => "while [ ! -e \"" + gates + "/" + name + "\" ]; do sleep 0.02; done";
	return `sources:
  numbers: numbers.txt
  plot: plot.png
  pages: pages
steps:
  square:
    run: |
      ${wait("square-$n")}; cat "$numbers"; echo $((n * n)) > "$out"
    in: numbers
    slices: {n: 1..3}
  sum:
    run: cat "$square"/* > "$out" ${note}
    in: square
  plots:
    run: mkdir "$out" && cp "$plot" "$out/curve.png" && cp "$pages"/* "$out"
    in: [plot, pages, sum]
  train:
    run: |
      ${wait("train")}; echo "{\\"loss\\":$loss,\\"name\\":\\"a\\"}" > "$(dirname "$LEAT_STEP")/metrics.json"; echo "$rate" > "$out"
    in: sum
    params: {rate: ${rate}, loss: ${rate * 5}}
  broken:
    run: |
      echo reading; printf '\\033[31mValueError\\033[0m no channel <b>F7</b>\\n' >&2; exit 3
    in: sum
  after:
    run: cp "$broken" "$out"
    in: broken
`;
}

function makeProject() {
	rmSync(folder, {recursive: true, force: true});
	mkdirSync(project + "/pages", {recursive: true});
	mkdirSync(gates);
	writeFileSync(project + "/numbers.txt", "one two three\n");
	writeFileSync(project + "/plot.png", png(80, 50));
	writeFileSync(project + "/pages/report.html", HOSTILE);
	writeFileSync(project + "/pages/shape.svg", SVG);
	writeFileSync(project + "/pages/scores.csv", 'subject,score\n1,0.5\n"two, too",0.75\n');
	writeFileSync(project + "/leat.yaml", yaml(0.1));
}

function openGate(name) {
	writeFileSync(gates + "/" + name, "");
}

// A build; ends with its exit status.
function startBuild(...targets) {
	const child = spawn(build + "/leat", ["build", "--keep-going", ...targets], {cwd: project, stdio: "ignore"});
	children.push(child);
	return Object.assign(new Promise((resolve) => child.on("exit", resolve)), {child});
}

// ---- the board ----

// {url, port, stop}
async function startBoard(token) {
	const env = {...process.env, ...(token ? {LEAT_BOARD_TOKEN: token} : {})};
	const child = spawn(build + "/leat", ["board", "--port", "0", project], {stdio: ["ignore", "pipe", "inherit"], env});
	children.push(child);
	const url = await new Promise((resolve, reject) => {
		child.stdout.once("data", (text) => resolve(String(text).trim()));
		child.once("exit", () => reject(new Error("the board ended")));
	});
	const stop = () => new Promise((resolve) => {
		child.removeAllListeners("exit");
		child.once("exit", resolve);
		child.kill("SIGTERM");
	});
	return {url, port: Number(new URL(url).port), stop};
}

async function show(browser, url, options = {}) {
	const page = await newPage(browser, options, (asked) => asked.startsWith(new URL(url).origin));
	await page.goto(url);
	await page.waitForSelector("html[data-ready]");
	return page;
}

// Playwright's waitForFunction needs eval, which the page's policy forbids.
async function until(page, holds, given) {
	const deadline = Date.now() + 60000;
	while (!await page.evaluate(holds, given)) {
		assert.ok(Date.now() < deadline, "never: " + holds + "; the page shows: " + (await page.locator("body").innerText()).slice(0, 2000));
		await new Promise((resolve) => setTimeout(resolve, 50));
	}
}

function node(step) {
	return `svg.graph a[data-step="${step}"]`;
}

async function waitForState(page, step, state, word) {
	await until(page, ([selector, wanted, text]) => {
		const found = document.querySelector(selector);
		return found && found.dataset.state === wanted && found.getAttribute("aria-label").includes(text);
	}, [node(step), state, word]);
}

// Sends bytes as they are; the whole answer.
function raw(port, text) {
	return new Promise((resolve, reject) => {
		const socket = connect(port, "127.0.0.1"), parts = [];
		socket.on("data", (part) => parts.push(part));
		socket.on("error", (error) => (parts.length ? null : reject(error)));
		socket.on("close", () => resolve(Buffer.concat(parts).toString("latin1")));
		socket.write(text);
	});
}

function request(port, path, {method = "GET", host = "127.0.0.1:" + port, headers = ""} = {}) {
	return raw(port, method + " " + path + " HTTP/1.1\r\nHost: " + host + "\r\n" + headers + "Connection: close\r\n\r\n");
}

function codeOf(answer) {
	return Number(answer.split(" ")[1]);
}

function blobs() {
	const cas = project + "/.leat/cas";
	return readdirSync(cas).flatMap((two) => readdirSync(cas + "/" + two));
}

// Functions of the page that need no browser.
function pageFunctions() {
	const root = new URL("../../src/", import.meta.url), files = ["xray/page/format.js", "board/page/files.js", "board/page/state.js"];
	const source = files.map((file) => readFileSync(new URL(file, root), "utf8")).join("\n");
	return new Function(source + "; return {plainLog, tableRows, metricText, changeText, compareNote, endOf, totalsOf};")();
}

async function runNames(url) {
	return (await (await fetch(url + "api/runs")).json()).runs.map((run) => run.run);
}

// ---- tests, in this order: the project grows ----

const tests = {
	async "a project that was never built is shown"({browser, board}) {
		const page = await show(browser, board.url);
		assert.match(await page.locator("h1").innerText(), /^6 steps, not built yet\.$/);
		assert.equal(await page.locator("svg.graph a").count(), 6);
		assert.match(await page.locator(node("train")).getAttribute("aria-label"), /not built/);
		assert.match(await page.locator("#source").innerText(), /project$/);
		assert.deepEqual(page.faults, []);
	},

	async "a build is seen as it goes on, and a failed step's log is one click away"({browser, board}) {
		const page = await show(browser, board.url), ended = startBuild();
		await until(page, () => document.querySelector("h1").textContent.startsWith("Building: 0 of 8 actions done"));
		await waitForState(page, "square", "running", "0 of 3");
		await waitForState(page, "train", "waiting", "waiting");
		await page.waitForSelector("text=Running now");
		openGate("square-1");
		await waitForState(page, "square", "running", "1 of 3");
		openGate("square-2");
		openGate("square-3");
		await waitForState(page, "square", "done", "done");
		await waitForState(page, "broken", "failed", "failed");
		await waitForState(page, "after", "skipped", "skipped");
		await waitForState(page, "train", "running", "running");
		// While it still runs: one click on the list, too.
		await page.locator('[data-failed-step="broken"] summary').click();
		await until(page, () => document.querySelector("[data-failed-step] pre").textContent.includes("ValueError no channel <b>F7</b>"));
		openGate("train");
		assert.notEqual(await ended, 0);
		await until(page, () => !document.querySelector("h1").textContent.startsWith("Building"));
		assert.ok(await page.locator('[data-failed-step="broken"] details').evaluate((box) => box.open), "a log that was opened stays open");
		await page.waitForSelector("td .state.failed");
		await waitForState(page, "broken", "failed", "failed");
		await page.locator(node("broken")).click();
		await until(page, () => document.title.startsWith("Step broken"));
		await until(page, () => document.querySelector("pre")?.textContent === "reading\nValueError no channel <b>F7</b>\n");
		assert.match(await page.locator(".failure > p").innerText(), /exited with 3|exit status 3|status 3/);
		assert.deepEqual(page.faults, []);
	},

	async "pictures, tables and pages of an output are shown, and cannot touch the board"({browser, board}) {
		const page = await show(browser, board.url);
		await page.locator(node("plots")).click();
		await page.locator("main a", {hasText: /^plots-\d+$/}).click();
		const picture = page.locator('img[alt="curve.png"]');
		await picture.waitFor();
		await until(page, () => [...document.querySelectorAll("img")].length === 2 && [...document.querySelectorAll("img")].every((one) => one.complete && one.naturalWidth));
		assert.deepEqual(await picture.evaluate((one) => [one.naturalWidth, one.naturalHeight]), [80, 50]);
		await page.locator('[data-file="scores.csv"] table').waitFor();
		assert.match(await page.locator('[data-file="scores.csv"]').innerText(), /two, too\s+0\.75/);
		const frame = page.frameLocator("iframe");
		await page.locator("iframe").scrollIntoViewIfNeeded();
		await frame.locator("text=no network").waitFor();
		assert.equal(await frame.locator("h1").innerText(), "script runs; no cookies; no parent; no network");
		assert.doesNotMatch(await page.title(), /stolen/);
		// The page's own policy is why; its refusals are the only noise.
		const noise = page.faults.filter((fault) => !/^console: .*(Content Security Policy|sandbox|Sandbox)/s.test(fault));
		assert.deepEqual(noise, []);
	},

	async "an action names its inputs with their makers, its fields, and its log"({browser, board}) {
		const page = await show(browser, board.url);
		await page.locator(node("square")).click();
		await until(page, () => document.title.startsWith("Step square"));
		assert.equal(await page.locator("main tbody a").count(), 3);
		await page.locator("main a", {hasText: /^square-1$/}).click();
		await until(page, () => document.querySelector("details.log pre")?.textContent === "one two three\n");
		assert.match(await page.locator('section[aria-label="Key"]').innerText(), /slice\.n\s+\d/);
		await page.goto(board.url + "#/step/sum");
		await page.locator("main a", {hasText: /^sum-\d+$/}).click();
		const inputs = page.locator('section[aria-label="Inputs"]');
		await inputs.locator("a", {hasText: /^square-\d$/}).first().waitFor();
		assert.equal(await inputs.locator("a", {hasText: /^square-\d$/}).count(), 3);
		await inputs.locator("a", {hasText: /^square-2$/}).click();
		await until(page, () => document.querySelector("h1").textContent.startsWith("square-2"));
		assert.deepEqual(page.faults, []);
	},

	async "two runs are compared by params and metrics"({browser, board}) {
		writeFileSync(project + "/leat.yaml", yaml(0.2));
		assert.notEqual(await startBuild(), 0);
		const page = await show(browser, board.url);
		await page.waitForSelector("input[type=checkbox]");
		assert.ok(await page.locator("button", {hasText: "Compare"}).isDisabled());
		for (const box of await page.locator("input[type=checkbox]").all())
			await box.check();
		await page.locator("button", {hasText: "Compare"}).click();
		const train = page.locator('[data-compare="train"]');
		await train.waitFor();
		const text = (await train.innerText()).replace(/\s+/g, " ");
		assert.match(text, /loss 0\.5 1 \+100/);
		assert.match(text, /rate 0\.1 0\.2/);
		assert.equal(await page.locator('[data-compare="square"] .differs').count(), 0);
		assert.deepEqual(page.faults, []);
	},

	async "a page of a run follows that run"({browser, board}) {
		const [newest] = await runNames(board.url), page = await show(browser, board.url + "#/run/" + newest);
		await waitForState(page, "square", "done", "reused");
		await waitForState(page, "train", "done", "done");
		await page.locator(node("broken")).click();
		await until(page, () => document.querySelector("pre")?.textContent.includes("ValueError"));
		assert.deepEqual(page.faults, []);
	},

	async "a result that is the same again is counted once"({browser, board}) {
		writeFileSync(project + "/leat.yaml", yaml(0.2, "; true"));
		assert.notEqual(await startBuild(), 0);
		const page = await show(browser, board.url);
		await page.locator("tbody tr", {hasText: "1 ran with the same result, 5 reused, 1 failed, 1 skipped"}).locator("a").click();
		await page.waitForSelector("dl.figures");
		const figures = (await page.locator("dl.figures").innerText()).replace(/\s+/g, " ");
		assert.match(figures, /ran 1 1 with the same result reused 5 /);
		assert.deepEqual(page.faults, []);
	},

	async "a build that was stopped is shown as stopped"({browser, board}) {
		rmSync(gates + "/train");
		writeFileSync(project + "/leat.yaml", yaml(0.3));
		const page = await show(browser, board.url), ended = startBuild("train");
		await waitForState(page, "train", "running", "running");
		await until(page, () => document.querySelector("h1").textContent === "Building: 4 of 5 actions done.");
		for (let stopped = false; !stopped;) { // the second ^C ends what runs
			ended.child.kill("SIGINT");
			stopped = await Promise.race([ended.then(() => true), new Promise((resolve) => setTimeout(resolve, 100))]);
		}
		await page.waitForSelector("td .state.stopped");
		const [newest] = await runNames(board.url);
		await page.goto(board.url + "#/run/" + newest);
		await until(page, () => /state\s+stopped/.test(document.querySelector("dl.figures")?.innerText));
		// Only what its target needs: five actions of three steps.
		assert.match(await page.locator("dl.figures").innerText(), /actions\s+5\s/);
		assert.equal(await page.locator("svg.graph a").count(), 3);
		openGate("train");
		assert.deepEqual(page.faults, []);
	},

	async "logs, tables and metrics as text"() {
		const {plainLog, tableRows, metricText, changeText, compareNote, endOf, totalsOf} = pageFunctions();
		assert.equal(plainLog("10 %\r50 %\r\u001b[1m100 %\u001b[0m\r\nnext\r\n\r\nlast\rx"), "100 %\nnext\n\nx");
		assert.equal(plainLog("x\r".repeat(1 << 20)).length, 1); // takes hours if it is quadratic
		assert.equal(tableRows("Dear reader,\nall is well", "letter", false), null);
		assert.equal(tableRows("a,b\n1,2\n3", "scores", true).rows.length, 3);
		assert.equal(tableRows("a,b\n1,2\n3", "scores", false), null);
		assert.equal(metricText({n: 1, sum: 0.987654}), "0.987654");
		assert.equal(metricText({n: 2, sum: -3, min: -2.5, max: -0.5}), "\u22121.5 (\u22122.5 to \u22120.5)");
		assert.match(changeText({n: 1, sum: -2}, {n: 1, sum: -1}), /^\+50\.0/);
		assert.match(changeText({n: 1, sum: -1}, {n: 1, sum: -2}), /^\u2212100/);
		assert.equal(compareNote({actions: 1500, counted: 400}, {actions: 2, counted: 2}, 0, 3), "Metrics are over 400 of 1,500 actions in A, 2 of 5 actions in B.");
		assert.equal(compareNote({actions: 2, counted: 2}, {actions: 2, counted: 2}, 0, 0), null);
		assert.equal(compareNote({actions: 2, counted: 2}, undefined, 0, 0), "Only in run A.");
		assert.match(compareNote(undefined, {actions: 2, counted: 2}, 2, 0), /^Run A reused results/);
		const end = {actions: 5, cached: 1, ran: 3, same: 1, failed: 0, skipped: 0};
		assert.equal(totalsOf({end}).ran, 2);
		assert.deepEqual([endOf(end), endOf({...end, actions: 4}), endOf({...end, state: "broken"}), endOf({...end, failed: 1})], ["stopped", "done", "broken", "failed"]);
	},

	async "light and dark follow the system or the button, and states stand out in both"({browser, board}) {
		for (const colorScheme of ["light", "dark"]) {
			const page = await show(browser, board.url, {colorScheme});
			assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), colorScheme);
			const colors = await page.evaluate(() => Object.fromEntries(["--panel", "--page", "--sunk", "--ink", "--soft", "--accent", "--good", "--bad"].map((name) =>
				[name, getComputedStyle(document.documentElement).getPropertyValue(name).trim()])));
			for (const name of ["--accent", "--good", "--bad", "--soft", "--ink"])
				for (const background of ["--panel", "--page"])
					assert.ok(contrast(colors[name], colors[background]) >= 4.5, name + " on " + background + " in " + colorScheme);
			assert.ok(contrast(colors["--ink"], colors["--sunk"]) >= 4.5);
			await page.locator("#theme").click();
			assert.notEqual(await page.evaluate(() => document.documentElement.dataset.theme), colorScheme);
			await page.screenshot({path: folder + "/" + colorScheme + ".png"});
			assert.deepEqual(page.faults, []);
		}
	},

	async "it fits a phone, and works by keyboard"({browser, board}) {
		const page = await show(browser, board.url, {viewport: {width: 390, height: 800}});
		assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
		await page.locator(node("sum")).focus();
		await page.keyboard.press("Enter");
		await until(page, () => document.title.startsWith("Step sum"));
		assert.deepEqual(page.faults, []);
	},

	async "unknown things are refused with a sentence"({browser, board}) {
		const page = await show(browser, board.url + "#/action/sum-99999");
		assert.match(await page.locator("main").innerText(), /no action sum-99999/);
		for (const hash of ["#/run/none", "#/step/none", "#/compare/a/b"]) {
			await page.goto(board.url + hash);
			await until(page, () => document.querySelector("[role=alert]"));
		}
	},

	async "only GET and HEAD are answered"({board}) {
		for (const method of ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "BREW"]) {
			const answer = await request(board.port, "/api/runs", {method, headers: "Content-Length: 0\r\n"});
			assert.equal(codeOf(answer), 405, method);
			assert.match(answer, /\r\nAllow: GET, HEAD\r\n/);
		}
		const head = await request(board.port, "/api/runs", {method: "HEAD"});
		assert.equal(codeOf(head), 200);
		assert.equal(head.split("\r\n\r\n")[1], "");
		assert.match(await raw(board.port, "GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"), /^(HTTP\/1\.1 [245]\d\d|$)/);
	},

	async "no path leads out of the store"({board}) {
		const [hash] = blobs(), secret = readFileSync("/etc/passwd", "latin1").slice(0, 20);
		const paths = ["/../../../../etc/passwd", "/blob/../../../../../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/blob/..%2f..%2fleat.yaml", "//etc/passwd", "/blob//etc/passwd",
			"/blob/" + hash + "/../../leat.yaml", "/blob/" + hash + "%00.png", "/blob/" + hash.toUpperCase() + "X", "/api/run/..%2f..%2fetc%2fpasswd", "/api/run/../format",
			"/blob/%", "/blob/%zz", "/leat.yaml", "/.leat/format", "/api/run/" + "a".repeat(20000), "/\\..\\..\\etc\\passwd", "http://127.0.0.1/etc/passwd", "/blob/" + hash + "?../../etc/passwd"];
		for (const path of paths) {
			const answer = await request(board.port, path);
			assert.ok(path.includes("?") ? codeOf(answer) === 200 : codeOf(answer) >= 400, path + ": " + answer.slice(0, 40));
			assert.ok(!answer.includes(secret), path);
			assert.ok(!answer.includes("sources:"), path);
		}
		assert.equal(codeOf(await request(board.port, "/blob/" + hash)), 200);
	},

	async "other hosts and other sites are refused"({board}) {
		for (const host of ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "10.0.0.1", ""])
			assert.ok([400, 403].includes(codeOf(await request(board.port, "/api/runs", {host}))), host);
		assert.equal(codeOf(await raw(board.port, "GET /api/runs HTTP/1.0\r\n\r\n")), 403);
		for (const host of ["localhost:1", "127.0.0.1", "[::1]:9"])
			assert.equal(codeOf(await request(board.port, "/api/runs", {host})), 200, host);
		assert.equal(codeOf(await request(board.port, "/api/runs", {headers: "Sec-Fetch-Site: cross-site\r\n"})), 403);
		assert.equal(codeOf(await request(board.port, "/", {headers: "Sec-Fetch-Site: cross-site\r\n"})), 200);
	},

	async "every answer has its policy, and files are in a sandbox"({board}) {
		const page = await request(board.port, "/");
		assert.match(page, /\r\nContent-Security-Policy: default-src 'none'; script-src 'sha256-[^;]*; style-src 'sha256-[^;]*; connect-src 'self'[^\r]*frame-ancestors 'none'\r\n/);
		for (const hash of blobs()) {
			const answer = await request(board.port, "/blob/" + hash, {method: "HEAD"});
			assert.match(answer, /\r\nContent-Security-Policy: sandbox/);
			assert.match(answer, /\r\nX-Content-Type-Options: nosniff\r\n/);
			assert.doesNotMatch(answer, /Access-Control/);
		}
	},

	async "hostile requests do no harm, and thousands of connections leave room"({board}) {
		const junk = ["\0\0\0\0", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "GET / HTTP/1.1\r\nHost: localhost\r\n" + "X: y\r\n".repeat(20000) + "\r\n", "GET /" + "a/".repeat(100000) + " HTTP/1.1\r\n\r\n",
			"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n", "GET /?" + "a=b&".repeat(50000) + " HTTP/1.1\r\nHost: localhost\r\n\r\n",
			"GET /?token=" + "x".repeat(9000) + " HTTP/1.1\r\nHost: localhost\r\nCookie: " + "a=b;".repeat(3000) + "\r\nConnection: close\r\n\r\n"];
		for (const text of junk)
			await new Promise((resolve) => {
				const socket = connect(board.port, "127.0.0.1");
				socket.on("error", () => {});
				socket.on("close", resolve);
				socket.on("data", () => socket.destroy());
				socket.end(Buffer.from(text, "latin1"));
			});
		// In waves, as many as a process may have open; all of them say nothing.
		for (let wave = 0; wave < 10; wave++) {
			const sockets = Array.from({length: 300}, () => connect(board.port, "127.0.0.1").on("error", () => {}));
			await Promise.all(sockets.map((socket) => new Promise((resolve) => { socket.once("connect", resolve); socket.once("close", resolve); })));
			sockets.forEach((socket) => socket.destroy());
		}
		let code = 0;
		for (let i = 0; i < 100 && code !== 200; i++)
			code = codeOf(await request(board.port, "/api/runs").catch(() => "x 0"));
		assert.equal(code, 200);
	},

	async "more event streams than allowed are told so, and the page still answers"({board}) {
		const sockets = [], codes = [];
		for (let i = 0; i < 30; i++) {
			const socket = connect(board.port, "127.0.0.1");
			sockets.push(socket);
			codes.push(await new Promise((resolve) => {
				socket.once("data", (text) => resolve(codeOf(String(text))));
				socket.once("close", () => resolve(503)); // no connection was free
				socket.on("error", () => {});
				socket.write("GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
			}));
		}
		assert.equal(codes.filter((code) => code === 200).length + codes.filter((code) => code === 503).length, 30);
		assert.ok(codes.includes(200) && codes.includes(503));
		assert.equal(codeOf(await request(board.port, "/api/runs")), 200);
		sockets.forEach((socket) => socket.destroy());
	},

	async "with a token nothing is shown without it, and the page keeps it in a cookie"({browser}) {
		const board = await startBoard("a-token-of-enough-length"), origin = "http://127.0.0.1:" + board.port;
		assert.equal(board.url, origin + "/?token=a-token-of-enough-length");
		for (const path of ["/", "/api/runs", "/blob/" + blobs()[0], "/api/events", "/?token=a-token-of-enough-lengtH", "/?token=", "/api/runs?token=a"])
			assert.equal(codeOf(await request(board.port, path)), 401, path);
		assert.equal(codeOf(await request(board.port, "/api/runs", {headers: "Cookie: leat_board_" + board.port + "=wrong\r\n"})), 401);
		assert.match(await request(board.port, "/?token=a-token-of-enough-length"), /\r\nSet-Cookie: [^\r]*; HttpOnly; SameSite=Strict\r\n/);
		const page = await show(browser, board.url);
		assert.equal(page.url(), origin + "/");
		assert.equal(await page.evaluate(() => document.cookie), "");
		await page.reload();
		await page.waitForSelector(node("train"));
		assert.deepEqual(page.faults, []);
		await board.stop();
	},

	async "a board that is stopped ends its streams"({board}) {
		const socket = connect(board.port, "127.0.0.1"), closed = new Promise((resolve) => socket.on("close", resolve));
		socket.on("error", () => {});
		await new Promise((resolve, reject) => {
			socket.once("data", resolve);
			socket.once("close", () => reject(new Error("no connection was free, though none is used any more")));
			socket.write("GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
		});
		assert.equal(await board.stop(), 0);
		await closed;
	},
};

makeProject();
const board = await startBoard(), browser = await launch(build);
const good = await runAll(browser, tests, {board});
await browser.close();
children.filter((child) => child.exitCode === null && child.signalCode === null).forEach((child) => child.kill("SIGKILL"));
process.exit(good ? 0 : 1);
