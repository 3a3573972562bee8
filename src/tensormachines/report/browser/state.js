"use strict";
/* What the report says, the model, and what has been chosen in the page. */
const report = JSON.parse(document.getElementById("facts").textContent);
const model = new Model(report.model);
const classifies = report.classes.length > 0;
const state = {row: [], output: report.model.link === "softmax" ? null : 0, chosen: null};
const byId = id => document.getElementById(id);
const input = new Map(report.inputs.map(of => [of.column, of]));
/* Those that are looked at one by one and in pairs; the norm of rows that are divided by it is one of them. */
const splitColumns = [...report.inputs.map(of => of.column), ...model.partNames.map((_, j) => j).filter(j => j >= model.names.length)];
const inOrder = columns => [...columns].sort((a, b) => a - b);
const nameOf = columns =>
  inOrder(columns)
    .map(j => model.partNames[j])
    .join(" × ");
const numbers = values => values.map(value => (value === null ? NaN : value));
const levelsOf = j => [...model.levels[j], ...(model.rare[j] ? ["other levels"] : [])];
const shownAs = (j, value) => (Number.isNaN(value) ? "missing" : model.levels[j] ? levelsOf(j)[value] : format(value));
const several = report.outputs.length > 1;
/* What an output of the model is called. */
const unit = classifies ? (several ? "score" : `log-odds of ${report.outputs[0]}`) : several ? "output" : report.target || "prediction";
