"use strict";
const report = JSON.parse(document.getElementById("facts").textContent);
const model = new Model(report.model);
const classifies = report.classes.length > 0;
const state = {row: [], output: report.model.link === "softmax" ? null : 0, chosen: null};
const byId = id => document.getElementById(id);
const input = new Map(report.inputs.map(of => [of.column, of]));
/* Those that are looked at one by one and in pairs; the norm of rows that are divided by it is one of them. */
const splitColumns = [...report.inputs.map(of => of.column), ...model.partNames.map((_, j) => j).filter(j => j >= model.names.length)];
const nameOf = columns => [...columns].sort((a, b) => a - b).map(j => model.partNames[j]).join(" × ");
const numbers = values => values.map(value => (value === null ? NaN : value));
const levelsOf = j => [...model.levels[j], ...(model.rare[j] ? ["other levels"] : [])];
const shownAs = (j, value) => (Number.isNaN(value) ? "missing" : model.levels[j] ? levelsOf(j)[value] : format(value));
/* What the model's output is called. */
const unit = classifies ? (report.outputs.length > 1 ? "score" : `log-odds of ${report.outputs[0]}`) : report.outputs.length > 1 ? "output" : report.target || "prediction";

/* ---- inputs */

const controls = new Map();

function buildInputs() {
  byId("inputs").append(...report.inputs.map(of => (of.kind === "number" ? numberInput(of) : categoryInput(of))));
}

function frame(of, ...content) {
  const part = element("span", {class: "part", "aria-hidden": "true"});
  controls.get(of.column).part = part;
  return element("div", {class: "input"}, element("label", {for: `input-${of.column}`}, model.names[of.column]), part, ...content);
}

function numberInput(of) {
  const step = of.whole && of.high - of.low < 1000 ? 1 : (of.high - of.low) / 200 || "any";
  const range = element("input", {type: "range", id: `input-${of.column}`, min: of.low, max: of.high, step});
  const field = element("input", {type: "number", step: "any", "aria-label": `${model.names[of.column]} as a number`, placeholder: "missing"});
  const missing = of.missing ? element("input", {type: "checkbox"}) : null;
  range.addEventListener("input", () => change(of.column, Number(range.value)));
  field.addEventListener("input", () => field.value !== "" && Number.isFinite(field.valueAsNumber) && change(of.column, field.valueAsNumber, field));
  field.addEventListener("change", () => show());
  if (missing) missing.addEventListener("change", () => change(of.column, missing.checked ? NaN : Number(range.value)));
  controls.set(of.column, {
    set(value, typing) {
      const known = !Number.isNaN(value);
      if (known) range.value = value;
      if (typing !== field) field.value = known ? Number(value.toPrecision(6)) : "";
      range.setAttribute("aria-valuetext", shownAs(of.column, value));
      if (missing) missing.checked = !known;
    },
  });
  return frame(of, range, field, missing ? element("label", {class: "missing"}, missing, "missing") : "");
}

function categoryInput(of) {
  const select = element("select", {id: `input-${of.column}`});
  levelsOf(of.column).forEach((level, code) => select.append(element("option", {value: code}, level)));
  if (of.missing) select.append(element("option", {value: "missing"}, "missing"));
  select.addEventListener("change", () => change(of.column, select.value === "missing" ? NaN : Number(select.value)));
  controls.set(of.column, {set(value) { select.value = Number.isNaN(value) ? "missing" : value; }});
  return frame(of, select);
}

function change(column, value, typing) {
  state.row[column] = value;
  byId("example").value = "own";
  show(typing);
}

function buildExamples() {
  const choose = byId("example");
  choose.append(element("option", {value: "typical"}, "a typical row"), ...report.examples.map((_, i) => element("option", {value: i}, `row ${report.example_numbers[i]} of the data`)),
    element("option", {value: "own"}, "values of your own"));
  choose.addEventListener("change", () => {
    if (choose.value === "own") return;
    state.row = numbers(choose.value === "typical" ? report.typical : report.examples[choose.value]);
    show();
  });
}

/* ---- the prediction and its parts */

function show(typing) {
  for (const [column, control] of controls) control.set(state.row[column], typing);
  const outputs = model.outputs(state.row);
  const likely = classifies ? model.probabilities(outputs) : null;
  if (likely && report.outputs.length > 1 && state.output === null) state.output = likely.indexOf(Math.max(...likely));
  showPrediction(outputs, likely);
  const split = model.split(state.row, splitColumns, state.output);
  showParts(split, outputs[state.output]);
  const moves = model.moves(state.row);
  for (const [column, control] of controls) control.part.textContent = signed(model.effect(moves, [column], state.output));
  showChosen();
}

