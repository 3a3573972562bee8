"use strict";
/* Charts of residuals and calibration. */

function buildDiagnostics() {
  const draw = {scatter: drawScatter, residuals: drawResiduals, calibration: drawCalibration};
  for (const place of document.querySelectorAll("[data-target]")) {
    draw[place.dataset.kind](place, report.diagnostics[Number(place.dataset.target)]);
  }
}

function drawScatter(place, {points}) {
  picture(place, 320, `Scatter plot of actual against predicted values of ${points.length} rows`, (svg, width, height) => {
    const both = ends(points.flat(), 0.03);
    const {sx, sy} = axes(svg, width, height, {x: both, y: both, xLabel: "predicted", yLabel: "actual"});
    svg.append(shape("line", {x1: sx(both.low), y1: sy(both.low), x2: sx(both.high), y2: sy(both.high), class: "ideal"}));
    for (const [predicted, actual] of points) svg.append(shape("circle", {cx: sx(predicted), cy: sy(actual), r: 2.2, class: "point"}));
  });
}

function drawResiduals(place, {counts, reach}) {
  picture(place, 320, "Histogram of residuals", (svg, width, height) => {
    const {sx, sy, box} = axes(svg, width, height, {
      x: {low: -reach, high: reach},
      y: {low: 0, high: 1.05 * Math.max(...counts)},
      xLabel: "actual minus predicted",
      yLabel: "rows",
    });
    const wide = (box.right - box.left) / counts.length;
    counts.forEach((count, i) =>
      svg.append(
        shape("rect", {x: box.left + i * wide + 0.5, y: sy(count), width: wide - 1, height: box.bottom - sy(count), class: "column"}),
      ),
    );
    svg.append(shape("line", {x1: sx(0), x2: sx(0), y1: box.top, y2: box.bottom, class: "ideal"}));
  });
}

function drawCalibration(place, {groups}) {
  picture(place, 320, "Calibration: observed frequency against predicted probability", (svg, width, height) => {
    const {sx, sy} = axes(svg, width, height, {
      x: {low: 0, high: 1},
      y: {low: 0, high: 1},
      xLabel: "predicted probability",
      yLabel: "observed frequency",
    });
    svg.append(shape("line", {x1: sx(0), y1: sy(0), x2: sx(1), y2: sy(1), class: "ideal"}));
    for (const group of groups) {
      svg.append(shape("line", {x1: sx(group.predicted), x2: sx(group.predicted), y1: sy(group.low), y2: sy(group.high), class: "whisker"}));
      svg.append(
        shape(
          "circle",
          {cx: sx(group.predicted), cy: sy(group.observed), r: 4.5, class: "dot"},
          shape("title", {}, `${percent(group.predicted)} predicted, ${percent(group.observed)} observed, ${group.rows} rows`),
        ),
      );
    }
  });
}
