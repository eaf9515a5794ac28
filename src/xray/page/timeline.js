// The timeline: a canvas with an overview, lanes and curves, that zooms and pans.
//
// Lanes show bins, as the share of time each tag took, and exact spans where these are known and bins are wider than a
// pixel. Sums over any time come from prefix sums, so drawing costs the same at every zoom.

const GUTTER = 150, AXIS = 22, OVERVIEW = 34, LANE = 22, GAP = 3, CURVE = 52, FEWEST_NS = 2000;

// src/trace/timeline_json.c says how numbers are packed.
function unpack(packed, bins) {
	const out = new Float64Array(bins);
	let at = 0;
	for (const value of Array.isArray(packed) ? packed : []) {
		if (value < 0)
			at -= value;
		else if (at < bins)
			out[at++] = value;
	}
	return out;
}

function prefixSums(values, scale) {
	const out = new Float64Array(values.length + 1);
	for (let i = 0; i < values.length; i++)
		out[i + 1] = out[i] + values[i] * scale;
	return out;
}

// The sum from bin a to bin b, both fractional.
function sumBetween(sums, a, b) {
	const at = (x) => {
		const i = Math.min(Math.max(Math.floor(x), 0), sums.length - 2);
		return sums[i] + (sums[i + 1] - sums[i]) * Math.min(Math.max(x - i, 0), 1);
	};
	return at(b) - at(a);
}

function mergeIntervals(intervals) {
	const out = [];
	for (const [begin, end] of intervals.sort((a, b) => a[0] - b[0])) {
		const last = out[out.length - 1];
		if (last && begin <= last[1])
			last[1] = Math.max(last[1], end);
		else
			out.push([begin, end]);
	}
	return out;
}

// Spans of a lane in order of begin, each with its depth: inside others, or beside them where they overlap.
function arrange(spans, overlaps) {
	spans.sort((a, b) => a.begin - b.begin || b.end - a.end);
	const open = [];
	let deepest = 0, longest = 0;
	for (const span of spans) {
		let depth = 0;
		if (overlaps) {
			while (depth < open.length && open[depth] > span.begin)
				depth++;
			open[depth] = span.end;
		} else {
			while (open.length && open[open.length - 1] <= span.begin)
				open.pop();
			depth = open.length;
			open.push(span.end);
		}
		span.depth = depth;
		deepest = Math.max(deepest, depth);
		longest = Math.max(longest, span.end - span.begin);
	}
	return {spans, overlaps, deepest, longest};
}

// What the canvas draws, from the JSON. Times are in ns.
function timelineModel(data) {
	const unit = data.unit_ns, bins = data.bins, tags = data.tags;
	const lanes = list(data.lanes).map((lane, id) => ({
		id, name: lane.name || "lane " + id, overlaps: Boolean(lane.overlaps),
		rows: list(lane.rows).map((row) => ({
			tag: row.tag, busy_ns: row.busy_ns, count: row.count, longest_ns: row.longest_ns,
			busy: prefixSums(unpack(row.busy, bins), 1 / 10000),
			counts: prefixSums(unpack(row.counts, bins), 1),
			longest: unpack(row.longest, bins),
		})),
		exact: [],
	}));
	for (const kept of list(data.kept)) {
		let begin = 0;
		for (let i = 0; i + 4 < kept.at.length; i += 5) {
			begin += kept.at[i];
			if (lanes[kept.lane])
				lanes[kept.lane].exact.push({
					begin: begin * unit, end: (begin + kept.at[i + 1]) * unit, item: kept.at[i + 2],
					name: data.names[kept.at[i + 3]] || "", every: kept.at[i + 4], tag: kept.tag,
				});
		}
	}
	for (const lane of lanes) {
		lane.exact = arrange(lane.exact, lane.overlaps);
		lane.scale = 1;
		for (const row of lane.overlaps ? lane.rows : [])
			for (let i = 0; i < bins; i++)
				lane.scale = Math.max(lane.scale, row.busy[i + 1] - row.busy[i]);
	}
	const tracks = trackGroups(list(data.tracks));
	return {
		lanes: lanes.filter((lane) => lane.rows.length), tags, bins, binNs: data.bin_ns, end: Math.max(data.end * unit, 1),
		known: mergeIntervals((data.known || []).map(([a, b]) => [a * unit, b * unit])),
		tracks: tracks.filter((group) => !isFlat(group)), curves: tracks.flatMap((group) => group.curves), spans: data.spans, dropped: data.dropped, leftOut: data.left_out, noTrack: data.no_track || 0,
	};
}