function showPrediction(outputs, likely) {
  const place = byId("prediction"), best = likely && likely.indexOf(Math.max(...likely));
  place.textContent = classifies ? report.classes[best] : format(outputs[state.output], 5);
  place.dataset.outputs = JSON.stringify(outputs);
  byId("prediction-note").textContent = [classifies ? `with probability ${percent(likely[best])}` : "", actual()].filter(Boolean).join("; ");
  const bars = byId("probabilities");
  bars.hidden = !classifies;
  if (classifies) bars.replaceChildren(...likely.map((share, c) => element("li", {}, element("span", {class: "name"}, report.classes[c]),
    element("span", {class: "track"}, element("span", {class: "bar", style: `width:${100 * share}%`})), element("span", {class: "value"}, percent(share)))));
}

function actual() {
  const chosen = byId("example").value;
  if (chosen === "typical" || chosen === "own") return "";
  const value = report.actual[chosen];
  return `actually ${classifies ? value : format(value[state.output], 5)}`;
}

const MOST_PARTS = 9;

function showParts(split, total) {
  const parts = [...split.parts].sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
  const shown = parts.slice(0, MOST_PARTS);
  const rest = parts.slice(MOST_PARTS).reduce((sum, part) => sum + part.value, split.rest);
  const largest = Math.max(...shown.map(part => Math.abs(part.value)), Math.abs(rest), Number.MIN_VALUE);
  const line = (name, value, kind) => element("tr", {class: kind}, element("th", {scope: "row"}, name), element("td", {class: "picture", "aria-hidden": "true"},
    kind ? "" : element("span", {class: value < 0 ? "bar below" : "bar above", style: `--share:${(50 * Math.abs(value)) / largest}%`})), element("td", {class: "value"}, kind ? format(value) : signed(value)));
  byId("parts").replaceChildren(line("average row", split.constant, "total"), ...shown.map(part => line(nameOf(part.columns), part.value, "")),
    ...(Math.abs(rest) > 1e-9 * largest ? [line("everything else", rest, "")] : []), line(classifies ? (report.outputs.length > 1 ? "score" : "log-odds") : "prediction", total, "total"));
}

function buildOutputs() {
  const place = byId("outputs");
  place.closest("p").hidden = report.outputs.length === 1;
  place.append(...report.outputs.map((label, k) => element("option", {value: k}, label)));
  place.addEventListener("change", () => { state.output = Number(place.value); buildMatters(); show(); });
}

/* ---- what matters */

function buildMatters() {
  const view = report.views[state.output];
  byId("outputs").value = state.output;
  const sets = [...view.columns.map(([column, share]) => ({columns: [column], share})), ...view.pairs.map(([a, b, share]) => ({columns: [a, b], share}))];
  const list = (id, count) => {
    const of = sets.filter(set => set.columns.length === count), largest = Math.max(...of.map(set => Math.abs(set.share)), Number.MIN_VALUE);
    byId(id).replaceChildren(...of.map(set => matter(set, largest)));
  };
  list("columns", 1);
  list("pairs", 2);
  byId("pairs").closest("section").hidden = view.pairs.length === 0;
  state.chosen = view.columns.length && controls.has(view.columns[0][0]) ? [view.columns[0][0]] : splitColumns.slice(0, 1);
}

function matter({columns, share}, largest) {
  const content = [element("span", {class: "name"}, nameOf(columns)), element("span", {class: "track"}, element("span", {class: `bar${share < 0 ? " below" : ""}`, style: `width:${(100 * Math.abs(share)) / largest}%`})),
    element("span", {class: "value"}, percent(share))];
  const clickable = columns.every(j => controls.has(j));
  const made = clickable ? element("button", {type: "button", "data-columns": columns.join(), onclick: () => { state.chosen = columns; showChosen(); }}, ...content) : element("div", {class: "row"}, ...content);
  return element("li", {}, made);
}

function showChosen() {
  for (const button of document.querySelectorAll("#matters button")) button.setAttribute("aria-pressed", button.dataset.columns === state.chosen.join());
  byId("effect-title").textContent = nameOf(state.chosen);
  const place = byId("effect");
  if (state.chosen.length === 1) drawCurve(place, state.chosen[0]); else drawSurface(place, ...state.chosen);
}

const MOST_LEVELS = 30;

/* Values of a column to draw at: equal steps, or its levels, the most frequent ones if there are many. */
function gridOf(column, count) {
  const of = input.get(column);
  if (of.kind === "category") {
    const levels = levelsOf(column).map((name, code) => ({name, value: code, count: of.counts[code]}));
    if (of.missing) levels.push({name: "missing", value: NaN, count: of.n_missing});
    const rows = levels.reduce((sum, level) => sum + level.count, 0);
    const least = levels.map(level => level.count).sort((a, b) => b - a)[MOST_LEVELS - 1] ?? 0;
    const shown = levels.filter(level => level.count >= least).slice(0, MOST_LEVELS);
    return {values: shown.map(level => level.value), names: shown.map(level => level.name), below: shown.map(level => percent(level.count / rows))};
  }
  const steps = of.whole && of.high - of.low < count ? of.high - of.low + 1 : count;
  const values = Array.from({length: steps}, (_, i) => (steps > 1 ? of.low + ((of.high - of.low) * i) / (steps - 1) : of.low));
  return {values, low: of.low - of.half, high: of.high + of.half};
}

