// Numbers as text, and elements. Text from the run only ever becomes text: h() knows no markup.

const DASH = "\u2013", MINUS = "\u2212", SPACE = "\u202f";

function isNumber(x) {
	return typeof x === "number" && isFinite(x);
}

// 1,234,567; 1,234; 12.3; 0.0123
function number(x) {
	if (!isNumber(x))
		return DASH;
	const size = Math.abs(x);
	if (size >= 100 || Number.isInteger(x))
		return Math.round(x).toLocaleString("en-US").replace("-", MINUS);
	return String(Number(x.toPrecision(3))).replace("-", MINUS);
}

function percent(share, digits = 1) {
	if (!isNumber(share))
		return DASH;
	const value = 100 * share;
	return (Math.abs(value) >= 99.95 ? value.toFixed(0) : value.toFixed(digits)).replace("-", MINUS) + SPACE + "%";
}

function seconds(s) {
	if (!isNumber(s))
		return DASH;
	const size = Math.abs(s);
	if (size === 0)
		return "0" + SPACE + "s";
	if (size < 1e-6)
		return number(s * 1e9) + SPACE + "ns";
	if (size < 1e-3)
		return number(s * 1e6) + SPACE + "\u00b5s";
	if (size < 1)
		return number(s * 1e3) + SPACE + "ms";
	if (size < 100)
		return number(s) + SPACE + "s";
	const whole = Math.round(s), hours = Math.floor(whole / 3600), minutes = Math.floor(whole / 60) % 60;
	const two = (n) => String(n).padStart(2, "0");
	return hours ? hours + ":" + two(minutes) + ":" + two(whole % 60) + SPACE + "h" : Math.floor(whole / 60) + ":" + two(whole % 60) + SPACE + "min";
}

function milliseconds(ms) {
	return isNumber(ms) ? seconds(ms / 1000) : DASH;
}

function bytes(n) {
	if (!isNumber(n))
		return DASH;
	const units = ["B", "kB", "MB", "GB", "TB", "PB"];
	let i = 0;
	while (Math.abs(n) >= 1000 && i < units.length - 1) {
		n /= 1000;
		i++;
	}
	return number(n) + SPACE + units[i];
}

// An element. Attributes that begin with "on" are listeners; `style` is an object of properties; text stays text.
function h(name, attributes, ...children) {
	const svg = name === "svg" || name.startsWith("svg:");
	const element = svg ? document.createElementNS("http://www.w3.org/2000/svg", name.replace("svg:", "")) : document.createElement(name);
	for (const [key, value] of Object.entries(attributes || {})) {
		if (value === undefined || value === null || value === false)
			continue;
		if (key.startsWith("on"))
			element.addEventListener(key.slice(2), value);
		else if (key === "style")
			for (const [property, setting] of Object.entries(value))
				element.style.setProperty(property, setting);
		else
			element.setAttribute(key, value === true ? "" : String(value));
	}
	for (const child of children.flat(Infinity))
		if (child !== undefined && child !== null && child !== false)
			element.append(child instanceof Node ? child : document.createTextNode(String(child)));
	return element;
}

const TAGS = ["get batch", "to device", "run batch", "fetch", "decode", "transform", "cache", "collate"];

function tagVariable(tag) {
	return TAGS.includes(tag) ? "--tag-" + tag.replace(" ", "-") : "--tag-other";
}

function swatch(tag) {
	return h("span", {class: "swatch", "aria-hidden": "true", style: {background: "var(" + tagVariable(tag) + ")"}});
}

// A table. A column is {title, of(row) -> text or node, n: right-aligned, head: names the row, class}.
function table(caption, columns, rows) {
	const align = (column) => (column.n ? "n" : column.class);
	return h("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": caption},
		h("table", {},
			h("thead", {}, h("tr", {}, columns.map((column) => h("th", {scope: "col", class: column.n && "n"}, column.title)))),
			h("tbody", {}, rows.map((row) => h("tr", {}, columns.map((column) =>
				column.head ? h("th", {scope: "row"}, column.of(row)) : h("td", {class: align(column)}, column.of(row))))))));
}

function section(title, ...content) {
	return h("section", {"aria-label": title}, h("h2", {}, title), content);
}

// The value of any JSON, in a few words.
function plain(value) {
	if (value === null || value === undefined)
		return DASH;
	if (isNumber(value))
		return number(value);
	if (typeof value === "boolean")
		return value ? "yes" : "no";
	return typeof value === "string" ? value : JSON.stringify(value);
}

function list(value) {
	return Array.isArray(value) ? value.filter((item) => item && typeof item === "object") : [];
}

// A table of objects whose keys are not known here: all that are in use, numbers on the right.
function anyTable(caption, rows, titles = {}) {
	const keys = [...new Set(rows.flatMap((row) => Object.keys(row)))].slice(0, 12);
	return table(caption, keys.map((key, i) => {
		const n = rows.every((row) => row[key] === undefined || row[key] === null || isNumber(row[key]));
		return {title: titles[key] || key.replace(/_/g, " "), n, class: "text", head: i === 0 && !n, of: (row) => plain(row[key])};
	}), rows);
}
