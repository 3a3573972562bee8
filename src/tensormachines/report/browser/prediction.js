"use strict";
/* The prediction for the current row, and its contributions. */

function show(typing) {
  for (const [column, control] of controls) control.set(state.row[column], typing);
  const outputs = model.outputs(state.row);
  const likely = classifies || hasLabels ? model.probabilities(outputs) : null;
  const split = model.split(state.row, splitColumns, state.output);
  const sizes = [...split.parts.map(part => part.value), split.rest].map(Math.abs);
  const largest = Math.max(...sizes, Number.MIN_VALUE);
  showPrediction(outputs, likely, largest);
  showParts(split, outputs[state.output], largest);
  const moves = model.moves(state.row);
  for (const [column, control] of controls)
    control.part.textContent = signed(model.effect(moves, [column], state.output));
  showChosen();
}

/* A total with enough digits to add up with its contributions, which have three. */
const formatBeside = (number, part, digits = 4) =>
  format(number, Math.max(digits, digitsTo(number, part / 100)));

/* A number of the target; contributions to its logarithm do not add up to it. */
const formatTarget = (number, part) =>
  model.link === "log" ? format(number, 5) : formatBeside(number, part, 5);

function showPrediction(outputs, likely, largest) {
  const place = byId("prediction"),
    best = likely && likely.indexOf(Math.max(...likely));
  place.textContent = hasLabels
    ? percent(likely[state.output])
    : classifies
      ? report.classes[best]
      : formatTarget(model.predictions(outputs)[state.output], largest);
  place.dataset.outputs = JSON.stringify(outputs);
  const quantiles = model.predictions(outputs).map(quantile => formatTarget(quantile, largest));
  const chance = hasLabels
    ? `probability of ${report.outputs[state.output]}`
    : classifies
      ? `with probability ${percent(likely[best])}`
      : model.link === "sorted"
        ? `all quantiles: ${quantiles.join(" · ")}`
        : "";
  const note = [chance, actual(largest)];
  byId("prediction-note").textContent = note.filter(Boolean).join("; ");
  const bars = byId("probabilities");
  bars.hidden = !likely;
  if (likely)
    bars.replaceChildren(
      ...likely.map((share, c) =>
        element(
          "li",
          {},
          element("span", {class: "name"}, (hasLabels ? report.outputs : report.classes)[c]),
          element("span", {class: "track"}, element("span", {class: "bar", style: `width:${100 * share}%`})),
          element("span", {class: "value"}, percent(share)),
        ),
      ),
    );
}

function actual(largest) {
  const chosen = byId("example").value;
  if (chosen === "typical" || chosen === "own") return "";
  const value = report.actual[chosen];
  if (hasLabels) return `actual: ${value[state.output] ? "yes" : "no"}`;
  return `actual: ${classifies ? value : formatTarget(value[state.output], largest)}`;
}

const MOST_PARTS = 9;
const unitName = hasLabels
  ? "log-odds"
  : classifies
    ? several
      ? "score"
      : "log-odds"
    : model.link === "log"
      ? "log of the prediction"
      : model.link === "sorted"
        ? "before sorting"
        : "prediction";

function showParts(split, total, largest) {
  const parts = [...split.parts].sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
  const shown = parts.slice(0, MOST_PARTS);
  const rest = parts.slice(MOST_PARTS).reduce((sum, part) => sum + part.value, split.rest);
  const longest = Math.max(largest, Math.abs(rest));
  const line = (name, value, kind) => {
    const style = `--share:${(50 * Math.abs(value)) / longest}%`;
    const bar = kind ? "" : element("span", {class: value < 0 ? "bar below" : "bar above", style});
    return element(
      "tr",
      {class: kind},
      element("th", {scope: "row"}, name),
      element("td", {class: "picture", "aria-hidden": "true"}, bar),
      element("td", {class: "value"}, kind ? formatBeside(value, largest) : signed(value)),
    );
  };
  byId("parts").replaceChildren(
    line(report.average, split.constant, "total"),
    ...shown.map(part => line(nameOf(part.columns), part.value, "")),
    ...(Math.abs(rest) > 5e-4 * largest ? [line("all others", rest, "")] : []),
    line(unitName, total, "total"),
  );
}

function buildOutputs() {
  const place = byId("outputs");
  place.closest("p").hidden = !several;
  place.append(...report.outputs.map((label, k) => element("option", {value: k}, label)));
  place.addEventListener("change", () => {
    state.output = Number(place.value);
    buildImportance();
    show();
  });
}
