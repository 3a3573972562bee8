"use strict";
/* Columns and pairs by importance, and the effect of the selected one. */

function buildImportance() {
  const shares = report.shares[state.output];
  byId("outputs").value = state.output;
  const sets = [
    ...shares.columns.map(([column, share]) => ({columns: [column], share})),
    ...shares.pairs.map(([a, b, share]) => ({columns: [a, b], share})),
  ];
  const list = (id, count) => {
    const of = sets.filter(set => set.columns.length === count),
      largest = Math.max(...of.map(set => set.share), Number.MIN_VALUE);
    byId(id).replaceChildren(...of.map(set => shareBar(set, largest)));
  };
  list("columns", 1);
  list("pairs", 2);
  byId("pairs").closest("section").hidden = shares.pairs.length === 0;
  const first = shares.columns.length ? shares.columns[0][0] : null;
  state.chosen = controls.has(first) ? [first] : splitColumns.slice(0, 1);
}

function shareBar({columns, share}, largest) {
  const style = `width:${(100 * share) / largest}%`;
  const content = [
    element("span", {class: "name"}, nameOf(columns)),
    element("span", {class: "track"}, element("span", {class: "bar", style})),
    element("span", {class: "value"}, percent(share)),
  ];
  const clickable = columns.every(j => controls.has(j));
  const made = clickable
    ? element(
        "button",
        {
          type: "button",
          "data-columns": columns.join(),
          onclick: () => {
            state.chosen = columns;
            showChosen();
          },
        },
        ...content,
      )
    : element("div", {class: "row"}, ...content);
  return element("li", {}, made);
}

function showChosen() {
  for (const button of document.querySelectorAll("#importance button"))
    button.setAttribute("aria-pressed", button.dataset.columns === state.chosen.join());
  byId("effect-title").textContent = nameOf(state.chosen);
  const place = byId("effect");
  if (state.chosen.length === 1) drawCurve(place, state.chosen[0]);
  else drawSurface(place, ...state.chosen);
}

const MOST_LEVELS = 30;

/* Values along an axis: equal steps, or levels, the most frequent ones if there are many. */
function gridOf(column, count) {
  const of = input.get(column);
  if (of.kind === "category" || of.boolean) {
    const levels = levelsOf(column).map((name, code) => ({name, value: code, count: of.counts[code]}));
    if (of.missing) levels.push({name: "missing", value: NaN, count: of.n_missing});
    const rows = levels.reduce((sum, level) => sum + level.count, 0);
    const least = levels.map(level => level.count).sort((a, b) => b - a)[MOST_LEVELS - 1] ?? 0;
    const shown = levels.filter(level => level.count >= least).slice(0, MOST_LEVELS);
    return {
      values: shown.map(level => level.value),
      names: shown.map(level => level.name),
      below: shown.map(level => percent(level.count / rows)),
    };
  }
  const steps = of.whole && of.high - of.low < count ? of.high - of.low + 1 : count;
  const step = steps > 1 ? (of.high - of.low) / (steps - 1) : 0;
  const values = Array.from({length: steps}, (_, i) => of.low + step * i);
  return {values, low: of.low - of.half, high: of.high + of.half, whole: of.whole, date: of.date};
}

/* Effects of columns at some points: their contribution, which does not depend on other columns. There is
   none if rows are divided by their norm: then the output for the current row with these values. */
function effects(columns, points) {
  if (model.unitRows)
    return points.map(values => {
      const row = [...state.row];
      columns.forEach((column, i) => {
        row[column] = values[i];
      });
      return model.outputs(row)[state.output];
    });
  const known = columns.map(() => new Map()),
    moves = {};
  return points.map(values => {
    columns.forEach((column, i) => {
      const value = values[i];
      if (!known[i].has(value)) known[i].set(value, model.move(column, model.part(column, value)));
      moves[column] = known[i].get(value);
    });
    return model.effect(moves, columns, state.output);
  });
}

