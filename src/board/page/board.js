// The board: views by the part of the URL after '#', each from one or two answers of the server. A view that follows a
// run changes as events arrive.

const main = document.getElementById("main");
let view = 0; // counts views: one that is ready too late is dropped
let leaving = []; // ends streams and timers of the view in sight

function link(...words) {
	return "#/" + words.join("/");
}

function title(text) {
	document.title = text + " \u00b7 Leat board";
	return h("h1", {}, text);
}

// ---- following a run ----

// Calls `handle(kind, data)` for each event, while the page can be seen. After a pause all is sent anew.
function follow(ends, path, handle) {
	let source = null;
	const begin = () => {
		source = new EventSource(path);
		for (const kind of ["run", "line", "over"])
			source.addEventListener(kind, (event) => handle(kind, JSON.parse(event.data)));
	};
	const look = () => {
		if (document.hidden && source) {
			source.close();
			source = null;
		} else if (!document.hidden && !source)
			begin();
	};
	document.addEventListener("visibilitychange", look);
	ends.push(() => {
		document.removeEventListener("visibilitychange", look);
		source?.close();
	});
	look();
}

// Calls `draw` once for all changes until the next frame.
function soon(draw) {
	let asked = false;
	return () => {
		if (asked)
			return;
		asked = true;
		requestAnimationFrame(() => {
			asked = false;
			draw();
		});
	};
}

function every(ends, ms, draw) {
	const timer = setInterval(draw, ms);
	ends.push(() => clearInterval(timer));
}

// ---- parts ----

function actionLink(line) {
	const name = line.id || line.step, made = line.id && line.event !== "failed" && line.event !== "start";
	return [made ? h("a", {href: link("action", line.id)}, name) : name, line.slice ? " " + line.slice : ""];
}

function failure(line, open) {
	return h("div", {class: "failure", "data-failed-step": line.step}, h("p", {}, h("b", {}, actionLink(line)), " ", line.why || "failed"), logBox(line.log, open));
}

// Failures as they come. Those that are there stay as they are, so that a log that was opened stays open.
function failureSection(open) {
	const place = h("div", {}), element = section("Failed", place);
	let shown = 0;
	element.hidden = true;
	return {element, show: (lines) => {
		lines.slice(shown, 100).forEach((line) => place.append(failure(line, open)));
		shown = lines.length;
		element.hidden = !shown;
	}};
}

function runningSection() {
	const place = h("div", {}), element = section("Running now", place);
	const show = (run) => {
		const lines = isRunning(run) ? run.running : [], now = Date.now() / 1000;
		element.hidden = !lines.length;
		place.replaceChildren(table("Running now", [
			{title: "action", head: true, of: actionLink},
			{title: "for", n: true, of: (line) => seconds(Math.max(0, Math.round(now - line.at)))},
			{title: "expected", n: true, of: (line) => (line.expected_s > 0 ? seconds(line.expected_s) : DASH)}], lines.slice(0, 100)));
	};
	return {element, show};
}

// Two runs are chosen by their marks.
function runTable(runs) {
	const chosen = () => [...place.querySelectorAll("input:checked")].map((input) => input.value);
	const button = h("button", {type: "button", disabled: true, onclick: () => { location.hash = link("compare", ...chosen().reverse()); }}, "Compare");
	const mark = (run) => h("input", {type: "checkbox", value: run.run, "aria-label": "choose " + run.run, onchange: () => { button.disabled = chosen().length !== 2; }});
	const place = h("div", {}, h("div", {class: "tools"}, button, h("span", {class: "note"}, "Choose two runs.")), table("Runs", [
		{title: "", of: mark},
		{title: "run", head: true, of: (run) => h("a", {href: link("run", run.run)}, run.begin ? clockOf(run.begin.at) : run.run)},
		{title: "state", of: (run) => stateMark(stateOf(run))},
		{title: "actions", class: "text", of: (run) => (run.end ? totalsText(totalsOf(run)) : DASH)},
		{title: "time", n: true, of: (run) => seconds(run.end && run.end.seconds)},
		{title: "saved by reuse", n: true, of: (run) => seconds(run.end && run.end.saved_s)},
		{title: "targets", class: "text", of: (run) => (((run.begin || {}).targets || []).join(" ") || "all")}], runs));
	return place;
}

// ---- the first view: what is built, and what has been ----

function sentenceNow(graph, run) {
	if (isRunning(run)) {
		const totals = totalsOf(run);
		return "Building: " + number(totals.cached + totals.ran + totals.same) + " of " + plural(totals.actions, "action") + " done"
			+ (totals.failed ? ", " + number(totals.failed) + " failed" : "") + ".";
	}
	const steps = graph.steps, sum = (key) => steps.reduce((total, step) => total + (step[key] || 0), 0), todo = sum("stale") + sum("waits");
	if (!steps.length)
		return graph.error ? "leat.yaml cannot be read." : "There are no steps here yet.";
	if (steps.every((step) => step.done === undefined))
		return plural(steps.length, "step") + ", not built yet.";
	return todo ? number(todo) + " of " + plural(sum("actions"), "action") + " to run." : "Everything is up to date.";
}

