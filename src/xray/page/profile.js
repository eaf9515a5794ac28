// A table's profile: figures, what moved, and a section for each column. All names and values are the table's, and become
// text only.

// ---- values ----

function instant(microseconds) {
	const date = new Date(microseconds / 1000);
	return isNaN(date) ? DASH : date.toISOString().replace("T", " ").replace(/\.000Z$|Z$/, "").replace(/ 00:00:00$/, "");
}

// Four digits, but all of those before the point.
function figureText(x) {
	if (!isNumber(x))
		return DASH;
	const size = Math.abs(x);
	if (size !== 0 && (size >= 1e15 || size < 1e-4))
		return x.toExponential(3).replace("-", MINUS);
	return (size >= 1e4 || Number.isInteger(x) ? Math.round(x).toLocaleString("en-US") : String(Number(x.toPrecision(4)))).replace("-", MINUS);
}

function valueText(column, x) {
	return isNumber(x) && column.class === "time" ? instant(x) : figureText(x);
}

function spanText(column, x) {
	return column.class === "time" ? (x >= 86400e6 ? number(x / 86400e6) + SPACE + "days" : seconds(x / 1e6)) : figureText(x);
}

function share(part, all) {
	if (!part || !all)
		return "0";
	return part / all < 0.0001 ? "< 0.01" + SPACE + "%" : percent(part / all, part / all < 0.01 ? 2 : 1);
}

function approximate(is) {
	return is ? "~" : "";
}

// A text of the table; quotes show where it begins and ends.
function quoted(text, cut) {
	return ["\u2018", String(text), cut ? h("span", {class: "cut"}, "\u2026") : "", "\u2019"];
}

// ---- histograms ----

function binsOf(column) {
	const histogram = (column && column.histogram) || {}, rows = Array.isArray(histogram.rows) ? histogram.rows.slice(0, 1000) : [];
	const total = rows.reduce((sum, count) => sum + count, 0), width = (histogram.high - histogram.low) / rows.length || 1;
	return rows.map((count, i) => ({lower: histogram.low + i * width, upper: histogram.low + (i + 1) * width, count, share: count / total, density: count / total / width}));
}

function columnHistogram(column, then) {
	const one = binsOf(column), two = binsOf(then), both = [...one, ...two], wide = 560, high = 120;
	if (!both.length)
		return null;
	const low = Math.min(...both.map((bin) => bin.lower)), top = Math.max(...both.map((bin) => bin.upper));
	const tallest = Math.max(...both.map((bin) => bin.density)) || 1;
	const x = (value) => (value - low) / (top - low) * wide, y = (bin) => high - bin.density / tallest * (high - 8);
	const outline = two.filter((bin) => bin.count).map((bin) => "M" + x(bin.lower) + " " + high + "V" + y(bin) + "H" + x(bin.upper) + "V" + high).join("");
	const label = "Histogram of " + column.name + ": " + valueText(column, column.low) + " to " + valueText(column, column.high);
	return h("svg", {class: "bars", viewBox: "0 0 " + wide + " " + (high + 20), role: "img", "aria-label": label},
		one.filter((bin) => bin.count).map((bin) => h("svg:rect", {class: "one", x: x(bin.lower) + 0.4, y: Math.min(y(bin), high - 1), width: Math.max(x(bin.upper) - x(bin.lower) - 0.8, 0.8), height: Math.max(high - y(bin), 1)},
			h("svg:title", {}, number(bin.count) + ": " + valueText(column, bin.lower) + " to " + valueText(column, bin.upper)))),
		outline && h("svg:path", {class: "two", d: outline}),
		h("svg:line", {class: "axis", x1: 0, x2: wide, y1: high, y2: high}),
		h("svg:text", {x: 0, y: high + 14}, valueText(column, low)),
		h("svg:text", {x: wide, y: high + 14, "text-anchor": "end"}, valueText(column, top)));
}

// ---- a column ----

function values(pairs) {
	return h("dl", {class: "values"}, pairs.filter(Boolean).map(([title, ...value]) => h("div", {}, h("dt", {}, title), h("dd", {}, value))));
}

function topValues(column, rows) {
	const top = list(column.top);
	return top.length ? table("Most frequent values of " + column.name, [
		{title: "value", class: "value", of: (one) => quoted(one.value, one.cut)},
		{title: "rows", n: true, of: (one) => number(one.rows)},
		{title: "", class: "bar", of: (one) => h("div", {class: "meter", "aria-hidden": "true"}, h("span", {style: {width: 100 * one.rows / rows + "%", background: "var(--curve)"}}))},
		{title: "share", n: true, of: (one) => share(one.rows, rows)}], top) : null;
}

function lengths(column) {
	const unit = {words: "characters", bytes: "bytes", list: "elements"}[column.class] || "";
	return isNumber(column.longest) && ["length", number(column.shortest) + " to " + number(column.longest) + " " + unit];
}