// One row per tag, the lanes that have it added up.
function stageLanes(model) {
	return model.tags.map((name, tag) => {
		const rows = model.lanes.flatMap((lane) => lane.rows.filter((row) => row.tag === tag));
		const add = (key) => rows.reduce((sum, row) => sum.map((x, i) => x + row[key][i]), new Float64Array(model.bins + 1));
		const longest = rows.reduce((most, row) => most.map((x, i) => Math.max(x, row.longest[i])), new Float64Array(model.bins));
		const sum = (key) => rows.reduce((total, row) => total + row[key], 0);
		return {
			name, rows: rows.length ? [{tag, busy: add("busy"), counts: add("counts"), longest, busy_ns: sum("busy_ns"), count: sum("count")}] : [],
			scale: Math.max(rows.length, 1), exact: arrange([], false), of: rows.length,
		};
	}).filter((lane) => lane.rows.length);
}

// Curves: the CPU time of all threads is one (their sum, if there is no "cpu total %"), every other track by itself.
function trackGroups(tracks) {
	const groups = new Map();
	for (const track of tracks) {
		const cpu = /^cpu /.test(track.name);
		const name = cpu ? "CPU %" : track.name;
		const points = track.points.map(([bin, min, mean, max]) => ({
			begin: bin * track.bin_ns, end: (bin + 1) * track.bin_ns, min, mean, max}));
		if (!points.length)
			continue;
		if (!groups.has(name))
			groups.set(name, {name, curves: []});
		groups.get(name).curves.push({name: track.name, points});
	}
	for (const group of groups.values()) {
		group.total = group.curves.length > 1 ? group.curves.find((curve) => curve.name === "cpu total %") : group.curves[0];
		group.parts = group.curves.filter((curve) => curve !== group.total);
		const top = group.total ? Math.max(...group.total.points.map((point) => point.max)) : highestSum(group);
		group.top = /%/.test(group.name) && group.name !== "CPU %" && top <= 100 ? 100 : niceTop(top);
	}
	return [...groups.values()];
}

// A curve that is zero all the time is in the table only.
function isFlat(group) {
	return group.curves.every((curve) => curve.points.every((point) => point.min === 0 && point.max === 0));
}

function highestSum(group) {
	const sums = new Map();
	for (const curve of group.curves)
		for (const point of curve.points)
			sums.set(point.begin, (sums.get(point.begin) || 0) + point.max);
	return Math.max(...sums.values());
}

function niceTop(x) {
	if (!(x > 0))
		return 1;
	const power = 10 ** Math.floor(Math.log10(x));
	return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].find((step) => step * power >= x) * power;
}

// The point of a curve at a time: the last that has begun, unless it is long ago.
function pointAt(curve, t) {
	let low = 0, high = curve.points.length;
	while (low < high) {
		const middle = (low + high) >> 1;
		if (curve.points[middle].begin <= t)
			low = middle + 1;
		else
			high = middle;
	}
	const point = curve.points[low - 1];
	return point && t < point.end + 2 * (point.end - point.begin) ? point : null;
}

