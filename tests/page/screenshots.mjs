// screenshots.mjs BUILD PAGE FOLDER: pictures of a report for the README and the docs; see scripts/screenshots.
import {launch, open, range} from "./browser.mjs";

const [build, file, folder] = process.argv.slice(2);
const browser = await launch(build);

// The top of the page, in one theme.
async function whole(name, colorScheme) {
	const page = await open(browser, file, {colorScheme, viewport: {width: 1120, height: 900}});
	await page.screenshot({path: folder + "/" + name});
}

// The timeline, zoomed in until single spans show, with the tooltip of one of them.
async function spans(name) {
	const page = await open(browser, file, {viewport: {width: 1120, height: 900}});
	const canvas = page.locator("canvas").first();
	await canvas.focus();
	await page.keyboard.press("Home");
	for (let i = 0; i < 40 && (await range(page))[1] > 0.4; i++) {
		await page.keyboard.press("+");
		await page.keyboard.press("Home");
	}
	for (let i = 0; i < 4; i++)
		await page.keyboard.press("ArrowRight");
	const box = await canvas.boundingBox();
	await page.mouse.move(box.x + 420, box.y + 75 + 25);
	await page.locator("section.timeline").screenshot({path: folder + "/" + name});
}

await whole("report-light.png", "light");
await whole("report-dark.png", "dark");
await spans("report-spans.png");
await browser.close();
