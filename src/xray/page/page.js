// The page: sections from the run's JSON, each left out if the run has nothing for it.

// ---- headline figures ----

// Mean use of the GPU in percent: what was sampled.
function deviceUse(run, timeline) {
	if (isNumber(run.device_use))
		return run.device_use;
	if (run.device && isNumber(run.device.utilization))
		return run.device.utilization / 100;
	const track = timeline && list(timeline.tracks).find((one) => /^gpu( \d+)? %$/.test(one.name));
	const means = track ? track.points.map((point) => point[2]) : [];
	return means.length ? means.reduce((sum, mean) => sum + mean, 0) / means.length / 100 : undefined;
}

const FIRST_BATCH = [["list_ms", "listing", "--tag-other"], ["index_ms", "index", "--tag-cache"], ["connect_ms", "connecting", "--tag-to-device"],
	["first_byte_ms", "first byte", "--tag-fetch"], ["decode_ms", "decode", "--tag-decode"]];

function firstBatch(run) {
	const split = run.first_batch || {}, parts = FIRST_BATCH.filter(([key]) => split[key] > 0);
	const sum = parts.reduce((total, [key]) => total + split[key], 0);
	return figure("first_batch_ms", "first batch after", milliseconds(run.first_batch_ms),
		parts.length && h("div", {class: "meter", "aria-hidden": "true"}, parts.map(([key, , color]) =>
			h("span", {style: {width: 100 * split[key] / sum + "%", background: "var(" + color + ")"}}))),
		parts.map(([key, name]) => name + " " + milliseconds(split[key])).join(", "));
}

function figures(run, timeline) {
	const batch = run.batch_ms || {}, use = deviceUse(run, timeline);
	const tiles = [
		isNumber(run.samples_per_s) && figure("samples_per_s", "samples/s", number(run.samples_per_s),
			isNumber(run.samples) && number(run.samples) + " in " + seconds(run.seconds)),
		isNumber(run.mb_per_s) && figure("mb_per_s", "MB/s", number(run.mb_per_s), isNumber(run.batches) && number(run.batches) + " batches"),
		isNumber(run.wait_share) && run.step_ms !== 0 && figure("wait_share", "time spent waiting", percent(run.wait_share), run.limit && "limit: " + run.limit),
		isNumber(use) && figure("device_use", "device in use", percent(use)),
		isNumber(batch.p50) && figure("p50", "time per batch", milliseconds(batch.p50), "p99 " + milliseconds(batch.p99), "longest " + milliseconds(batch.max)),
		isNumber(run.first_batch_ms) && firstBatch(run),
		isNumber(run.peak_rss_mib) && figure("peak_rss_mib", "peak memory", number(run.peak_rss_mib) + SPACE + "MiB", isNumber(run.threads) && number(run.threads) + " threads"),
	].filter(Boolean);
	return tiles.length ? h("dl", {class: "figures"}, tiles) : null;
}

// ---- tables ----

function shareBar(stage) {
	const parts = [["busy_s", "--curve"], ["starved_s", "--tag-to-device"], ["blocked_s", "--line"]];
	if (!isNumber(stage.starved_s) && !isNumber(stage.blocked_s))
		return DASH; // how long it waited is not known
	const sum = parts.reduce((total, [key]) => total + (stage[key] || 0), 0);
	const text = parts.map(([key]) => key.replace("_s", "") + " " + percent((stage[key] || 0) / sum, 0)).join(", ");
	return sum > 0 && h("div", {class: "meter", role: "img", "aria-label": text, title: text}, parts.map(([key, color]) =>
		h("span", {style: {width: 100 * (stage[key] || 0) / sum + "%", background: key === "busy_s" && stage.tag ? "var(" + tagVariable(stage.tag) + ")" : "var(" + color + ")"}})));
}

// "decode+resize+flip" may continue on the next line after a plus.
function breakable(name) {
	return String(name).replace(/\+/g, "+\u200b");
}