function niceStep(range, steps) {
	const raw = range / steps / 1e9;
	const nice = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 21600, 43200, 86400].find((x) => x >= raw);
	if (raw > 0.5)
		return (nice || 86400 * Math.ceil(raw / 86400)) * 1e9;
	const power = 10 ** Math.floor(Math.log10(raw));
	return [1, 2, 5, 10].find((x) => x * power >= raw) * power * 1e9;
}

class Timeline {
	constructor(data, title) {
		this.model = timelineModel(data);
		this.byThread = this.model.lanes;
		this.byStage = stageLanes(this.model);
		this.lanes = this.byThread;
		this.begin = 0;
		this.end = this.model.end;
		this.build(title);
	}

	build(title) {
		const button = (text, label, act, pressed) => h("button", {type: "button", "aria-label": label, "aria-pressed": pressed, onclick: act}, text);
		this.range = h("span", {class: "range", "aria-live": "polite"});
		this.threads = button("Threads", "One row per thread", () => this.group(this.byThread), "true");
		this.stages = button("Stages", "One row per kind of work", () => this.group(this.byStage), "false");
		this.canvas = h("canvas", {
			tabindex: "0", role: "application", "aria-roledescription": "timeline",
			"aria-label": "Timeline. Plus and minus zoom, the arrow keys move, 0 shows all. The table below has the same figures.",
			onwheel: (event) => this.wheel(event), onpointerdown: (event) => this.press(event),
			onpointermove: (event) => this.move(event), onpointerup: (event) => this.release(event),
			onpointerleave: () => this.hide(), onkeydown: (event) => this.key(event), onblur: () => this.hide(),
			ondblclick: (event) => this.zoom(1 / 4, this.timeAt(event.offsetX)),
		});
		this.tip = h("div", {class: "tip", role: "tooltip", hidden: true});
		const used = this.model.tags.filter((_, tag) => this.byThread.some((lane) => lane.rows.some((row) => row.tag === tag)));
		const lost = this.model.dropped + this.model.leftOut;
		this.element = h("section", {class: "timeline", "aria-label": title},
			h("div", {class: "tools"}, h("h2", {}, title), this.threads, this.stages,
				button("+", "Zoom in", () => this.zoom(1 / 2)), button(MINUS, "Zoom out", () => this.zoom(2)),
				button("0", "Show all", () => this.show(0, this.model.end)), this.range),
			h("ul", {class: "legend"}, used.map((tag) => h("li", {}, swatch(tag), tag))),
			h("div", {class: "canvas"}, this.canvas, this.tip),
			h("p", {class: "note"}, number(this.model.spans) + " spans. Wheel or + and " + MINUS + " zoom, drag or arrow keys move, 0 shows all. ",
				"Close up, single spans are drawn where they were kept: at the beginning, around the slowest batches, and at the end. ",
				lost > 0 && number(lost) + " came too fast to be recorded or had no room, and are missing. ",
				this.model.noTrack > 0 && "There are curves for the first " + number(this.model.curves.length) + " values that were measured; " + number(this.model.noTrack) + " measurements of others are missing."),
			h("details", {}, h("summary", {}, "The timeline as a table"), this.table()));
		new ResizeObserver(() => this.draw()).observe(this.canvas.parentElement);
	}

	table() {
		const rows = this.model.lanes.flatMap((lane) => lane.rows.map((row) => ({lane, row})));
		const {curves} = this.model;
		const most = (curve, f, key) => f(...curve.points.map((point) => point[key]));
		return [
			table("Busy time per lane and tag", [
				{title: "lane", head: true, of: ({lane}) => lane.name},
				{title: "tag", of: ({row}) => [swatch(this.model.tags[row.tag]), this.model.tags[row.tag]]},
				{title: "spans", n: true, of: ({row}) => number(row.count)},
				{title: "busy", n: true, of: ({row}) => seconds(row.busy_ns / 1e9)},
				{title: "share of the run", n: true, of: ({row}) => percent(row.busy_ns / this.model.end)},
				{title: "longest", n: true, of: ({row}) => seconds(row.longest_ns / 1e9)},
			], rows),
			curves.length > 0 && table("Curves", [
				{title: "curve", head: true, of: (curve) => curve.name},
				{title: "lowest", n: true, of: (curve) => number(most(curve, Math.min, "min"))},
				{title: "mean", n: true, of: (curve) => number(curve.points.reduce((sum, point) => sum + point.mean, 0) / curve.points.length)},
				{title: "highest", n: true, of: (curve) => number(most(curve, Math.max, "max"))},
			], curves),
		];
	}