// The graph of the project, with states: {folder, error, sources, steps}.
async function getGraph() {
	const {folder, error, graph} = await getJson("/api/graph");
	const steps = list(graph && graph.steps).map((step) => ({step: step.name, in: step.in, actions: step.slices || 1, done: step.made, stale: step.to_run, waits: step.waiting, why: step.why}));
	return {folder, error, sources: list(graph && graph.sources), steps};
}

function runsPart(runs) {
	return runs.length ? runTable(runs) : h("p", {class: "note"}, "None yet: run 'leat build'.");
}

async function home(ends) {
	let [graph, {runs}] = await Promise.all([getGraph(), getJson("/api/runs")]), run = null;
	const heading = title(sentenceNow(graph, null)), note = h("p", {class: "note", role: "status"}), failed = failureSection(false), running = runningSection(), runsPlace = h("div", {}, runsPart(runs));
	const shape = (one) => JSON.stringify(one.steps.map((step) => [step.step, step.in, step.actions]));
	const drawn = makeGraph(graph.steps, graph.sources, (step) => link("step", step));
	const draw = () => {
		heading.textContent = sentenceNow(graph, run);
		note.textContent = isRunning(run) ? "" : graph.error;
		graph.steps.forEach((step) => {
			const tally = run && run.steps.find((one) => one.step === step.step);
			drawn.show(step.step, tally && isRunning(run) ? stateIn(tally, true) : stateNow(step, tally));
		});
		running.show(run);
	};
	// After a run: states have changed, and the list of runs. What the user opened stays open.
	const refresh = async () => {
		const [now, past] = await Promise.all([getGraph(), getJson("/api/runs")]);
		if (shape(now) !== shape(graph))
			return route();
		graph = now;
		runs = past.runs;
		runsPlace.replaceChildren(runsPart(runs));
		return draw();
	};
	const later = soon(draw);
	follow(ends, "/api/events", (kind, data) => {
		if (kind === "run" && run && run.run !== data.run)
			return route(); // another run began
		if (kind === "run")
			run = data;
		else if (kind === "line")
			applyLine(run, data);
		else
			run.alive = false;
		failed.show(run.failed);
		later();
		return kind === "over" || (kind === "run" && !runs.some((one) => one.run === data.run)) ? refresh() : null;
	});
	document.getElementById("source").textContent = graph.folder || "";
	every(ends, 1000, draw);
	draw();
	return [heading, note, drawn && section("Steps", drawn.element), running.element, failed.element, section("Runs", runsPlace)];
}

// ---- one run ----

function linesTable(lines) {
	return table("Actions", [
		{title: "action", head: true, of: actionLink}, {title: "", of: (line) => ({ran: "ran", same: "ran, same result", cached: "reused"}[line.event] || line.event)},
		{title: "time", n: true, of: (line) => seconds(line.seconds)}, {title: "CPU time", n: true, of: (line) => seconds(line.cpu_s)},
		{title: "finished", n: true, of: (line) => clockOf(line.at)}], lines);
}

function runFigures(run) {
	const totals = totalsOf(run);
	return h("dl", {class: "figures"}, figure("state", "state", stateOf(run).word), figure("actions", "actions", number(totals.actions)),
		figure("ran", "ran", number(totals.ran + totals.same), totals.same && number(totals.same) + " with the same result"), figure("cached", "reused", number(totals.cached)),
		figure("failed", "failed", number(totals.failed), totals.skipped && number(totals.skipped) + " skipped"),
		isNumber(totals.seconds) && figure("seconds", "time", seconds(totals.seconds), isNumber(totals.saved_s) && "reuse saved " + seconds(totals.saved_s)));
}