function stages(run) {
	const rows = list(run.stages), has = (key) => rows.some((row) => row[key] !== undefined && row[key] !== null);
	const times = ["busy_s", "starved_s", "blocked_s"].some(has);
	const columns = [
		{title: "stage", head: true, of: (row) => [swatch(row.tag), breakable(row.name || row.tag || DASH)]},
		has("share") && {title: "share of time", n: true, of: (row) => percent(row.share)},
		times && {title: "busy, starved, blocked", class: "bar", of: shareBar},
		has("rate_alone") && {title: "alone, samples/s", n: true, of: (row) => number(row.rate_alone)},
		has("items") && {title: "items", n: true, of: (row) => number(row.items)},
		has("bytes") && {title: "bytes", n: true, of: (row) => bytes(row.bytes)},
		has("errors") && rows.some((row) => row.errors > 0) && {title: "errors", n: true, of: (row) => number(row.errors)},
		has("waits_for") && {title: "waits for", class: "text", of: (row) => breakable(row.waits_for || DASH)},
	].filter(Boolean);
	return rows.length ? section("Stages", table("Stages", columns, rows),
		times && h("p", {class: "note"}, "Busy is drawn in the stage's colour, starved (no input) in amber, blocked (no room for output) in gray.")) : null;
}

function epochs(run) {
	const rows = list(run.epochs);
	const rate = (row) => (row.seconds > 0 ? row.samples / row.seconds : NaN), best = Math.max(...rows.map(rate).filter(isNumber));
	return rows.length ? section("Epochs", table("Epochs", [
		{title: "epoch", n: true, of: (row) => number(row.epoch)},
		{title: "samples", n: true, of: (row) => number(row.samples)},
		{title: "time", n: true, of: (row) => seconds(row.seconds)},
		{title: "samples/s", n: true, of: (row) => number(rate(row))},
		{title: "", class: "bar", of: (row) => h("div", {class: "meter", "aria-hidden": "true"}, h("span", {style: {width: 100 * rate(row) / best + "%", background: "var(--curve)"}}))},
		{title: "waited", n: true, of: (row) => percent(row.wait_share)},
	], rows.slice(0, 1000))) : null;
}

function batchTimes(run) {
	const batch = run.batch_ms || {}, chart = histogram("Time per batch", batch.histogram, batch);
	return chart && section("Time per batch", chart);
}

function latencies(run) {
	return list(run.endpoints).map((end) => {
		const latency = end.latency_ms || {}, chart = histogram("Latency", latency.histogram, latency);
		return chart && section("Latency of " + plain(end.host), chart,
			h("p", {class: "note"}, "p50 " + milliseconds(latency.p50) + ", p99 " + milliseconds(latency.p99) + " over " + number(end.requests) + " requests"));
	});
}

function endpoints(run) {
	const rows = list(run.endpoints), column = (key, title, of) => rows.some((row) => row[key] !== undefined) && {title, n: true, of: of || ((row) => number(row[key]))};
	return rows.length ? section("Servers", table("Servers", [{title: "host", head: true, of: (row) => plain(row.host)},
		column("requests", "requests"), column("retries", "retries"), column("hedges", "second requests"), column("refused", "refused (503)"),
		column("bytes", "bytes", (row) => bytes(row.bytes)), column("latency_ms", "p50", (row) => milliseconds((row.latency_ms || {}).p50)),
		column("latency_ms", "p99", (row) => milliseconds((row.latency_ms || {}).p99))].filter(Boolean), rows)) : null;
}

function tuning(run) {
	const rows = list(run.tuning);
	return rows.length ? section("Settings", table("Settings", [
		{title: "setting", head: true, of: (row) => plain(row.what)}, {title: "value", n: true, of: (row) => plain(row.value)},
		{title: "chosen by", of: (row) => (row.set ? "you" : "Leat")}, {title: "why", class: "text", of: (row) => plain(row.why)}], rows)) : null;
}