/* What these columns do to the output at each of some points: their part, which no other column changes. Where rows are divided by their norm
   there is none: then the output for the values in the row above, but these. */
function effects(columns, points) {
  if (model.unitRows) return points.map(values => {
    const row = [...state.row];
    columns.forEach((column, i) => { row[column] = values[i]; });
    return model.outputs(row)[state.output];
  });
  const known = columns.map(() => new Map()), moves = {};
  return points.map(values => {
    columns.forEach((column, i) => {
      if (!known[i].has(values[i])) known[i].set(values[i], model.move(column, model.part(column, values[i])));
      moves[column] = known[i].get(values[i]);
    });
    return model.effect(moves, columns, state.output);
  });
}

function drawCurve(place, column) {
  const of = input.get(column), x = gridOf(column, 100), values = effects([column], x.values.map(value => [value]));
  const now = state.row[column], at = effects([column], [[now]])[0];
  const about = model.unitRows ? `${unit}, the other columns as above` : `change of ${unit}`;
  byId("effect-note").textContent = curveNote(of);
  const label = `${nameOf([column])}: ${about}, from ${format(Math.min(...values))} to ${format(Math.max(...values))}`;
  picture(place, 340, label, (svg, width, height) => {
    const {sx, sy, box} = axes(svg, width, height, {x, y: ends([...values, at, ...(model.unitRows ? [] : [0])]), xLabel: model.names[column], yLabel: about});
    if (!x.names) drawCounts(svg, of, sx, box);
    if (x.names) values.forEach((value, i) => bar(svg, sx(i), sy, value, (0.6 * (box.right - box.left)) / values.length, Object.is(x.values[i], now)));
    else {
      svg.append(shape("polyline", {points: values.map((value, i) => `${sx(x.values[i])},${sy(value)}`).join(" "), class: "curve"}));
      if (!Number.isNaN(now)) svg.append(shape("circle", {cx: Math.max(box.left, Math.min(box.right, sx(now))), cy: sy(at), r: 6, class: "now"}));
    }
  });
}

function curveNote(of) {
  if (of.kind === "category") return "Below each level, its share of the rows; the framed bar is the level chosen above.";
  const bars = "Grey bars: how often values occur; the dot is the value chosen above.";
  if (!of.missing || model.unitRows) return bars;
  const missing = effects([of.column], [[NaN]])[0];
  return `${bars} Where it is missing (${of.n_missing.toLocaleString("en")} rows here): ${signed(missing)}.`;
}

function drawCounts(svg, of, sx, box) {
  const most = Math.max(...of.counts, 1), tall = 0.25 * (box.bottom - box.top);
  const wide = (of.high - of.low + 2 * of.half) / of.counts.length;
  of.counts.forEach((count, i) => {
    const left = sx(of.low - of.half + wide * i), right = sx(of.low - of.half + wide * (i + 1)), height = (tall * count) / most;
    svg.append(shape("rect", {x: left + 0.5, y: box.bottom - height, width: Math.max(0.5, right - left - 1), height, class: "counts"}));
  });
}

function bar(svg, x, sy, value, width, now) {
  const zero = sy(0);
  svg.append(shape("rect", {x: x - width / 2, y: Math.min(zero, sy(value)), width, height: Math.max(1, Math.abs(sy(value) - zero)), class: `${value < 0 ? "below" : "above"}${now ? " chosen" : ""}`}));
}

function drawSurface(place, a, b) {
  const x = gridOf(a, 36), y = gridOf(b, 28);
  const values = effects([a, b], y.values.flatMap(v => x.values.map(u => [u, v])));
  const middle = model.unitRows ? values.reduce((sum, value) => sum + value, 0) / values.length : 0;
  const reach = Math.max(...values.map(value => Math.abs(value - middle)), Number.MIN_VALUE);
  byId("effect-note").textContent = model.unitRows ? "The output, with the other columns as above: orange where it is higher, blue where it is lower." :
    `What the two do together beyond what each does alone: from ${signed(Math.min(...values))} (blue) to ${signed(Math.max(...values))} (orange). The ring is the row chosen above.`;
  picture(place, 340, `${nameOf([a, b])}: joint effect, from ${format(Math.min(...values))} to ${format(Math.max(...values))}`, (svg, width, height) => {
    const {sx, sy, box} = axes(svg, width, height, {x: {...x, below: null}, y, xLabel: model.names[a], yLabel: model.names[b]});
    const wide = (box.right - box.left) / x.values.length, tall = (box.bottom - box.top) / y.values.length;
    y.values.forEach((v, i) => x.values.forEach((u, j) => {
      const top = y.names ? box.top + i * tall : box.bottom - (i + 1) * tall, value = values[i * x.values.length + j];
      const cell = shape("rect", {x: box.left + j * wide, y: top, width: wide + 0.4, height: tall + 0.4, style: `fill:${diverging((value - middle) / reach)}`});
      cell.append(shape("title", {}, `${shownAs(a, u)}, ${shownAs(b, v)}: ${signed(value)}`));
      svg.append(cell);
    }));
    ring(svg, [a, x, sx], [b, y, sy], box);
  });
}

