// What all pages share: data in elements, the theme, headline figures, parts that may fail.

function read(id) {
	const element = document.getElementById(id);
	try {
		return element ? JSON.parse(element.textContent) : null;
	} catch (error) {
		return null;
	}
}

function figure(key, title, value, ...more) {
	return h("div", {"data-figure": key}, h("dt", {}, title), h("dd", {}, value),
		more.filter(Boolean).map((text) => h("dd", {class: "more"}, text)));
}

// One section that fails does not take the page with it.
function attempt(make) {
	try {
		return make();
	} catch (error) {
		return h("p", {class: "note", "data-failed": ""}, "A part of this page could not be shown: " + error.message);
	}
}

function pair(...sections) {
	const there = sections.flat().filter(Boolean);
	return there.length > 1 ? h("div", {class: "pair"}, there) : there;
}

const onTheme = []; // called after each change of colours

function setTheme(theme) {
	const button = document.getElementById("theme");
	document.documentElement.dataset.theme = theme;
	button.setAttribute("aria-pressed", theme === "dark");
	onTheme.forEach((draw) => draw());
}

// The button wins over the system's preference; paper over both.
function followTheme() {
	const dark = matchMedia("(prefers-color-scheme: dark)"), paper = matchMedia("print");
	let chosen = null, opened = [];
	const now = () => chosen || (dark.matches ? "dark" : "light");
	const print = (on) => {
		setTheme(on ? "light" : now());
		if (on)
			opened = [...document.querySelectorAll("details:not([open])")];
		opened.forEach((details) => { details.open = on; });
	};
	document.getElementById("theme").addEventListener("click", () => {
		chosen = now() === "dark" ? "light" : "dark";
		setTheme(chosen);
	});
	dark.addEventListener("change", () => setTheme(now()));
	paper.addEventListener("change", () => print(paper.matches));
	window.addEventListener("beforeprint", () => print(true));
	window.addEventListener("afterprint", () => print(false));
	setTheme(now());
}
