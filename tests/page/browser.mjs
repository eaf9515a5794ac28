// Pages in Chromium: opens them, and watches what they must not do.
import {execFileSync} from "node:child_process";
import {createRequire} from "node:module";
import {pathToFileURL} from "node:url";

export async function launch(build) {
	const {chromium} = createRequire(build + "/page-modules/")("playwright-core");
	const path = execFileSync("sh", ["-c", "command -v chromium"], {encoding: "utf8"}).trim();
	return chromium.launch({executablePath: path, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]});
}

// A page that is ready. `faults` collects errors, dialogs, and requests other than for the page itself.
export async function open(browser, file, options = {}) {
	const context = await browser.newContext({viewport: {width: 1280, height: 900}, colorScheme: "light", ...options});
	const page = await context.newPage(), url = pathToFileURL(file).href;
	page.faults = [];
	page.on("console", (message) => ["error", "warning"].includes(message.type()) && page.faults.push("console: " + message.text()));
	page.on("pageerror", (error) => page.faults.push("error: " + error.message));
	page.on("dialog", (dialog) => { page.faults.push("dialog: " + dialog.message()); dialog.dismiss(); });
	page.on("request", (request) => request.url() !== url && !request.url().startsWith("data:") && page.faults.push("request: " + request.url()));
	await page.goto(url, {waitUntil: "load"});
	await page.waitForSelector("html[data-ready]", {timeout: 60000});
	return page;
}

export async function range(page, which = 0) {
	return page.locator(".range").nth(which).evaluate((element) => [Number(element.dataset.begin), Number(element.dataset.end)]);
}
