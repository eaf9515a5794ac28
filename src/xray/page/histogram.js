// A histogram [[upper bound in ms, count], ...] on a logarithmic axis, with p50 and p99 marked. Empty buckets may be left
// out. A second histogram, if given, is an outline over the first; both are shares of their own total.

function cleanHistogram(buckets) {
	const there = (Array.isArray(buckets) ? buckets : []).filter((bucket) => Array.isArray(bucket) && bucket[0] > 0 && isFinite(bucket[0]) && bucket[1] >= 0);
	return there.slice(0, 1000).sort((x, y) => x[0] - y[0]);
}

// Buckets with their lower bound. Those of Leat are an eighth of their lower bound wide at most; wider ones touch.
function withLower(buckets) {
	let narrowest = Infinity;
	for (let i = 1; i < buckets.length; i++)
		narrowest = Math.min(narrowest, buckets[i][0] / buckets[i - 1][0]);
	const total = buckets.reduce((sum, [, count]) => sum + count, 0) || 1;
	return buckets.map(([upper, count], i) => {
		const before = i ? buckets[i - 1][0] : 0, least = upper * 8 / 9;
		const lower = narrowest > 9 / 8 + 0.01 ? before || upper / (isFinite(narrowest) ? narrowest : 9 / 8) : Math.max(before, least);
		return {lower, upper, count, share: count / total};
	}).filter((bucket) => bucket.count > 0);
}

// 1, 2, 5, 10, ... between two times, so many that labels have room.
function logTicks(low, high) {
	const all = [];
	for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++)
		for (const digit of [1, 2, 5])
			all.push(digit * 10 ** power);
	const inside = all.filter((tick) => tick >= low * 0.999 && tick <= high * 1.001);
	return inside.length <= 10 ? inside : inside.filter((tick) => /^1(e|0|$)|^0\.0*1$/.test(String(Number(tick.toPrecision(1)))));
}

// Where the axis begins: the few shortest, such as a batch that was ready before it was asked for, would take most of it.
function lowest(buckets) {
	let seen = 0;
	const found = buckets.find((bucket) => (seen += bucket.share) > 0.02);
	return found ? found.lower : Infinity;
}

function histogram(name, one, figures, two) {
	const first = withLower(cleanHistogram(one)), second = withLower(cleanHistogram(two)), both = [...first, ...second];
	if (!both.length)
		return null;
	const wide = 560, high = 132;
	const low = Math.min(lowest(first), lowest(second)) / 1.1, top = Math.max(...both.map((bucket) => bucket.upper)) * 1.1;
	const x = (ms) => Math.log(ms / low) / Math.log(top / low) * wide, tallest = Math.max(...both.map((bucket) => bucket.share));
	const y = (share) => high - share / tallest * (high - 26);
	const close = Math.abs(x(figures.p99) - x(figures.p50)) < 30;
	const marks = ["p50", "p99"].filter((key) => !second.length && figures[key] > low && figures[key] < top).map((key) => {
		const at = x(figures[key]), left = at > wide - 40;
		return [h("svg:line", {class: "mark", x1: at, x2: at, y1: 0, y2: high}),
			h("svg:text", {x: at + (left ? -4 : 4), y: close && key === "p99" ? 21 : 9, "text-anchor": left ? "end" : "start"}, key)];
	});
	const label = name + ": " + ["p50", "p99", "max"].filter((key) => isNumber(figures[key])).map((key) => key + " " + milliseconds(figures[key])).join(", ");
	const outline = second.filter((bucket) => bucket.lower >= low).map((bucket) => "M" + x(bucket.lower) + " " + high + "V" + y(bucket.share) + "H" + x(bucket.upper) + "V" + high).join("");
	return h("svg", {class: "bars", viewBox: "0 0 " + wide + " " + (high + 20), role: "img", "aria-label": label},
		first.filter((bucket) => bucket.lower >= low).map((bucket) => h("svg:rect", {class: "one", x: x(bucket.lower) + 0.4, y: y(bucket.share), width: Math.max(x(bucket.upper) - x(bucket.lower) - 0.8, 0.8), height: high - y(bucket.share)},
			h("svg:title", {}, number(bucket.count) + ": " + milliseconds(bucket.lower) + " to " + milliseconds(bucket.upper)))),
		outline && h("svg:path", {class: "two", d: outline}),
		h("svg:line", {class: "axis", x1: 0, x2: wide, y1: high, y2: high}),
		logTicks(low, top).map((tick) => h("svg:text", {x: Math.min(Math.max(x(tick), 14), wide - 14), y: high + 14, "text-anchor": "middle"}, milliseconds(tick))),
		marks);
}