function bad(run) {
	const rows = list(run.bad), shown = rows.slice(0, 200);
	const count = isNumber(run.bad_count) ? run.bad_count : rows.length;
	return rows.length ? section("Bad samples", h("p", {class: "note"}, number(count) + " in all" + (count > shown.length ? "; the first " + shown.length + " are listed" : "")),
		table("Bad samples", [
			{title: "epoch", n: true, of: (row) => number(row.epoch)}, {title: "position", n: true, of: (row) => number(row.position)},
			{title: "file", class: "text", of: (row) => plain(row.uri)}, {title: "offset", n: true, of: (row) => number(row.offset)},
			{title: "reason", class: "text", of: (row) => plain(row.reason) + (row.replaced ? " (replaced)" : "")}], shown)) : null;
}

function any(title, rows, note) {
	return list(rows).length ? section(title, anyTable(title, list(rows)), note && h("p", {class: "note"}, note)) : null;
}

function remedies(run) {
	const rows = list(run.remedies), has = (key) => rows.some((row) => row[key] !== undefined && row[key] !== null && row[key] !== "");
	const columns = [
		{title: "remedy", head: true, of: (row) => plain(row.what || row.remedy || row.name)},
		has("now") && {title: "now", n: true, of: (row) => number(row.now)},
		{title: "predicted", n: true, of: (row) => (row.at_most ? "at most " : "") + number(row.predicted || NaN)},
		{title: "measured", n: true, of: (row) => number(row.measured || NaN)},
		has("measured") && {title: "off by", n: true, of: (row) => (row.measured > 0 && row.predicted > 0 ? percent(row.predicted / row.measured - 1, 0) : DASH)},
		has("helps") && {title: "helps", of: (row) => h("span", {class: row.helps && "better"}, plain(row.helps))},
		has("why") && {title: "why", class: "text", of: (row) => plain(row.why)},
	].filter(Boolean);
	return rows.length ? section("What to try", table("What to try", columns, rows), h("p", {class: "note"}, "Rates are in samples/s.")) : null;
}

function rest(run) {
	const rows = Object.entries(run.stats && typeof run.stats === "object" ? run.stats : {});
	return rows.length ? section("All counters", h("details", {}, h("summary", {}, rows.length + " counters"), table("All counters", [
		{title: "counter", head: true, of: ([key]) => key}, {title: "value", n: true, of: ([, value]) => plain(value)}], rows))) : null;
}

// ---- the whole ----

const timelines = [];

function timelineSection(data, title) {
	return data && attempt(() => {
		const timeline = new Timeline(data, title);
		timelines.push(timeline);
		return timeline.element;
	});
}

// `leat xray` has the run of the whole pipeline inside of its result. The time is the run's, not that of all measurements.
function flatten(run) {
	return run.run && typeof run.run === "object" ? {...run.run, ...run, seconds: run.run.seconds} : run;
}

function runPage(given, timeline) {
	const run = flatten(given);
	const sections = [() => figures(run, timeline), () => timelineSection(timeline, "Timeline"), () => stages(run),
		() => pair(batchTimes(run), latencies(run)), () => epochs(run), () => any(list(run.parts).some((part) => part.tag) ? "The loop, per batch" : "Parts measured alone", run.parts),
		() => remedies(run), () => any("Ranks", run.ranks), () => tuning(run),
		() => endpoints(run), () => any("Queues", run.queues), () => bad(run), () => rest(run)];
	return [h("h1", {}, run.sentence || (run.limit ? "The limit is " + run.limit + "." : "What a run did")), sections.map(attempt)];
}

function start() {
	const run = read("leat-run"), comparison = read("leat-compare");
	const content = comparison ? comparePage(comparison) : runPage(run && typeof run === "object" ? run : {}, read("leat-timeline"));
	onTheme.push(() => timelines.forEach((timeline) => timeline.draw()));
	followTheme();
	document.getElementById("main").append(...content.flat(Infinity).filter(Boolean));
	document.getElementById("source").textContent = run && run.spec ? run.spec : "";
	document.getElementById("written").textContent = "Written by Leat " + ((read("leat-about") || {}).version || "");
	document.title = comparison ? "Leat: two runs" : "Leat report";
	timelines.forEach((timeline) => timeline.draw());
	document.documentElement.dataset.ready = "";
}

start();