	// ---- where things are ----

	get width() {
		return Math.max(this.canvas.parentElement.clientWidth, 240);
	}

	get gutter() {
		return this.width < 560 ? 84 : GUTTER;
	}

	get height() {
		return AXIS + OVERVIEW + 8 + this.lanes.length * (LANE + GAP) + this.model.tracks.length * (CURVE + 8) + 4;
	}

	x(t) {
		return this.gutter + (t - this.begin) / (this.end - this.begin) * (this.width - this.gutter);
	}

	timeAt(x) {
		return this.begin + (x - this.gutter) / (this.width - this.gutter) * (this.end - this.begin);
	}

	laneTop(i) {
		return AXIS + OVERVIEW + 8 + i * (LANE + GAP);
	}

	curveTop(i) {
		return this.laneTop(this.lanes.length) + 8 + i * (CURVE + 8);
	}

	// ---- moving ----

	show(begin, end) {
		const length = Math.min(Math.max(end - begin, FEWEST_NS), this.model.end);
		this.begin = Math.min(Math.max((begin + end - length) / 2, 0), this.model.end - length);
		this.end = this.begin + length;
		this.draw();
	}

	zoom(factor, around = (this.begin + this.end) / 2) {
		this.show(around - (around - this.begin) * factor, around + (this.end - around) * factor);
	}

	pan(share) {
		const by = share * (this.end - this.begin);
		this.show(this.begin + by, this.end + by);
	}

	group(lanes) {
		this.lanes = lanes;
		this.threads.setAttribute("aria-pressed", lanes === this.byThread);
		this.stages.setAttribute("aria-pressed", lanes === this.byStage);
		this.hide();
		this.draw();
	}

