"use strict";
/* Charts in SVG, drawn to the width of their place, and again when that changes. */
const SVG = "http://www.w3.org/2000/svg";

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== null && value !== false) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}

function shape(name, attributes, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function format(number, digits = 4) {
  if (!Number.isFinite(number)) return "–";
  const size = Math.abs(number);
  if (size !== 0 && (size >= 1e9 || size < 1e-4))
    return Number(number.toPrecision(digits)).toExponential().replaceAll("-", "−");
  const useGrouping = "min2"; // 12,345 but 2005, which may be a year
  const options = {maximumSignificantDigits: digits, useGrouping};
  return number.toLocaleString("en", options).replace("-", "−");
}

/* Number of significant digits that shows a step of this size; a step lost in rounding does not count. */
function digitsTo(number, step) {
  if (!(step > 1e-12 * Math.abs(number)) || number === 0) return 1;
  const place = value => Math.floor(Math.log10(Math.abs(value)) + 1e-9);
  return Math.max(1, place(number) - place(step) + 1);
}

const signed = number => (number > 0 ? "+" : "") + format(number, 3);
const percent = share =>
  Math.abs(share) < 0.0005 ? "0 %" : `${format(100 * share, Math.abs(share) < 0.1 ? 2 : 3)} %`;

/* About `count` round numbers between the ends of an axis, whole ones on an axis of whole numbers. */
function ticks({low, high, whole}, count) {
  if (!(high - low > 1e-12 * Math.max(Math.abs(low), Math.abs(high)))) return [low];
  const rough = Math.max(whole ? 1 : 0, (high - low) / count),
    power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map(factor => factor * power).find(size => size >= rough);
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++)
    found.push(i * step + 0); // + 0 turns -0 into 0
  return found;
}

/* The same with labels of enough digits to tell them apart: years are not rounded to tens. */
function marksOf(axis, count) {
  const values = ticks(axis, count),
    step = values.length > 1 ? values[1] - values[0] : 1e-5 * Math.abs(values[0]);
  const text = value => (axis.date ? dateOf(value) : format(value, Math.max(3, digitsTo(value, step))));
  return values.map(value => ({value, text: text(value)}));
}

/* Draws into `place` now and whenever its width changes; `label` describes the chart to screen readers. */
function picture(place, height, label, draw) {
  let drawn = 0;
  const redraw = () => {
    const width = Math.max(240, Math.floor(place.clientWidth));
    if (width === drawn) return;
    drawn = width;
    const viewBox = `0 0 ${width} ${height}`;
    const svg = shape("svg", {viewBox, width, height, role: "img", "aria-label": label});
    draw(svg, width, height);
    place.replaceChildren(svg);
  };
  if (place.watcher) place.watcher.disconnect();
  place.watcher = new ResizeObserver(redraw);
  place.watcher.observe(place);
  redraw();
}

/* Draws axes and returns their scales. `x` and `y` are {low, high} or {names}; `below` has a second line for
   each name. */
function axes(svg, width, height, {x, y, xLabel, yLabel}) {
  const marks = y.names ? [] : marksOf(y, height / 55),
    texts = y.names || marks.map(mark => mark.text);
  const widest = Math.min(0.3 * width, 7 * Math.max(...texts.map(text => text.length)) + 10);
  const box = {left: widest + 18, right: width - 14, top: 12, bottom: height - (x.below ? 54 : 44)};
  const scale = (axis, from, to) =>
    axis.names
      ? i => from + ((to - from) * (i + 0.5)) / axis.names.length
      : axis.high > axis.low
        ? value => from + ((to - from) * (value - axis.low)) / (axis.high - axis.low)
        : () => (from + to) / 2;
  const sx = scale(x, box.left, box.right),
    sy = y.names ? scale(y, box.top, box.bottom) : scale(y, box.bottom, box.top);
  const text = (content, attributes) => svg.append(shape("text", attributes, content));
  const room = (box.bottom - box.top) / (y.names ? y.names.length : 1);
  if (y.names)
    y.names.forEach((name, i) => {
      const place = {x: box.left - 6, y: sy(i) + 4, "text-anchor": "end", class: "tick"};
      if (room > 10) text(shorten(name, (widest - 8) / 6.5), place);
    });
  else
    for (const {value, text: mark} of marks) {
      const kind = value === 0 ? "zero" : "grid";
      svg.append(shape("line", {x1: box.left, x2: box.right, y1: sy(value), y2: sy(value), class: kind}));
      text(mark, {x: box.left - 6, y: sy(value) + 4, "text-anchor": "end", class: "tick"});
    }
  if (x.names) {
    const each = (box.right - box.left) / x.names.length;
    const every = Math.max(1, Math.ceil(24 / each));
    x.names.forEach((name, i) => {
      if (i % every) return;
      const place = {x: sx(i), "text-anchor": "middle", class: "tick"};
      text(shorten(name, Math.max(3, each / 6.8)), {...place, y: box.bottom + 15});
      if (x.below && each > 34) text(x.below[i], {...place, y: box.bottom + 29});
    });
  } else
    for (const {value, text: mark} of marksOf(x, width / 90)) {
      const at = sx(value),
        inside = Math.min(at, width - 4 * mark.length);
      svg.append(shape("line", {x1: at, x2: at, y1: box.bottom, y2: box.bottom + 4, class: "axis"}));
      text(mark, {x: inside, y: box.bottom + 16, "text-anchor": "middle", class: "tick"});
    }
  svg.append(shape("line", {x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom, class: "axis"}));
  text(shorten(xLabel, (box.right - box.left) / 7), {
    x: (box.left + box.right) / 2,
    y: height - 8,
    "text-anchor": "middle",
    class: "label",
  });
  text(shorten(yLabel, (box.bottom - box.top) / 6), {
    transform: `translate(13 ${(box.top + box.bottom) / 2}) rotate(-90)`,
    "text-anchor": "middle",
    class: "label",
  });
  return {sx, sy, box};
}

const shorten = (text, room) =>
  text.length <= room ? text : text.slice(0, Math.max(1, Math.floor(room) - 1)) + "…";

/* Ends of an axis that holds all of these values. */
function ends(values, around = 0.05) {
  let low = Infinity,
    high = -Infinity;
  for (const value of values)
    if (Number.isFinite(value)) {
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
  if (!(high >= low)) return {low: 0, high: 1};
  const size = Math.max(Math.abs(low), Math.abs(high)),
    differ = high - low > 1e-9 * size, // by more than rounding
    margin = (differ ? around * (high - low) : size) || 1;
  return {low: low - margin, high: high + margin};
}

/* From blue (below 0) through the background to orange (above 0); `share` is -1..1. */
const diverging = share => {
  const strength = Math.round(100 * Math.min(1, Math.abs(share)));
  return `color-mix(in oklab, var(${share < 0 ? "--below" : "--above"}) ${strength}%, var(--paper))`;
};