async function runView(ends, name, step) {
	const run = await getJson("/api/run/" + name), of = (lines) => lines.filter((line) => !step || line.step === step);
	const drawn = makeGraph(run.steps, [], (one) => link("run", name, one)), failed = failureSection(Boolean(step)), running = runningSection();
	const figures = h("div", {}), actions = h("div", {});
	const draw = () => {
		figures.replaceChildren(runFigures(run));
		run.steps.forEach((one) => drawn?.show(one.step, stateIn(one, isRunning(run))));
		failed.show(of(run.failed));
		running.show(run);
		const lines = of(run.lines).slice(-200).reverse(), all = of(run.lines).length + run.left_out;
		actions.replaceChildren(linesTable(lines), all > lines.length ? h("p", {class: "note"}, "The last " + number(lines.length) + " of " + number(all) + ".") : "");
	};
	if (isRunning(run)) {
		const later = soon(draw);
		follow(ends, "/api/events/" + name, (kind, data) => {
			if (kind === "run" && !run.begin && data.begin)
				return route(); // its steps are known now
			if (kind === "run")
				Object.assign(run, data);
			else if (kind === "line")
				applyLine(run, data);
			else
				run.alive = false;
			later();
			return null;
		});
		every(ends, 1000, () => running.show(run));
	}
	draw();
	return [title((step ? step + " in the run of " : "Run of ") + clockOf((run.begin || {}).at)), figures, section("Steps", drawn && drawn.element,
		step && h("p", {class: "note"}, h("a", {href: link("run", name)}, "All steps of this run"))), running.element, failed.element, section("Actions", actions)];
}

// ---- one step ----

function stepFacts(step) {
	const rows = [["command", h("code", {}, step.text)], ["reads", step.in.join(", ") || DASH], ["cpus", number(step.cpus)],
		...Object.entries(step.params).map(([name, value]) => [name, value]), ["line of leat.yaml", number(step.line)]];
	return table("Step", [{title: "", head: true, of: (row) => row[0]}, {title: "", class: "text", of: (row) => row[1]}], rows);
}

async function lastFailures(name) {
	try {
		const run = await getJson("/api/run/" + (await getJson("/api/runs")).runs[0].run);
		return run.failed.filter((line) => line.step === name);
	} catch (error) {
		return []; // nothing was built yet
	}
}

async function stepView(ends, name) {
	const [step, lines] = await Promise.all([getJson("/api/step/" + name), lastFailures(name)]), failed = failureSection(true);
	failed.show(lines);
	return [title("Step " + name), failed.element, section("leat.yaml", stepFacts(step)), section("Results", table("Results", [
		{title: "slice", head: true, of: (row) => row.slice || "all"}, {title: "made by", of: (row) => (row.id ? h("a", {href: link("action", row.id)}, row.id) : DASH)},
		{title: "time", n: true, of: (row) => seconds(row.seconds)}, {title: "size", n: true, of: (row) => bytes(row.bytes)}], step.made),
		step.actions > step.made.length && h("p", {class: "note"}, "The first " + number(step.made.length) + " of " + number(step.actions) + "."))];
}

// ---- one action ----

function makerLink(maker) {
	return maker ? [h("a", {href: link("action", maker.step + "-" + maker.number)}, maker.step + "-" + maker.number), maker.slice ? " " + maker.slice : ""] : "a source";
}

function inputRows(action) {
	return action.inputs.flatMap((input) => (input.maker || !list(input.files).some((file) => file.maker) ? [input]
		: input.files.map((file) => ({...file, name: input.name + "/" + file.name}))));
}

function actionFigures(action) {
	return h("dl", {class: "figures"}, figure("seconds", "time", seconds(action.seconds), clockOf(action.begun)),
		figure("cpu_s", "CPU time", seconds(action.cpu_s), plural(action.cpus, "cpu") + " granted", plural(action.threads, "thread") + " seen"),
		figure("peak_bytes", "peak memory", action.peak_bytes ? bytes(action.peak_bytes) : DASH), figure("bytes", "output", bytes(action.output.bytes)),
		action.attempts > 1 && figure("attempts", "attempts", number(action.attempts)));
}

async function actionView(ends, id) {
	const action = await getJson("/api/action/" + id), metrics = Object.entries(action.metrics);
	return [title(id + (action.slice ? " (" + action.slice + ")" : "")), actionFigures(action), action.warning && h("p", {class: "note worse"}, action.warning),
		section("Output", fileList(action.output, id)),
		metrics.length ? section("Metrics", table("Metrics", [{title: "metric", head: true, of: (row) => row[0]}, {title: "value", n: true, of: (row) => (isNumber(row[1]) ? metricNumber(row[1]) : plain(row[1]))}], metrics)) : null,
		section("Inputs", table("Inputs", [{title: "input", head: true, of: (row) => row.name}, {title: "made by", of: (row) => makerLink(row.maker)},
			{title: "size", n: true, of: (row) => bytes(row.bytes)}, {title: "", of: (row) => (row.kind === "file" && row.maker ? h("a", {href: "/blob/" + row.hash + "?download=1", download: row.name}, "Save") : "")}], inputRows(action))),
		section("What it printed", logBox(action.log, true)),
		section("Key", table("Key", [{title: "field", head: true, of: (row) => row.name}, {title: "value", class: "text", of: (row) => h("code", {}, row.value)},
			{title: "", of: (row) => (row.learned ? "found when it ran" : "")}], action.fields),
			h("p", {class: "note"}, "If all of these are equal, the action is not run again. Its run: ", h("a", {href: link("run", action.run)}, action.run)))];
}

