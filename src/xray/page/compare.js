// Two runs side by side. src/xray/compare.c decides what is a difference; the page shows it.

function changeOf(row) {
	if (!isNumber(row.a) || !isNumber(row.b))
		return DASH;
	const text = row.unit === "share" ? number(100 * (row.b - row.a)) + SPACE + "points" : row.a ? percent(row.b / row.a - 1) : DASH;
	const signed = row.b > row.a && text !== DASH ? "+" + text : text;
	return h("span", {class: row.differs && (row.b > row.a === Boolean(row.more_is_better) ? "better" : "worse")}, signed);
}

function valueOf(row, side) {
	return row.unit === "share" ? percent(row[side]) : row.unit === "ms" ? milliseconds(row[side]) : number(row[side]) + (row.unit ? SPACE + row.unit : "");
}

function stageShares(a, b) {
	const names = [...new Set([...list(a.stages), ...list(b.stages)].map((stage) => stage.name))];
	const find = (run, name) => list(run.stages).find((stage) => stage.name === name) || {};
	return names.length ? section("Stages", table("Stages", [
		{title: "stage", head: true, of: (name) => [swatch(find(a, name).tag || find(b, name).tag), breakable(plain(name))]},
		{title: "share of time, A", n: true, of: (name) => percent(find(a, name).share)}, {title: "B", n: true, of: (name) => percent(find(b, name).share)},
		{title: "alone, samples/s, A", n: true, of: (name) => number(find(a, name).rate_alone)}, {title: "B", n: true, of: (name) => number(find(b, name).rate_alone)},
		{title: "waits for, A", class: "text", of: (name) => breakable(plain(find(a, name).waits_for))}, {title: "B", class: "text", of: (name) => breakable(plain(find(b, name).waits_for))},
	], names)) : null;
}

function comparePage(data) {
	const a = data.a || {}, b = data.b || {}, times = [(a.batch_ms || {}), (b.batch_ms || {})];
	const chart = attempt(() => histogram("Time per batch of A and B", times[0].histogram, times[0], times[1].histogram));
	return [
		h("h1", {}, data.sentence),
		attempt(() => section("Figures", table("Figures", [
			{title: "", head: true, of: (row) => row.name}, {title: "A", n: true, of: (row) => valueOf(row, "a")},
			{title: "B", n: true, of: (row) => valueOf(row, "b")}, {title: "change", n: true, of: changeOf},
			{title: "", class: "text", of: (row) => (row.differs ? "a difference" : row.decided ? "within the spread" : "")}], list(data.rows)),
			h("p", {class: "note"}, "A: " + plain(data.name_a) + (a.sentence ? ". " + a.sentence : "")), h("p", {class: "note"}, "B: " + plain(data.name_b) + (b.sentence ? ". " + b.sentence : "")),
			h("p", {class: "note"}, data.rule))),
		attempt(() => list(data.settings).length ? section("Settings that differ", anyTable("Settings that differ", list(data.settings))) : null),
		chart && section("Time per batch", chart, h("p", {class: "note"}, "A is filled, B is the outline. Both are shares of their batches.")),
		attempt(() => stageShares(a, b)), timelineSection(data.timeline_a, "Timeline of A"), timelineSection(data.timeline_b, "Timeline of B"),
	];
}