/* Half the width of the band around the effect of a column at a value; 0 if there are no bands. */
function halfWidth(of, value) {
  if (!of.band) return 0;
  const widths = of.band[state.output],
    last = widths.length - 1 - (of.missing ? 1 : 0);
  if (Number.isNaN(value)) return widths[last + 1];
  if (of.kind === "category" || of.boolean) return widths[value];
  if (!(of.high > of.low)) return widths[0];
  const place = (last * (value - of.low)) / (of.high - of.low),
    below = Math.max(0, Math.min(last - 1, Math.floor(place)));
  return widths[below] + (place - below) * (widths[below + 1] - widths[below]);
}

function drawCurve(place, column) {
  const of = input.get(column),
    x = gridOf(column, 100),
    values = effects(
      [column],
      x.values.map(value => [value]),
    ),
    half = x.values.map(value => halfWidth(of, value)),
    highest = values.map((value, i) => value + half[i]),
    lowest = values.map((value, i) => value - half[i]);
  const now = state.row[column],
    at = effects([column], [[now]])[0];
  const about = model.unitRows ? `${unit}, other columns as above` : `change in ${unit}`;
  const [least, most] = [Math.min(...values), Math.max(...values)];
  byId("effect-note").textContent = curveNote(of) + factorNote(least, most);
  const label = `${nameOf([column])}: ${about}, from ${format(least)} to ${format(most)}`;
  picture(place, 340, label, (svg, width, height) => {
    const {sx, sy, box} = axes(svg, width, height, {
      x,
      y: ends([...lowest, ...highest, at, ...(model.unitRows ? [] : [0])]),
      xLabel: model.names[column],
      yLabel: about,
    });
    if (!x.names) drawCounts(svg, of, sx, box);
    for (const jump of jumpsOf(of)) {
      const at = sx(jump);
      svg.append(shape("line", {x1: at, x2: at, y1: box.top, y2: box.bottom, class: "jump"}));
    }
    if (x.names) {
      const wide = (0.6 * (box.right - box.left)) / values.length;
      values.forEach((value, i) => bar(svg, sx(i), sy, value, wide, Object.is(x.values[i], now)));
      if (of.band)
        values.forEach((_, i) => {
          const y = {y1: sy(lowest[i]), y2: sy(highest[i])};
          svg.append(shape("line", {x1: sx(i), x2: sx(i), ...y, class: "spread"}));
        });
    } else {
      const along = heights => heights.map((height, i) => `${sx(x.values[i])},${sy(height)}`);
      const around = [...along(highest), ...along(lowest).reverse()].join(" ");
      if (of.band) svg.append(shape("polygon", {points: around, class: "band"}));
      svg.append(shape("polyline", {points: along(values).join(" "), class: "curve"}));
      const cx = Math.max(box.left, Math.min(box.right, sx(now)));
      if (!Number.isNaN(now)) svg.append(shape("circle", {cx, cy: sy(at), r: 6, class: "now"}));
    }
  });
}

/* Thresholds above which the model may jump, within the axis. */
const jumpsOf = of =>
  of.kind === "number" && !of.boolean ? of.jumps.filter(jump => jump >= of.low && jump <= of.high) : [];

function curveNote(of) {
  if (of.kind === "category" || of.boolean)
    return (
      "Below each level, its share of the rows. The outlined bar is the level selected above." +
      (of.band ? " Whiskers: the band of each level." : "")
    );
  const notes = ["Grey bars: distribution of the values. The dot is the value selected above."],
    jumps = jumpsOf(of);
  if (of.band) notes.push("Shaded: the band around the effect.");
  if (jumps.length) notes.push(`Dotted lines: jumps above ${jumps.map(jump => (of.date ? dateOf(jump) : format(jump, 6))).join(", ")}.`);
  if (of.missing && !model.unitRows) {
    const missing = effects([of.column], [[NaN]])[0];
    notes.push(`Missing (${of.n_missing.toLocaleString("en")} rows): ${signed(missing)}.`);
  }
  return notes.join(" ");
}

