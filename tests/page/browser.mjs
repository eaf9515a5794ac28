// Pages in Chromium: opens them, and watches what they must not do.
import {execFileSync} from "node:child_process";
import {createRequire} from "node:module";
import {pathToFileURL} from "node:url";

export async function launch(build) {
	const {chromium} = createRequire(build + "/page-modules/")("playwright-core");
	const path = execFileSync("sh", ["-c", "command -v chromium"], {encoding: "utf8"}).trim();
	return chromium.launch({executablePath: path, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]});
}

// A page that is not open yet. `faults` collects errors, dialogs, and requests for which isOwn(url) is false.
export async function newPage(browser, options, isOwn) {
	const context = await browser.newContext({viewport: {width: 1280, height: 900}, colorScheme: "light", ...options});
	const page = await context.newPage();
	page.faults = [];
	page.on("console", (message) => ["error", "warning"].includes(message.type()) && page.faults.push("console: " + message.text()));
	page.on("pageerror", (error) => page.faults.push("error: " + error.message));
	page.on("dialog", (dialog) => { page.faults.push("dialog: " + dialog.message()); dialog.dismiss(); });
	page.on("request", (request) => !isOwn(request.url()) && !request.url().startsWith("data:") && page.faults.push("request: " + request.url()));
	return page;
}

// A file as a page that is ready.
export async function open(browser, file, options = {}) {
	const url = pathToFileURL(file).href, page = await newPage(browser, options, (asked) => asked === url);
	await page.goto(url, {waitUntil: "load"});
	await page.waitForSelector("html[data-ready]", {timeout: 60000});
	return page;
}

export async function range(page, which = 0) {
	return page.locator(".range").nth(which).evaluate((element) => [Number(element.dataset.begin), Number(element.dataset.end)]);
}

function luminance(hex) {
	const [r, g, b] = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16) / 255).map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
	return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

export function contrast(a, b) {
	const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
	return (high + 0.05) / (low + 0.05);
}

// Calls all tests, by name, and tells how many passed. True: all.
export async function runAll(browser, tests, given) {
	let passed = 0, failed = 0;
	for (const [name, test] of Object.entries(tests)) {
		try {
			await test({browser, ...given});
			passed++;
			console.log("ok    " + name);
		} catch (error) {
			failed++;
			console.log("FAIL  " + name + "\n      " + String(error.stack || error).replace(/\n/g, "\n      "));
		}
		for (const context of browser.contexts())
			await context.close();
	}
	console.log(passed + " passed, " + failed + " failed");
	return !failed;
}
