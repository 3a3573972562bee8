"use strict";
/* Charts of residuals and calibration. */

function buildDiagnostics() {
  const draw = {scatter: drawScatter, residuals: drawResiduals, calibration: drawCalibration};
  for (const place of document.querySelectorAll("[data-target]")) {
    draw[place.dataset.kind](place, report.diagnostics[Number(place.dataset.target)]);
  }
}

function drawScatter(place, {points}) {
  const label = `Scatter plot of actual against predicted values of ${points.length} rows`;
  picture(place, 320, label, (svg, width, height) => {
    const both = ends(points.flat(), 0.03);
    const {sx, sy} = axes(svg, width, height, {x: both, y: both, xLabel: "predicted", yLabel: "actual"});
    const diagonal = {x1: sx(both.low), y1: sy(both.low), x2: sx(both.high), y2: sy(both.high)};
    svg.append(shape("line", {...diagonal, class: "ideal"}));
    for (const [predicted, actual] of points)
      svg.append(shape("circle", {cx: sx(predicted), cy: sy(actual), r: 2.2, class: "point"}));
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
    counts.forEach((count, i) => {
      const size = {width: wide - 1, height: box.bottom - sy(count)};
      svg.append(shape("rect", {x: box.left + i * wide + 0.5, y: sy(count), ...size, class: "column"}));
    });
    svg.append(shape("line", {x1: sx(0), x2: sx(0), y1: box.top, y2: box.bottom, class: "ideal"}));
  });
}

function drawCalibration(place, {groups}) {
  const label = "Calibration: observed frequency against predicted probability";
  picture(place, 320, label, (svg, width, height) => {
    /* Of a rare class all groups are near 0: there the axes end where the groups and whiskers do. */
    const most = Math.max(...groups.flatMap(({predicted, high}) => [predicted, high]));
    const end = most < 0.5 ? 1.05 * most : 1;
    const {sx, sy} = axes(svg, width, height, {
      x: {low: 0, high: end},
      y: {low: 0, high: end},
      xLabel: "predicted probability",
      yLabel: "observed frequency",
    });
    svg.append(shape("line", {x1: sx(0), y1: sy(0), x2: sx(end), y2: sy(end), class: "ideal"}));
    for (const {predicted, observed, low, high, rows} of groups) {
      const x = sx(predicted),
        title = `${percent(predicted)} predicted, ${percent(observed)} observed, ${rows} rows`;
      svg.append(
        shape("line", {x1: x, x2: x, y1: sy(low), y2: sy(high), class: "whisker"}),
        shape("circle", {cx: x, cy: sy(observed), r: 4.5, class: "dot"}, shape("title", {}, title)),
      );
    }
  });
}