	wheel(event) {
		const all = this.begin <= 0 && this.end >= this.model.end;
		if (all && event.deltaY > 0 && !event.shiftKey)
			return; // nothing left to zoom out of: the page scrolls
		event.preventDefault();
		const lines = event.deltaMode === 1 ? 16 : 1;
		if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY))
			this.pan((event.deltaX || event.deltaY) * lines / this.width);
		else
			this.zoom(2 ** (event.deltaY * lines / 240), this.timeAt(Math.max(event.offsetX, this.gutter)));
		this.hover(event);
	}

	press(event) {
		if (event.button !== 0)
			return;
		this.canvas.setPointerCapture(event.pointerId);
		this.canvas.classList.add("held");
		this.held = {x: event.offsetX, begin: this.begin, end: this.end, overview: event.offsetY < OVERVIEW};
		if (this.held.overview)
			this.jump(event.offsetX);
	}

	// A click in the overview moves the view there.
	jump(x) {
		const middle = (x - this.gutter) / (this.width - this.gutter) * this.model.end, half = (this.end - this.begin) / 2;
		this.show(middle - half, middle + half);
	}

	move(event) {
		if (!this.held)
			return this.hover(event);
		if (this.held.overview)
			return this.jump(event.offsetX);
		const by = (this.held.x - event.offsetX) / (this.width - this.gutter) * (this.held.end - this.held.begin);
		this.hide();
		this.show(this.held.begin + by, this.held.end + by);
	}

	release(event) {
		this.held = null;
		this.canvas.classList.remove("held");
		this.hover(event);
	}

	key(event) {
		const acts = {
			"+": () => this.zoom(1 / 2), "=": () => this.zoom(1 / 2), "-": () => this.zoom(2), "_": () => this.zoom(2),
			ArrowLeft: () => this.pan(-0.2), ArrowRight: () => this.pan(0.2), "0": () => this.show(0, this.model.end),
			Home: () => this.show(0, this.end - this.begin), End: () => this.show(this.model.end - (this.end - this.begin), this.model.end),
			Escape: () => this.hide(),
		};
		if (event.ctrlKey || event.metaKey || event.altKey || !acts[event.key])
			return;
		event.preventDefault();
		acts[event.key]();
	}

	// ---- the tooltip ----

	hide() {
		this.tip.hidden = true;
	}

	hover(event) {
		const lines = this.describe(event.offsetX, event.offsetY);
		if (!lines)
			return this.hide();
		this.tip.replaceChildren(h("b", {}, lines[0]), ...lines.slice(1).map((line) => h("span", {}, line)));
		this.tip.hidden = false;
		const right = event.offsetX + 14 + this.tip.offsetWidth > this.width;
		this.tip.style.left = Math.max(right ? event.offsetX - 14 - this.tip.offsetWidth : event.offsetX + 14, 0) + "px";
		this.tip.style.top = event.offsetY + 16 + "px";
	}

	describe(x, y) {
		const t = this.timeAt(x);
		if (x < this.gutter || t < 0 || t > this.model.end || y < AXIS + OVERVIEW)
			return null;
		for (let i = 0; i < this.lanes.length; i++)
			if (y >= this.laneTop(i) && y < this.laneTop(i) + LANE)
				return this.describeLane(this.lanes[i], t, (y - this.laneTop(i)) / LANE);
		for (let i = 0; i < this.model.tracks.length; i++)
			if (y >= this.curveTop(i) && y < this.curveTop(i) + CURVE)
				return this.describeCurve(this.model.tracks[i], t);
		return null;
	}

	describeLane(lane, t, height) {
		const interval = this.exactNow(lane) && this.model.known.find(([begin, end]) => t >= begin && t < end);
		if (interval) {
			const under = this.spansBetween(lane, t, t + 1).filter((span) => span.begin <= t && span.end > t);
			const rows = lane.exact.deepest + 1;
			const span = lane.overlaps ? under.find((one) => one.depth === Math.floor(height * rows)) : under.pop();
			if (!span)
				return [lane.name, "nothing at " + seconds(t / 1e9)];
			return [this.model.tags[span.tag] + (span.name ? ": " + span.name : ""), seconds((span.end - span.begin) / 1e9) + ", from " + this.clock(span.begin),
				...(span.item < 0 ? [] : [(span.tag < 3 ? "batch " : "item ") + number(span.item)]),
				...(span.every > 1 ? ["one of " + number(span.every) + "; the others were too short to record"] : []), lane.name];
		}
		const wide = Math.max(this.model.binNs, (this.end - this.begin) / (this.width - this.gutter));
		const begin = Math.floor(t / wide) * wide, a = begin / this.model.binNs, b = (begin + wide) / this.model.binNs;
		const lines = lane.rows.map((row) => {
			const busy = sumBetween(row.busy, a, b) / (b - a), count = Math.round(sumBetween(row.counts, a, b));
			let longest = 0;
			for (let i = Math.floor(a); i < Math.min(b, this.model.bins); i++)
				longest = Math.max(longest, row.longest[i]);
			return {busy, text: this.model.tags[row.tag] + " " + (lane.scale > 1 ? number(busy) + " at once" : percent(busy)) + ", " +
				number(count) + " spans" + (longest ? ", longest " + seconds(longest * 100 / 1e9) : "")};
		}).filter((line) => line.busy > 0).sort((p, q) => q.busy - p.busy);
		return [lines.length ? lines[0].text : "nothing", ...lines.slice(1).map((line) => line.text), this.clock(begin) + " + " + seconds(wide / 1e9), lane.name];
	}

	describeCurve(group, t) {
		const at = group.parts.map((curve) => ({name: curve.name, point: pointAt(curve, t)})).filter((one) => one.point);
		const total = group.total && pointAt(group.total, t), sum = at.reduce((all, one) => all + one.point.mean, 0);
		if (!at.length && !total)
			return [group.name, "not known at " + this.clock(t)];
		at.sort((a, b) => b.point.mean - a.point.mean);
		return [group.name + " " + number(total ? total.mean : sum), ...(total && total.max > total.min ? [number(total.min) + " to " + number(total.max)] : []),
			...at.slice(0, 4).map((each) => each.name + " " + number(each.point.mean)), this.clock(t)];
	}

	clock(ns) {
		const step = (this.end - this.begin) / 1e9;
		return (ns / 1e9).toFixed(step > 50 ? 1 : step > 1 ? 3 : step > 1e-3 ? 6 : 9) + SPACE + "s";
	}

	// ---- drawing ----

	// Bins suffice while they are narrower than a pixel or so.
	exactNow(lane) {
		return lane.exact.spans.length > 0 && this.model.binNs > 1.2 * (this.end - this.begin) / (this.width - this.gutter);
	}

	// Spans of a lane that touch a time, outer before inner.
	spansBetween(lane, begin, end) {
		const {spans, longest} = lane.exact;
		let low = 0, high = spans.length;
		while (low < high) {
			const middle = (low + high) >> 1;
			if (spans[middle].begin < begin - longest)
				low = middle + 1;
			else
				high = middle;
		}
		const out = [];
		for (let i = low; i < spans.length && spans[i].begin < end; i++)
			if (spans[i].end > begin)
				out.push(spans[i]);
		return out;
	}

	draw() {
		const ratio = window.devicePixelRatio || 1, {canvas, width, height} = this;
		if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
			canvas.width = Math.round(width * ratio);
			canvas.height = Math.round(height * ratio);
			canvas.style.height = height + "px";
		}
		const style = getComputedStyle(document.documentElement), colors = {};
		this.color = (name) => colors[name] || (colors[name] = style.getPropertyValue(name).trim());
		this.colors = this.model.tags.map((tag) => this.color(tagVariable(tag)));
		const g = this.g = canvas.getContext("2d");
		g.setTransform(ratio, 0, 0, ratio, 0, 0);
		g.fillStyle = this.color("--panel");
		g.fillRect(0, 0, width, height);
		g.font = "12px system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";
		g.textBaseline = "middle";
		this.drawOverview();
		this.drawAxis();
		this.lanes.forEach((lane, i) => this.drawLane(lane, this.laneTop(i)));
		this.model.tracks.forEach((group, i) => this.drawCurves(group, this.curveTop(i)));
		this.range.textContent = seconds(this.begin / 1e9) + " " + DASH + " " + seconds(this.end / 1e9) + " of " + seconds(this.model.end / 1e9);
		this.range.dataset.begin = this.begin / 1e9;
		this.range.dataset.end = this.end / 1e9;
	}

	label(text, y, color = "--ink") {
		const {g} = this, most = this.gutter - 12;
		g.fillStyle = this.color(color);
		if (g.measureText(text).width > most) {
			while (text.length > 1 && g.measureText(text + "\u2026").width > most)
				text = text.slice(0, -1);
			text += "\u2026";
		}
		g.fillText(text, 0, y);
	}

	// The whole run in one strip: how busy each tag was on average, and which part the lanes show.
	drawOverview() {
		const {g, gutter, width, model} = this, wide = width - gutter, step = 2, high = OVERVIEW - 8;
		this.label("whole run", high / 2, "--soft");
		g.fillStyle = this.color("--sunk");
		g.fillRect(gutter, 0, wide, high);
		const most = this.byThread.filter((lane) => !lane.overlaps).length || 1;
		for (let x = 0; x < wide; x += step) {
			const a = x / wide * model.end / model.binNs, b = (x + step) / wide * model.end / model.binNs;
			let y = high;
			for (const stage of this.byStage) {
				const part = Math.min(sumBetween(stage.rows[0].busy, a, b) / (b - a) / most, 1) * high;
				g.fillStyle = this.colors[stage.rows[0].tag];
				g.fillRect(gutter + x, Math.max(y - part, 0), step, Math.min(part, y));
				y = Math.max(y - part, 0);
			}
		}
		const left = gutter + this.begin / model.end * wide, right = gutter + this.end / model.end * wide;
		g.fillStyle = this.color("--panel");
		g.globalAlpha = 0.72;
		g.fillRect(gutter, 0, left - gutter, high);
		g.fillRect(right, 0, width - right, high);
		g.globalAlpha = 1;
		g.strokeStyle = this.color("--accent");
		g.lineWidth = 1.5;
		g.strokeRect(left + 0.75, 0.75, Math.max(right - left - 1.5, 1.5), high - 1.5);
	}

	drawAxis() {
		const {g, gutter, width} = this, step = niceStep(this.end - this.begin, Math.max((width - gutter) / 110, 2));
		const bottom = this.height, y = OVERVIEW + AXIS / 2 - 2;
		g.lineWidth = 1;
		for (let t = Math.ceil(this.begin / step) * step; t <= this.end; t += step) {
			const x = Math.round(this.x(t)) + 0.5, text = this.tick(t, step);
			g.strokeStyle = this.color("--grid");
			g.beginPath();
			g.moveTo(x, OVERVIEW + AXIS - 4);
			g.lineTo(x, bottom);
			g.stroke();
			g.fillStyle = this.color("--soft");
			g.fillText(text, Math.min(Math.max(x - g.measureText(text).width / 2, gutter), width - g.measureText(text).width), y);
		}
	}

	tick(t, step) {
		const s = t / 1e9, each = step / 1e9;
		if (each >= 60 || s >= 600 && each >= 1) {
			const whole = Math.round(s), two = (n) => String(n).padStart(2, "0");
			return whole >= 3600 ? Math.floor(whole / 3600) + ":" + two(Math.floor(whole / 60) % 60) + ":" + two(whole % 60) : Math.floor(whole / 60) + ":" + two(whole % 60);
		}
		return s.toFixed(Math.min(Math.max(0, Math.ceil(-Math.log10(each))), 9)) + SPACE + "s";
	}

	drawLane(lane, top) {
		const {g, gutter, width} = this;
		this.label(lane.of ? lane.name + " \u00d7" + SPACE + lane.of : lane.name, top + LANE / 2);
		g.fillStyle = this.color("--sunk");
		g.globalAlpha = 0.55;
		g.fillRect(gutter, top, width - gutter, LANE);
		g.globalAlpha = 1;
		this.drawBins(lane, top);
		if (!this.exactNow(lane))
			return;
		for (const [begin, end] of this.model.known)
			if (begin < this.end && end > this.begin)
				this.drawSpans(lane, top, Math.max(begin, this.begin), Math.min(end, this.end));
	}

	drawBins(lane, top) {
		const {g, gutter, width, model} = this, wide = width - gutter;
		const step = lane.rows.length * this.lanes.length > 150 ? 2 : 1, perPixel = (this.end - this.begin) / wide;
		for (let x = 0; x < wide; x += step) {
			const a = (this.begin + x * perPixel) / model.binNs, b = (this.begin + (x + step) * perPixel) / model.binNs;
			let y = top + LANE;
			for (const row of lane.rows) {
				const part = Math.min(sumBetween(row.busy, a, b) / (b - a) / lane.scale * LANE, y - top);
				if (part < 0.04)
					continue;
				g.fillStyle = this.colors[row.tag];
				g.fillRect(gutter + x, y - part, step, part);
				y -= part;
			}
		}
	}

	drawSpans(lane, top, begin, end) {
		const {g} = this, left = this.x(begin), right = this.x(end), rows = lane.exact.deepest + 1;
		g.save();
		g.beginPath();
		g.rect(left, top, right - left, LANE);
		g.clip();
		g.fillStyle = this.color("--panel");
		g.fillRect(left, top, right - left, LANE);
		g.fillStyle = this.color("--sunk");
		g.globalAlpha = 0.55;
		g.fillRect(left, top, right - left, LANE);
		g.globalAlpha = 1;
		for (const span of this.spansBetween(lane, begin, end)) {
			const x = this.x(span.begin), wide = Math.max(this.x(span.end) - x, 0.6);
			const y = lane.overlaps ? top + span.depth * LANE / rows : top + Math.min(span.depth * 4, LANE - 6);
			const high = lane.overlaps ? Math.max(LANE / rows - 0.5, 0.5) : top + LANE - y;
			g.fillStyle = this.colors[span.tag];
			g.fillRect(x, y, wide > 3 ? wide - 0.7 : wide, high);
			if (wide > 46 && high > 12)
				this.drawName(span, x, y, wide, high);
		}
		g.restore();
	}

	drawName(span, x, y, wide, high) {
		const {g} = this, text = span.name || this.model.tags[span.tag], from = Math.max(x, this.gutter) + 5;
		if (g.measureText(text).width > x + wide - from - 4)
			return;
		g.fillStyle = this.color("--on-tag");
		g.fillText(text, from, y + high / 2);
	}

	drawCurves(group, top) {
		const {g, gutter, width} = this, high = CURVE - 6;
		this.label(group.name, top + 12);
		this.label("0 " + DASH + " " + number(group.top), top + 28, "--soft");
		g.strokeStyle = this.color("--line");
		g.lineWidth = 1;
		g.beginPath();
		g.moveTo(gutter, top + high + 0.5);
		g.lineTo(width, top + high + 0.5);
		g.stroke();
		const y = (value) => top + high - Math.min(Math.max(value / group.top, 0), 1) * high;
		g.save();
		g.beginPath();
		g.rect(gutter, top - 1, width - gutter, CURVE);
		g.clip();
		if (group.total)
			this.drawCurve(group.total, y);
		else
			this.drawSum(group, y);
		g.restore();
	}

	drawCurve(curve, y) {
		const {g} = this, all = curve.points, near = all.filter((point, i) => (all[i + 1] || point).end >= this.begin && (all[i - 1] || point).begin <= this.end);
		// A value is drawn at the middle of its bin; the first and the last also reach the edge of theirs.
		const points = near.map((point) => ({...point, x: this.x((point.begin + point.end) / 2)}));
		if (!points.length)
			return;
		const first = points[0], last = points[points.length - 1];
		points.unshift({...first, x: this.x(first.begin)});
		points.push({...last, x: this.x(Math.min(last.end, this.model.end))});
		g.fillStyle = this.color("--band");
		g.beginPath();
		points.forEach((point) => g.lineTo(point.x, y(point.max)));
		points.slice().reverse().forEach((point) => g.lineTo(point.x, y(point.min)));
		g.fill();
		this.line(points.map((point) => [point.x, y(point.mean)]));
	}

	drawSum(group, y) {
		const points = [];
		for (let x = this.gutter; x <= this.width; x += 2) {
			const at = group.curves.map((curve) => pointAt(curve, this.timeAt(x))).filter(Boolean);
			if (at.length)
				points.push([x, y(at.reduce((sum, point) => sum + point.mean, 0))]);
		}
		this.line(points);
	}

	line(points) {
		const {g} = this;
		g.strokeStyle = this.color("--curve");
		g.lineWidth = 1.5;
		g.lineJoin = "round";
		g.beginPath();
		points.forEach(([x, y]) => g.lineTo(x, y));
		g.stroke();
	}
}
