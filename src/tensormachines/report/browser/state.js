"use strict";
/* The findings, the model, and the state of the page: the current row, output and chosen columns. */
const report = JSON.parse(document.getElementById("findings").textContent);
const model = new Model(report.model);
const classifies = report.classes.length > 0;
const hasLabels = report.model.link === "sigmoid"; /* several of them */
const state = {row: [], output: report.model.link === "softmax" ? null : 0, chosen: null};
const byId = id => document.getElementById(id);
const input = new Map(report.inputs.map(of => [of.column, of]));
/* Columns that get contributions of their own and in pairs, with the norm that rows are divided by. */
const splitColumns = report.inputs.map(of => of.column);
if (model.partNames.length > model.names.length) splitColumns.push(model.names.length);
const inOrder = columns => [...columns].sort((a, b) => a - b);
const nameOf = columns =>
  inOrder(columns)
    .map(j => model.partNames[j])
    .join(" × ");
const numbers = values => values.map(value => (value === null ? NaN : value));
const isBoolean = j => Boolean(input.get(j)?.boolean);
const levelsOf = j =>
  isBoolean(j) ? ["false", "true"] : [...model.levels[j], ...(model.rare[j] ? ["other levels"] : [])];
const DAY = 864e5; // milliseconds
const dateOf = days => new Date(days * DAY).toISOString().slice(0, 10);
/* The numbers that a date becomes beside its days, from these. */
const CYCLES = {
  "time of year": days => {
    const date = new Date(days * DAY);
    return date.getUTCMonth() + 1 + (date.getUTCDate() - 1) / 31;
  },
  weekday: days => 1 + ((((Math.floor(days) + 3) % 7) + 7) % 7),
  "time of day": days => 24 * (days - Math.floor(days)),
};
const shownAs = (j, value) => {
  if (Number.isNaN(value)) return "missing";
  if (input.get(j)?.date) return dateOf(value);
  return model.levels[j] || isBoolean(j) ? levelsOf(j)[value] : format(value);
};
const several = report.outputs.length > 1;
/* The name of the output of the model. */
const scoreName = several ? "score" : `log-odds of ${report.outputs[0]}`;
const targetName = several ? "output" : report.target || "prediction";
const numberName = model.link === "log" ? `log of ${targetName}` : targetName;
const unit = hasLabels ? "log-odds" : classifies ? scoreName : numberName;
