"use strict";
/* Controls for the values of a row: sliders, number fields and menus. */

const controls = new Map();

function buildInputs() {
  const make = of => {
    if (of.kind === "category" || of.boolean) return menu(of, levelsOf(of.column));
    return of.zero_or_one ? menu(of, ["0", "1"]) : numberInput(of);
  };
  byId("inputs").append(...report.inputs.map(make));
}

function frame(of, ...content) {
  const part = element("span", {class: "part", "aria-hidden": "true"});
  controls.get(of.column).part = part;
  const label = element("label", {for: `input-${of.column}`}, model.names[of.column]);
  return element("div", {class: "input"}, label, part, ...content);
}

function numberInput(of) {
  const step = of.whole && of.high - of.low < 1000 ? 1 : (of.high - of.low) / 200 || "any";
  const range = element("input", {type: "range", id: `input-${of.column}`, min: of.low, max: of.high, step});
  const field = element("input", {
    type: of.date ? "date" : "number",
    step: "any",
    "aria-label": `${model.names[of.column]}, exact value`,
    placeholder: "missing",
  });
  const missing = of.missing ? element("input", {type: "checkbox"}) : null;
  range.addEventListener("input", () => change(of.column, Number(range.value)));
  field.addEventListener("input", () => {
    const typed = field.valueAsNumber,
      ofDay = of.date ? state.row[of.column] % 1 || 0 : 0; // a date field has no time
    if (Number.isFinite(typed)) change(of.column, of.date ? typed / DAY + ofDay : typed, field);
  });
  field.addEventListener("change", () => show());
  if (missing)
    missing.addEventListener("change", () => change(of.column, missing.checked ? NaN : Number(range.value)));
  controls.set(of.column, {
    set(value, typing) {
      const known = !Number.isNaN(value);
      if (known) range.value = value;
      if (typing !== field) field.value = known ? (of.date ? dateOf(value) : inShort(value)) : "";
      range.setAttribute("aria-valuetext", shownAs(of.column, value));
      if (missing) missing.checked = !known;
    },
  });
  return frame(of, range, field, missing ? element("label", {class: "missing"}, missing, "missing") : "");
}

/* Rounded to at most 12 characters, which fit into a field. */
function inShort(value) {
  const whole = Number.isInteger(value) && Math.abs(value) < 1e11;
  const number = whole ? value : Number(value.toPrecision(6));
  return String(number).length <= 12 ? number : Number(value.toPrecision(6)).toExponential();
}

function menu(of, names) {
  const select = element("select", {id: `input-${of.column}`});
  names.forEach((level, code) => select.append(element("option", {value: code}, level)));
  if (of.missing) select.append(element("option", {value: "missing"}, "missing"));
  const chosen = () => (select.value === "missing" ? NaN : Number(select.value));
  select.addEventListener("change", () => change(of.column, chosen()));
  controls.set(of.column, {
    set(value) {
      select.value = Number.isNaN(value) ? "missing" : value;
    },
  });
  return frame(of, select);
}

function change(column, value, typing) {
  state.row[column] = value;
  for (const [cycle, j] of Object.entries(input.get(column).date || {}))
    state.row[j] = Number.isNaN(value) ? NaN : CYCLES[cycle](value);
  byId("example").value = "own";
  show(typing);
}

function buildExamples() {
  const choose = byId("example");
  choose.append(
    element("option", {value: "typical"}, "a typical row"),
    ...report.example_numbers.map((row, i) => element("option", {value: i}, `row ${row} of the data`)),
    element("option", {value: "own"}, "your own values"),
  );
  choose.addEventListener("change", () => {
    if (choose.value === "own") return;
    state.row = numbers(choose.value === "typical" ? report.typical : report.examples[choose.value]);
    show();
  });
}