function columnSection(column, at, rows, then) {
	const q = column.quantiles || {}, near = approximate(column.approximate_quantiles), words = column.class === "words";
	return h("section", {id: "column-" + at, "aria-label": column.name},
		h("h2", {}, column.name), h("p", {class: "type"}, column.type),
		values([
			["NULL", share(column.nulls, rows)],
			isNumber(column.distinct) && ["distinct", approximate(column.approximate_distinct) + number(column.distinct)],
			typeof column.min === "string" && ["min", words ? quoted(column.min) : column.min],
			typeof column.max === "string" && ["max", words ? quoted(column.max) : column.max],
			isNumber(column.mean) && ["mean", valueText(column, column.mean)],
			isNumber(column.deviation) && ["deviation", spanText(column, column.deviation)],
			column.nan > 0 && ["NaN", number(column.nan)], column.infinite > 0 && ["infinite", number(column.infinite)], lengths(column)]),
		isNumber(q.p50) && values(["p05", "p25", "p50", "p75", "p95"].map((key) => [Number(key.slice(1)) + SPACE + "%", near + valueText(column, q[key])])),
		attempt(() => columnHistogram(column, then)),
		column.histogram && column.histogram.clipped && h("p", {class: "note"}, "The outer bars also hold a few values far outside."),
		attempt(() => topValues(column, rows)));
}

// ---- the whole ----

function overview(columns, rows) {
	return section("Columns", table("Columns", [
		{title: "column", head: true, of: (column) => h("a", {href: "#column-" + columns.indexOf(column)}, column.name || "(no name)")},
		{title: "type", class: "text", of: (column) => column.type},
		{title: "NULL", n: true, of: (column) => share(column.nulls, rows)},
		{title: "distinct", n: true, of: (column) => isNumber(column.distinct) ? approximate(column.approximate_distinct) + number(column.distinct) : DASH},
		{title: "min", class: "value", of: (column) => plain(column.min)}, {title: "max", class: "value", of: (column) => plain(column.max)}], columns));
}

const MOVED = {none: "", unsure: "unsure", some: "moved", large: "moved a lot", type: "other type", added: "new column", removed: "removed"};

function driftSection(profile) {
	const rows = profile.drift && list(profile.drift.columns);
	return rows && section("What moved", table("What moved", [
		{title: "column", head: true, of: (row) => row.name},
		{title: "", class: "text", of: (row) => h("span", {class: ["large", "type", "removed"].includes(row.drift) && "worse"}, MOVED[row.drift])},
		{title: "PSI", n: true, of: (row) => isNumber(row.psi) ? row.psi.toFixed(3) : DASH}, {title: "JS", n: true, of: (row) => isNumber(row.js) ? row.js.toFixed(3) : DASH},
		{title: "what", class: "text", of: (row) => row.drift === "unsure" ? "too few rows to tell it from chance" : row.what}], rows),
		h("p", {class: "note"}, "Compared with " + profile.compared_with + ", which is the outline in histograms. PSI is the population stability index: from 0.1 on, a column moved, from 0.25 on a lot. JS is the Jensen-Shannon divergence in bits: 0 is the same, 1 has nothing in common."));
}

function headline(profile, columns) {
	const cells = columns.length * profile.rows, nulls = columns.reduce((sum, column) => sum + (column.nulls || 0), 0), sample = profile.of_rows > profile.rows;
	return h("dl", {class: "figures"},
		figure("rows", "rows", number(profile.rows), sample && "a sample of " + number(profile.of_rows)), figure("columns", "columns", number(columns.length)),
		figure("nulls", "NULL", share(nulls, cells), number(nulls) + " of " + number(cells) + " values"),
		profile.drift && figure("moved", "columns that moved", number(profile.drift.moved)));
}

function start() {
	const data = read("leat-profile"), profile = data && typeof data === "object" ? data : {}, columns = list(profile.columns);
	const then = new Map(list(profile.then && profile.then.columns).map((column) => [String(column.name).toLowerCase(), column]));
	const before = (column) => { const found = then.get(String(column.name).toLowerCase()); return found && found.class === column.class ? found : null; };
	followTheme();
	document.getElementById("main").append(...[
		h("h1", {}, String(profile.table) + ": " + number(profile.rows) + " rows in " + number(columns.length) + " columns"),
		attempt(() => headline(profile, columns)), attempt(() => driftSection(profile)), attempt(() => overview(columns, profile.rows)),
		h("div", {class: "columns"}, columns.map((column, i) => attempt(() => columnSection(column, i, profile.rows, before(column))))),
	].filter(Boolean));
	document.getElementById("source").textContent = profile.table || "";
	document.getElementById("written").textContent = "Written by Leat " + ((read("leat-about") || {}).version || "");
	document.title = "Leat profile";
	document.documentElement.dataset.ready = "";
}

start();
