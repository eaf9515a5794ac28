// Files of the store: pictures, tables, pages and text are shown, others can be saved. A file is known by its hash.

const SHOWN_BYTES = 65536, PICTURES = ["png", "jpeg", "gif", "webp", "svg"], SHOWN_ROWS = 50, SHOWN_COLUMNS = 20, SHOWN_FILES = 20;

async function getText(url) {
	const response = await fetch(url);
	if (!response.ok)
		throw new Error((await response.json()).error);
	return response.text();
}

async function getJson(url) {
	return JSON.parse(await getText(url));
}

// Without colours, and without what a progress bar wrote over.
function plainLog(text) {
	const shown = (line) => {
		const end = line.endsWith("\r") ? line.length - 1 : line.length;
		return line.slice(end ? line.lastIndexOf("\r", end - 1) + 1 : 0, end);
	};
	return text.replace(/\u001b\[[0-9;?]*[A-Za-z]/g, "").split("\n").map(shown).join("\n");
}

function isHash(hash) {
	return /^[0-9a-f]{64}$/.test(hash || "") && !/^0*$/.test(hash);
}

// What an action printed, read when it is opened. The end counts: that is where errors are.
function logBox(hash, open = false) {
	if (!isHash(hash))
		return h("p", {class: "note"}, "It printed nothing.");
	const text = h("pre", {tabindex: "0"}, "\u2026");
	const fill = async () => {
		try {
			text.textContent = plainLog(await getText("/blob/" + hash + "?last=" + SHOWN_BYTES)) || "(empty)";
			text.scrollTop = text.scrollHeight;
		} catch (error) {
			text.textContent = error.message;
		}
	};
	const box = h("details", {class: "log", ontoggle: () => box.open && fill()}, h("summary", {}, "Log"), text,
		h("p", {class: "note"}, "The last " + bytes(SHOWN_BYTES) + " at most. ", h("a", {href: "/blob/" + hash + "?text=1", target: "_blank", rel: "noopener"}, "All of it")));
	box.open = open;
	return box;
}

// ---- tables ----

function splitRow(line, separator) {
	const cells = [];
	let cell = "", quoted = false;
	for (let i = 0; i < line.length; i++)
		if (line[i] === '"' && quoted && line[i + 1] === '"')
			cell += line[++i];
		else if (line[i] === '"')
			quoted = !quoted;
		else if (line[i] === separator && !quoted) {
			cells.push(cell);
			cell = "";
		} else
			cell += line[i];
	return [...cells, cell];
}

// Rows of cells, or null: the text is no table. The last row of a text that was cut may be incomplete.
function tableRows(text, name, cut) {
	const lines = text.split(/\r?\n/).filter((line) => line !== "");
	for (const [separator, ending] of [["\t", ".tsv"], [",", ".csv"]]) {
		const rows = lines.slice(0, SHOWN_ROWS + 1).map((line) => splitRow(line, separator));
		const same = rows.length > 1 && rows[0].length > 1 && rows.slice(0, cut && rows.length === lines.length ? -1 : rows.length).every((row) => row.length === rows[0].length);
		if (same || (rows.length && name.endsWith(ending)))
			return {rows, more: lines.length > rows.length};
	}
	return null;
}

function textOrTable(text, name, cut) {
	const found = tableRows(text, name, cut), note = h("p", {class: "note"}, "Only the beginning is shown.");
	if (!found)
		return [h("pre", {tabindex: "0"}, text), cut && note];
	const [head, ...rows] = found.rows, numeric = (i) => rows.every((row) => row[i] === undefined || row[i] === "" || isFinite(row[i]));
	return [table(name || "Table", head.slice(0, SHOWN_COLUMNS).map((title, i) => ({title, n: numeric(i), of: (row) => row[i] ?? ""})), rows),
		(found.more || cut || head.length > SHOWN_COLUMNS) && note];
}

// ---- one file ----

function preview(file, place, label) {
	const url = "/blob/" + file.hash;
	if (PICTURES.includes(file.type))
		place.append(h("img", {src: url, alt: label, loading: "lazy"}));
	else if (file.type === "html")
		place.append(h("iframe", {src: url, sandbox: "allow-scripts", title: label, loading: "lazy", referrerpolicy: "no-referrer"}));
	else if (file.type === "text")
		getText(url + "?first=" + SHOWN_BYTES).then((text) => place.append(...textOrTable(text, file.name, file.bytes > SHOWN_BYTES).filter(Boolean)))
			.catch((error) => place.append(h("p", {class: "note"}, error.message)));
}

function fileBox(file, label, show) {
	const name = file.name || label, gone = file.type === "gone";
	const place = h("div", {class: "file", "data-file": name}, h("p", {}, h("b", {}, name), " ", bytes(file.bytes), " ",
		gone ? "is not in the store any more" : h("a", {href: "/blob/" + file.hash + "?download=1", download: name}, "Save")));
	if (show)
		preview(file, place, name);
	return place;
}

// Pictures first. Of a long list, the rest is only named.
function fileList(output, label) {
	const rank = (file) => [...PICTURES, "html", "text"].indexOf(file.type) + 1 || 99;
	const files = list(output.files).sort((a, b) => rank(a) - rank(b) || (a.name < b.name ? -1 : 1));
	const rest = files.slice(SHOWN_FILES), more = output.left_out || 0;
	return [h("div", {class: "files"}, files.slice(0, SHOWN_FILES).map((file) => fileBox(file, label, true))),
		rest.length ? h("details", {}, h("summary", {}, number(rest.length + more) + " more"), rest.map((file) => fileBox(file, label, false)),
			more ? h("p", {class: "note"}, number(more) + " of them are not listed.") : null) : null];
}