/* What changes of a logarithm do to predictions; empty if outputs are no logarithms. */
const factorNote = (least, most) =>
  model.link === "log" && !model.unitRows
    ? ` The prediction is multiplied by ${format(Math.exp(least))} to ${format(Math.exp(most))}.`
    : "";

function drawCounts(svg, of, sx, box) {
  const most = Math.max(...of.counts, 1),
    tall = 0.25 * (box.bottom - box.top);
  const wide = (of.high - of.low + 2 * of.half) / of.counts.length;
  of.counts.forEach((count, i) => {
    const left = sx(of.low - of.half + wide * i),
      right = sx(of.low - of.half + wide * (i + 1)),
      height = (tall * count) / most;
    const width = Math.max(0.5, right - left - 1);
    svg.append(shape("rect", {x: left + 0.5, y: box.bottom - height, width, height, class: "counts"}));
  });
}

function bar(svg, x, sy, value, width, now) {
  const zero = sy(0);
  svg.append(
    shape("rect", {
      x: x - width / 2,
      y: Math.min(zero, sy(value)),
      width,
      height: Math.max(1, Math.abs(sy(value) - zero)),
      class: `${value < 0 ? "below" : "above"}${now ? " chosen" : ""}`,
    }),
  );
}

function drawSurface(place, a, b) {
  const x = gridOf(a, 36),
    y = gridOf(b, 28);
  const values = effects(
    [a, b],
    y.values.flatMap(v => x.values.map(u => [u, v])),
  );
  const middle = model.unitRows ? values.reduce((sum, value) => sum + value, 0) / values.length : 0;
  const reach = Math.max(...values.map(value => Math.abs(value - middle)), Number.MIN_VALUE);
  const [least, most] = [Math.min(...values), Math.max(...values)];
  byId("effect-note").textContent = model.unitRows
    ? "Output, with the other columns as above: orange is higher, blue is lower."
    : `Interaction, beyond the effects of each column alone: from ${signed(least)} (blue) ` +
      `to ${signed(most)} (orange). The ring is the row selected above.`;
  picture(
    place,
    340,
    `${nameOf([a, b])}: interaction, from ${format(least)} to ${format(most)}`,
    (svg, width, height) => {
      const labels = {xLabel: model.names[a], yLabel: model.names[b]};
      const {sx, sy, box} = axes(svg, width, height, {x: {...x, below: null}, y, ...labels});
      const wide = (box.right - box.left) / x.values.length,
        tall = (box.bottom - box.top) / y.values.length;
      y.values.forEach((v, i) =>
        x.values.forEach((u, j) => {
          const top = y.names ? box.top + i * tall : box.bottom - (i + 1) * tall,
            value = values[i * x.values.length + j];
          const cell = shape("rect", {
            x: box.left + j * wide,
            y: top,
            width: wide + 0.4,
            height: tall + 0.4,
            style: `fill:${diverging((value - middle) / reach)}`,
          });
          cell.append(shape("title", {}, `${shownAs(a, u)}, ${shownAs(b, v)}: ${signed(value)}`));
          svg.append(cell);
        }),
      );
      ring(svg, [a, x, sx], [b, y, sy], box);
    },
  );
}

function ring(svg, [a, x, sx], [b, y, sy], box) {
  const place = (column, axis, scale) => {
    if (!axis.names) return scale(state.row[column]);
    const level = axis.values.findIndex(value => Object.is(value, state.row[column]));
    return level < 0 ? NaN : scale(level); // only the most frequent levels are drawn
  };
  const [cx, cy] = [place(a, x, sx), place(b, y, sy)];
  if (Number.isFinite(cx) && Number.isFinite(cy))
    svg.append(
      shape("circle", {
        cx: Math.max(box.left, Math.min(box.right, cx)),
        cy: Math.max(box.top, Math.min(box.bottom, cy)),
        r: 7,
        class: "ring",
      }),
    );
}
