// What steps and runs are doing, in a word and in a sentence; and metrics as text.

function plural(count, word) {
	return number(count) + " " + word + (count === 1 ? "" : "s");
}

// Of a step as leat.yaml is now: {done, stale, waits, why}, which are missing if nothing was built yet. `last`: its counters
// in the newest run.
function stateNow(step, last) {
	const base = {done: step.done || 0, running: 0, failed: 0, actions: step.actions};
	if (step.done === undefined)
		return {...base, state: "stale", word: "not built"};
	if (step.why)
		return {...base, state: "failed", word: step.why};
	if (step.done >= step.actions)
		return {...base, state: "done", word: step.actions === 1 ? "up to date" : number(step.done) + " up to date"};
	if (last && last.failed)
		return {...base, state: "failed", failed: last.failed, word: step.actions === 1 ? "failed" : number(last.failed) + " failed"};
	const parts = [step.stale && number(step.stale) + " to run", step.waits && number(step.waits) + " may follow"].filter(Boolean);
	return {...base, state: "stale", word: step.actions === 1 ? "to run" : parts.join(", ")};
}

// Of a step in a run, from its counters.
function stateIn(step, running) {
	const done = step.cached + step.ran + step.same, now = running ? step.running : 0, base = {done, running: now, failed: step.failed, actions: step.actions};
	const of = number(done) + " of " + number(step.actions);
	if (step.failed)
		return {...base, state: "failed", word: step.actions === 1 ? "failed" : number(step.failed) + " failed, " + of + " done"};
	if (now)
		return {...base, state: "running", word: step.actions === 1 ? "running" : of + ", " + number(now) + " running"};
	if (done >= step.actions)
		return {...base, state: "done", word: step.ran + step.same === 0 ? "reused" : step.same && !step.ran ? "same result" : "done"};
	if (step.skipped)
		return {...base, state: "skipped", word: "skipped: an input failed"};
	return {...base, state: "waiting", word: done ? of : running ? "waiting" : "not run"};
}

function isRunning(run) {
	return Boolean(run && run.alive && !run.end);
}

// {state, word} of a run: as in /api/runs, or as in /api/run.
function stateOf(run) {
	if (isRunning(run))
		return {state: "running", word: "running"};
	if (!run.end)
		return {state: "killed", word: "killed"};
	const state = endOf(run.end);
	return {state, word: state === "failed" ? number(run.end.failed) + " failed" : state === "broken" ? "ended by an error" : state};
}

// "done", "failed", "stopped" or "broken". Logs of older versions do not say it.
function endOf(end) {
	const unfinished = end.cached + end.ran + end.failed + end.skipped < end.actions;
	return ["done", "failed", "stopped", "broken"].includes(end.state) ? end.state : end.failed ? "failed" : unfinished ? "stopped" : "done";
}

function stateMark(state) {
	return h("span", {class: "state " + state.state}, state.word);
}

// Totals of a run: from its end, or from its steps while it runs. "ran" is without "same", which the end counts in both.
function totalsOf(run) {
	if (run.end)
		return {...run.end, ran: run.end.ran - run.end.same};
	const sum = (key) => list(run.steps).reduce((total, step) => total + (step[key] || 0), 0);
	return Object.fromEntries(["actions", "cached", "ran", "same", "failed", "skipped", "running"].map((key) => [key, sum(key)]));
}

function totalsText(totals) {
	const parts = [["ran", "ran"], ["same", "ran with the same result"], ["cached", "reused"], ["failed", "failed"], ["skipped", "skipped"]];
	return parts.filter(([key]) => totals[key]).map(([key, word]) => number(totals[key]) + " " + word).join(", ") || "nothing ran";
}

function clockOf(at) {
	return isNumber(at) ? new Date(at * 1000).toLocaleString("sv-SE") : DASH;
}

// One message of /api/events, into the run that it is about.
function applyLine(run, message) {
	const line = message.line, same = (one) => one.step === line.step && one.slice === line.slice, i = run.steps.findIndex((step) => message.step && step.step === message.step.step);
	if (message.step)
		run.steps[i < 0 ? run.steps.length : i] = message.step;
	if (line.event === "begin")
		run.begin = line;
	if (line.event === "end")
		run.end = line;
	if (line.event === "start")
		run.running = [...run.running.filter((one) => !same(one)), line];
	if (["ran", "same", "failed", "stopped"].includes(line.event))
		run.running = run.running.filter((one) => !same(one));
	if (line.event === "failed")
		run.failed.push(line);
	else if (["ran", "same", "cached"].includes(line.event))
		run.lines.push(line);
}

// ---- metrics ----

// Metrics are compared: they are shown with more digits than other figures.
function metricNumber(x) {
	return isNumber(x) ? x.toLocaleString("en-US", {maximumSignificantDigits: 6, notation: x && (Math.abs(x) < 1e-4 || Math.abs(x) >= 1e9) ? "scientific" : "standard"}).replace("-", MINUS) : DASH;
}

function metricText(metric) {
	if (!metric)
		return DASH;
	if (metric.n === undefined)
		return plain(metric.text);
	return metricNumber(metric.sum / metric.n) + (metric.n > 1 && metric.min !== metric.max ? " (" + metricNumber(metric.min) + " to " + metricNumber(metric.max) + ")" : "");
}

function changeText(a, b) {
	const was = a && a.n ? a.sum / a.n : NaN, now = b && b.n ? b.sum / b.n : NaN, share = (now - was) / Math.abs(was);
	return was === now ? "" : isNumber(share) ? (share > 0 ? "+" : "") + percent(share) : "";
}

// What the metrics of a step in two runs are over, and why one is missing. Null: all actions of both.
function compareNote(a, b, reusedA, reusedB) {
	if (!a || !b)
		return (a ? reusedB : reusedA) ? "Run " + (a ? "B" : "A") + " reused results, which its log does not list." : "Only in run " + (a ? "A" : "B") + ".";
	const over = (step, reused) => number(step.counted || 0) + " of " + plural(Math.max(step.actions, step.counted || 0) + reused, "action");
	const part = (step, reused) => (step.counted || 0) < step.actions + reused;
	return a.counted !== b.counted || part(a, reusedA) || part(b, reusedB) ? "Metrics are over " + over(a, reusedA) + " in A, " + over(b, reusedB) + " in B." : null;
}
