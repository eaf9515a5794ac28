// The graph of steps: layers from left to right, inputs before what reads them.

const BOX = {width: 178, height: 62, across: 48, down: 18, source: 34};

// Sets the layer of each node: one more than the highest of its inputs.
function setLayers(nodes, byName) {
	const depth = (node, above) => {
		if (node.layer === undefined && !above.has(node))
			node.layer = Math.max(0, ...node.in.map((name) => depth(byName.get(name), new Set(above).add(node)) + 1));
		return node.layer || 0;
	};
	nodes.forEach((node) => depth(node, new Set()));
}

// An edge as the nodes it passes: with a bend in each layer between, so that it does not cross boxes.
function pathOf(from, to, put) {
	const path = [from];
	for (let layer = from.layer + 1; layer < to.layer; layer++)
		path.push(put({bend: true, layer, before: [], after: []}));
	path.push(to);
	path.slice(1).forEach((item, i) => {
		item.before.push(path[i]);
		path[i].after.push(item);
	});
	return path;
}

function layersOf(nodes) {
	const byName = new Map(nodes.map((node) => [node.name, node])), layers = [];
	const put = (item) => {
		(layers[item.layer] ??= []).push(item);
		return item;
	};
	nodes.forEach((node) => Object.assign(node, {before: [], after: [], in: node.in.filter((name) => byName.has(name))}));
	setLayers(nodes, byName);
	nodes.forEach(put);
	return {layers, edges: nodes.flatMap((node) => node.in.map((name) => pathOf(byName.get(name), node, put)))};
}

// Each layer in the order of the means of its neighbours, a few times forth and back: few crossings.
function orderLayers(layers) {
	const share = (item) => item.place / layers[item.layer].length;
	const count = (layer) => layer.forEach((item, i) => { item.place = i; });
	const sort = (layer, side) => {
		layer.forEach((item) => {
			const near = item[side];
			item.mean = near.length ? near.reduce((sum, one) => sum + share(one), 0) / near.length : share(item);
		});
		layer.sort((a, b) => a.mean - b.mean || a.place - b.place);
		count(layer);
	};
	layers.forEach(count);
	for (let round = 0; round < 6; round++) {
		layers.slice(1).forEach((layer) => sort(layer, "before"));
		layers.slice(0, -1).reverse().forEach((layer) => sort(layer, "after"));
	}
}

function placeLayers(layers) {
	const heightOf = (item) => (item.bend ? 6 : item.source ? BOX.source : BOX.height);
	const total = (layer) => layer.reduce((sum, item) => sum + heightOf(item) + BOX.down, -BOX.down);
	const tallest = Math.max(...layers.map(total));
	layers.forEach((layer, i) => {
		let y = (tallest - total(layer)) / 2 + 4;
		layer.forEach((item) => {
			Object.assign(item, {x: 4 + i * (BOX.width + BOX.across), y, height: heightOf(item), width: BOX.width});
			y += item.height + BOX.down;
		});
	});
	return {width: 8 + layers.length * (BOX.width + BOX.across) - BOX.across, height: tallest + 8};
}

function short(text, most) {
	return text.length > most ? text.slice(0, most - 1) + "\u2026" : text;
}

function drawEdge(path) {
	let d = "";
	path.slice(1).forEach((to, i) => {
		const from = path[i], x0 = from.x + from.width, y0 = from.y + from.height / 2, x1 = to.x - (to.bend ? 0 : 5), y1 = to.y + to.height / 2;
		const middle = (x0 + x1) / 2;
		d += (i ? "L" : "M") + x0 + " " + y0 + "C" + middle + " " + y0 + " " + middle + " " + y1 + " " + x1 + " " + y1;
	});
	const end = path[path.length - 1], x = end.x, y = end.y + end.height / 2;
	return [h("svg:path", {class: "edge", d}), h("svg:path", {class: "tip-of-edge", d: "M" + (x - 7) + " " + (y - 4) + "l7 4l-7 4z"})];
}

function drawSource(node) {
	return h("svg:g", {class: "source", transform: "translate(" + node.x + " " + node.y + ")"}, h("svg:title", {}, "source: " + (node.about || node.name)),
		h("svg:rect", {class: "box", width: node.width, height: node.height, rx: 9}), h("svg:text", {class: "name", x: 12, y: 22}, short(node.name, 20)));
}

// A node, and how it shows a state {state, word, done, running, failed, actions}.
function drawStep(node, link) {
	const bar = node.width - 24, part = (name) => h("svg:rect", {class: name, y: 48, height: 5});
	const about = h("svg:text", {class: "about", x: 12, y: 40}), parts = {done: part("good"), running: part("now"), failed: part("bad")};
	const box = h("svg:g", {transform: "translate(" + node.x + " " + node.y + ")"},
		h("svg:rect", {class: "box", width: node.width, height: node.height, rx: 9}), h("svg:text", {class: "name", x: 12, y: 22}, short(node.name, 20)),
		about, h("svg:rect", {class: "track", x: 12, y: 48, width: bar, height: 5, rx: 2}), Object.values(parts));
	const element = h("svg:a", {href: link(node.name), "data-step": node.name}, box);
	const show = (state) => {
		let x = 12;
		box.setAttribute("class", "step " + state.state);
		element.dataset.state = state.state;
		element.setAttribute("aria-label", node.name + ": " + state.word);
		about.textContent = short(state.word, 26);
		for (const [name, rect] of Object.entries(parts)) {
			const width = bar * Math.min(1, (state[name] || 0) / Math.max(1, state.actions));
			rect.setAttribute("x", x);
			rect.setAttribute("width", width);
			x += width;
		}
	};
	return {element, show};
}

// steps: [{step, in}], sources: [{name, pattern}]; link(step) -> URL. Its `show(step, state)` changes a node.
function makeGraph(steps, sources, link) {
	const names = new Set(steps.map((step) => step.step)), read = [...new Set(steps.flatMap((step) => step.in))];
	const about = new Map(sources.map((source) => [source.name, source.pattern]));
	const nodes = [...read.filter((name) => !names.has(name)).map((name) => ({name, in: [], source: true, about: about.get(name)})),
		...steps.map((step) => ({name: step.step, in: [...new Set(step.in)]}))];
	if (!nodes.length)
		return null;
	const {layers, edges} = layersOf(nodes);
	orderLayers(layers);
	const size = placeLayers(layers), drawn = new Map(nodes.filter((node) => !node.source).map((node) => [node.name, drawStep(node, link)]));
	const svg = h("svg", {class: "graph", width: size.width, height: size.height, viewBox: "0 0 " + size.width + " " + size.height, role: "group", "aria-label": "Graph of steps"},
		edges.map(drawEdge), nodes.filter((node) => node.source).map(drawSource), [...drawn.values()].map((node) => node.element));
	return {element: h("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": "Graph"}, svg), show: (name, state) => drawn.has(name) && drawn.get(name).show(state)};
}