// ---- two runs ----

function pairs(a, b) {
	return [...new Set([...Object.keys(a || {}), ...Object.keys(b || {})])].map((name) => ({name, a: (a || {})[name], b: (b || {})[name]}));
}

// Params and metrics always, other fields if they differ.
function compareStep(name, a, b, note) {
	const differs = (row) => row.a !== row.b;
	const fields = pairs(a && a.fields, b && b.fields).filter((row) => (a && b && differs(row)) || row.name.startsWith("param."));
	const metrics = pairs(a && a.metrics, b && b.metrics), cell = (text, row) => h("span", {class: differs(row) && "differs"}, text);
	return h("section", {"aria-label": name, "data-compare": name}, h("h2", {}, name), note && (!a || !b || metrics.length) ? h("p", {class: "note"}, note) : null,
		metrics.length ? table("Metrics of " + name, [{title: "metric", head: true, of: (row) => row.name}, {title: "A", n: true, of: (row) => metricText(row.a)},
			{title: "B", n: true, of: (row) => metricText(row.b)}, {title: "change", n: true, of: (row) => changeText(row.a, row.b)}], metrics) : null,
		fields.length ? table("Fields of " + name, [{title: "field", head: true, of: (row) => row.name.replace(/^param\./, "")},
			{title: "A", class: "text", of: (row) => cell(row.a ?? DASH, row)}, {title: "B", class: "text", of: (row) => cell(row.b ?? DASH, row)}], fields) : null,
		!metrics.length && !fields.length ? h("p", {class: "note"}, "The same in both.") : null);
}

function runHead(letter, run) {
	return {letter, run, totals: run.end ? totalsOf(run) : {}};
}

async function compareView(ends, first, second) {
	const {a, b} = await getJson("/api/compare/" + first + "/" + second), names = [...new Set([...Object.keys(a.steps), ...Object.keys(b.steps)])];
	const order = new Map([...list((b.begin || {}).steps), ...list((a.begin || {}).steps)].map((step, i) => [step.step, i]));
	const unlisted = (run, name) => Math.max(0, (run.reused[name] || 0) - ((run.steps[name] || {}).reused || 0));
	names.sort((x, y) => (order.get(x) ?? 1e9) - (order.get(y) ?? 1e9));
	return [title("Two runs compared"), section("Runs", table("Runs", [
		{title: "", head: true, of: (row) => row.letter}, {title: "run", of: (row) => h("a", {href: link("run", row.run.run)}, clockOf((row.run.begin || {}).at))},
		{title: "state", of: (row) => stateMark(stateOf(row.run))}, {title: "actions", class: "text", of: (row) => totalsText(row.totals)},
		{title: "time", n: true, of: (row) => seconds(row.totals.seconds)}], [runHead("A", a), runHead("B", b)])),
		names.map((name) => attempt(() => compareStep(name, a.steps[name], b.steps[name], compareNote(a.steps[name], b.steps[name], unlisted(a, name), unlisted(b, name))))), names.length ? null : h("p", {class: "note"}, "Neither run made anything.")];
}

// ---- the whole ----

const VIEWS = {run: [runView, 1, 2], step: [stepView, 1, 1], action: [actionView, 1, 1], compare: [compareView, 2, 2]};

function viewOf(hash) {
	const [name, ...words] = hash.replace(/^#\/?/, "").split("/"), found = Object.hasOwn(VIEWS, name) && VIEWS[name];
	const good = found && words.length >= found[1] && words.length <= found[2] && words.every((word) => /^[A-Za-z0-9_-]+$/.test(word));
	return good ? (ends) => found[0](ends, ...words) : home;
}

async function route() {
	const mine = ++view, ends = [], end = (all) => all.forEach((one) => one());
	end(leaving);
	leaving = [];
	let content;
	try {
		content = await viewOf(location.hash)(ends);
	} catch (error) {
		content = [title("This cannot be shown"), h("p", {role: "alert"}, error.message)];
	}
	if (mine !== view)
		return end(ends);
	leaving = ends;
	main.replaceChildren(...content.flat(Infinity).filter(Boolean));
	document.querySelector("nav a").toggleAttribute("aria-current", viewOf(location.hash) === home);
	document.documentElement.dataset.ready = String(mine);
	return null;
}

function startBoard() {
	// The token is in a cookie now: it need not stay in the history.
	if (location.search)
		history.replaceState(null, "", location.pathname + location.hash);
	document.querySelector("header .brand").after(h("nav", {"aria-label": "Board"}, h("a", {href: "#/"}, "Overview")));
	document.getElementById("written").textContent = "Leat " + ((read("leat-about") || {}).version || "");
	followTheme();
	window.addEventListener("hashchange", route);
	route();
}

startBoard();