function ring(svg, [a, x, sx], [b, y, sy], box) {
  const place = (column, axis, scale) => (axis.names ? scale(axis.values.findIndex(value => Object.is(value, state.row[column]))) : scale(state.row[column]));
  const [cx, cy] = [place(a, x, sx), place(b, y, sy)];
  if (Number.isFinite(cx) && Number.isFinite(cy)) svg.append(shape("circle", {cx: Math.max(box.left, Math.min(box.right, cx)), cy: Math.max(box.top, Math.min(box.bottom, cy)), r: 7, class: "ring"}));
}

/* ---- residuals, calibration */

function buildChecks() {
  for (const place of document.querySelectorAll("[data-check]")) {
    const check = report.checks[Number(place.dataset.check)];
    ({scatter: drawScatter, residuals: drawResiduals, calibration: drawCalibration})[place.dataset.kind](place, check);
  }
}

function drawScatter(place, {points}) {
  picture(place, 320, `Actual against predicted values of ${points.length} rows`, (svg, width, height) => {
    const both = ends(points.flat(), 0.03);
    const {sx, sy} = axes(svg, width, height, {x: both, y: both, xLabel: "predicted", yLabel: "actual"});
    svg.append(shape("line", {x1: sx(both.low), y1: sy(both.low), x2: sx(both.high), y2: sy(both.high), class: "ideal"}));
    for (const [predicted, actual] of points) svg.append(shape("circle", {cx: sx(predicted), cy: sy(actual), r: 2.2, class: "point"}));
  });
}

function drawResiduals(place, {counts, reach}) {
  picture(place, 320, "How often residuals of which size occur", (svg, width, height) => {
    const {sx, sy, box} = axes(svg, width, height, {x: {low: -reach, high: reach}, y: {low: 0, high: 1.05 * Math.max(...counts)}, xLabel: "actual minus predicted", yLabel: "rows"});
    const wide = (box.right - box.left) / counts.length;
    counts.forEach((count, i) => svg.append(shape("rect", {x: box.left + i * wide + 0.5, y: sy(count), width: wide - 1, height: box.bottom - sy(count), class: "column"})));
    svg.append(shape("line", {x1: sx(0), x2: sx(0), y1: box.top, y2: box.bottom, class: "ideal"}));
  });
}

function drawCalibration(place, {groups}) {
  picture(place, 320, "Share of rows where it was true, against the stated probability", (svg, width, height) => {
    const {sx, sy} = axes(svg, width, height, {x: {low: 0, high: 1}, y: {low: 0, high: 1}, xLabel: "stated probability", yLabel: "share that was true"});
    svg.append(shape("line", {x1: sx(0), y1: sy(0), x2: sx(1), y2: sy(1), class: "ideal"}));
    for (const group of groups) {
      svg.append(shape("line", {x1: sx(group.stated), x2: sx(group.stated), y1: sy(group.low), y2: sy(group.high), class: "whisker"}));
      svg.append(shape("circle", {cx: sx(group.stated), cy: sy(group.share), r: 4.5, class: "dot"}, shape("title", {}, `${percent(group.stated)} stated, ${percent(group.share)} true, ${group.rows} rows`)));
    }
  });
}

/* For whoever opens the console: tensormachine.predict({area: 50, district: "north"}) */
window.tensormachine = {
  outputs: values => model.outputs(model.encode(values)),
  predict(values) {
    const outputs = this.outputs(values);
    if (!classifies) return outputs.length === 1 ? outputs[0] : outputs;
    const likely = model.probabilities(outputs);
    return report.classes[likely.indexOf(Math.max(...likely))];
  },
  probabilities: values => model.probabilities(model.outputs(model.encode(values))),
};

buildInputs();
buildExamples();
state.row = numbers(report.typical);
if (state.output === null) { const likely = model.probabilities(model.outputs(state.row)); state.output = likely.indexOf(Math.max(...likely)); }
buildOutputs();
buildMatters();
show();
buildChecks();
