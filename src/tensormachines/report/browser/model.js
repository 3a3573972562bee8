"use strict";
/* The model. A row is an array of numbers, one per column: a category as the number of its level, NaN if it is
   missing.

   forms    = offset + sum over the columns of part(column)
   output_k = intercept_k + sum over its terms of the product of their forms, times their weights if outputs
              share their terms

   A contribution is the change of an output when some columns leave the mean of the rows, and the others
   stay there. Those of single columns are less their mean parts, so that they start from the mean output. */
class Model {
  constructor(described) {
    Object.assign(this, described);
    this.offset = Model.floats(described.offset);
    this.size = this.offset.length;
    this.means = Model.floats(described.means);
    if (described.splines) {
      this.splines = described.splines.map(spline => ({
        knots: spline.knots === null ? null : Model.floats(spline.knots),
        table: Model.floats(spline.table),
      }));
    } else {
      this.weights = Model.floats(described.weights);
      this.center = Model.floats(described.basis.center);
      this.scale = Model.floats(described.basis.scale);
      this.unitRows = described.basis.unit_rows;
    }
    this.codes = this.levels.map(levels => levels && new Map(levels.map((level, code) => [level, code])));
    /* The constant of rows that are divided by their norm varies with it: it is one more column, the last. */
    const varies = this.unitRows && described.basis.constant;
    this.partNames = varies ? [...this.names, described.basis.norm] : this.names;
    this.formsOf = this.terms.map(terms => [...new Set(terms.flat())]);
    this.reference = Float64Array.from(this.offset);
    if (varies) this.reference.fill(0);
    for (let i = 0; i < this.means.length; i++) this.reference[i % this.size] += this.means[i];
  }

  static floats(text) {
    return new Float64Array(Uint8Array.from(atob(text), character => character.charCodeAt(0)).buffer);
  }

  /* Converts {name: value} or [values], with levels by name, to a row of numbers. */
  encode(values) {
    if (!(values instanceof Object)) throw new TypeError("expected {name: value} or [values]");
    const unknown = Array.isArray(values) ? [] : Object.keys(values).filter(name => !this.names.includes(name));
    if (unknown.length) throw new TypeError(`there is no column ${JSON.stringify(unknown[0])}`);
    return this.names.map((name, j) => {
      const value = Array.isArray(values) ? values[j] : values[name];
      if (value === null || value === undefined || Number.isNaN(value)) return NaN;
      if (!this.codes[j]) {
        if (Number.isNaN(Number(value))) throw new TypeError(`${JSON.stringify(name)} holds numbers`);
        return Number(value);
      }
      const code = this.codes[j].get(String(value));
      return code !== undefined ? code : this.rare[j] ? this.levels[j].length : NaN;
    });
  }

  /* What a column adds to the forms, where that does not depend on other columns. */
  part(j, x) {
    return this.splines ? this.splinePart(this.splines[j], x) : this.times(j, this.scaled(j, x));
  }

  scaled(j, x) {
    const clip = this.basis.clip === null ? Infinity : this.basis.clip;
    return Math.max(-clip, Math.min(clip, (x - this.center[j]) * this.scale[j]));
  }

  /* What each column adds to the forms; in rows that are divided by their norm it depends on all columns. */
  parts(row) {
    if (!this.unitRows) return row.map((x, j) => this.part(j, x));
    const entries = row.map((x, j) => this.scaled(j, x));
    if (this.basis.constant) entries.push(this.basis.constant);
    const norm = Math.sqrt(entries.reduce((sum, entry) => sum + entry * entry, 0)) || 1;
    return entries.map((entry, j) => this.times(j, entry / norm));
  }

  times(j, entry) {
    return this.weights.subarray(j * this.size, (j + 1) * this.size).map(weight => entry * weight);
  }

  splinePart({knots, table}, x) {
    const row = place => table.subarray(place * this.size, (place + 1) * this.size);
    const missing = table.length / this.size - 1;
    if (Number.isNaN(x)) return row(missing);
    if (knots === null) return row(x);
    if (knots.length === 1) return row(0);
    let low = 0,
      high = knots.length - 1; // the last knot that is not above x, but not the very last
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (knots[middle] <= x) low = middle;
      else high = middle;
    }
    const [from, to] = [0.5 * knots[low], 0.5 * knots[low + 1]]; // halves, because differences may overflow
    const share = Math.max(0, Math.min(1, (0.5 * x - from) / (to - from)));
    const below = row(low),
      above = row(low + 1);
    return below.map((value, f) => (1 - share) * value + share * above[f]);
  }

  forms(row) {
    const varies = this.partNames.length > this.names.length;
    const forms = varies ? new Float64Array(this.size) : Float64Array.from(this.offset);
    for (const part of this.parts(row)) for (let f = 0; f < this.size; f++) forms[f] += part[f];
    return forms;
  }

  output(forms, k) {
    const weights = this.term_weights && this.term_weights[k];
    let total = this.intercept[k];
    this.terms[k].forEach((term, i) => {
      let product = weights ? weights[i] : 1;
      for (const form of term) product *= forms[form];
      total += product;
    });
    return total;
  }

  outputs(row) {
    const forms = this.forms(row);
    return this.intercept.map((_, k) => this.output(forms, k));
  }

  /* Predictions of a regressor. */
  predictions(outputs) {
    if (this.link === "sorted") return [...outputs].sort((a, b) => a - b);
    return this.largest ? outputs.map((z, k) => Math.exp(Math.min(z, this.largest[k]))) : outputs;
  }

  /* Probabilities in the order of the classes, or of the labels. */
  probabilities(outputs) {
    if (this.link === "sigmoid") return outputs.map(z => 1 / (1 + Math.exp(-z)));
    const scores = this.link === "logistic" ? [0, outputs[0]] : outputs;
    const highest = Math.max(...scores);
    const powers = scores.map(score => Math.exp(score - highest));
    const total = powers.reduce((sum, power) => sum + power, 0);
    return powers.map(power => power / total);
  }

  /* Displacement of the forms from the reference by a part. */
  move(j, part) {
    return part.map((value, f) => value - this.means[j * this.size + f]);
  }

  moves(row) {
    return this.parts(row).map((part, j) => this.move(j, part));
  }

  /* The contribution of one column, or of two beyond those of each alone. */
  effect(moves, columns, k) {
    const forms = new Float64Array(this.size);
    const f = (...chosen) => {
      for (const i of this.formsOf[k]) {
        forms[i] = this.reference[i];
        for (const j of chosen) forms[i] += moves[j][i];
      }
      return this.output(forms, k);
    };
    const [a, b] = columns;
    return columns.length === 1 ? f(a) - f() - this.mean_parts[k][a] : f(a, b) - f(a) - f(b) + f();
  }

  /* The mean output, the contributions of these columns and of their pairs, and the rest. */
  split(row, columns, k) {
    const moves = this.moves(row),
      constant = this.mean_parts[k].reduce((sum, part) => sum + part, this.output(this.reference, k));
    const sets = columns.map(j => [j]);
    columns.forEach((a, i) => columns.slice(i + 1).forEach(b => sets.push([a, b])));
    const parts = sets.map(set => ({columns: set, value: this.effect(moves, set, k)}));
    const known = parts.reduce((sum, part) => sum + part.value, constant);
    return {constant, parts, rest: this.output(this.forms(row), k) - known};
  }
}
