// Charts. Go passes numbers and texts, which this script draws with uPlot into the element
// <sg-chart chart="id">. Colours are variables of app.css. The pointer and the keys are handled
// here; Go is only told when a level is moved, and to which part of a chart the user zooms.
"use strict";
(function () {
  const charts = new Map(); // the latest data from Go, by id
  let onMove = null, onZoom = null;

  // ---- Formats of numbers, as in ui/state/format.go

  const thin = "\u202f";
  function significant(x) {
    if (!x) return "0";
    const decimals = 2 - Math.floor(Math.log10(Math.abs(x)));
    if (decimals <= 0) return x.toFixed(0);
    return x.toFixed(Math.min(decimals, 12)).replace(/\.?0+$/, "");
  }
  function scaled(x, base, units) {
    let i = 0;
    while (x >= base - 0.5 && i < units.length - 1) { x /= base; i++; }
    return significant(x) + (units[i] ? thin + units[i] : "");
  }
  const bytes = (x) => scaled(x, 1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]);
  const count = (x) => scaled(x, 1000, ["", "k", "M", "G", "T", "P"]);
  function share(x) {
    const p = x * 100;
    if (p > 0 && p < 0.001) return "< 0.001" + thin + "%";
    if (p >= 99.95 && p < 100) return "> 99.9" + thin + "%";
    return significant(p) + thin + "%";
  }
  const writers = { bytes, share, references: count, bin: String, cores: String, times: (v) => Math.round(v * 100) / 100 + " ×" };
  // Tick labels of bins: the beginning of each bin.
  const short = (label) => {
    const first = label.split("–")[0].replace(/\u202f/g, "");
    return /^\d+$/.test(first) ? scaled(Number(first), 1024, ["", "Ki", "Mi", "Gi"]) : first;
  };

  // Each style is read only once per theme, because the browser computes the layout of the page
  // whenever a style is read.
  let colors = new Map();
  function css(name) {
    if (!colors.has(name)) colors.set(name, getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim());
    return colors.get(name);
  }
  const still = matchMedia("(prefers-reduced-motion: reduce)");

  // hatch is a pattern that distinguishes the separate bar by more than its colour.
  function hatch(ctx, color) {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 8;
    const t = tile.getContext("2d");
    t.strokeStyle = color;
    t.lineWidth = 2;
    t.beginPath();
    for (const d of [-8, 0, 8]) { t.moveTo(d, 8); t.lineTo(d + 8, 0); }
    t.stroke();
    return ctx.createPattern(tile, "repeat");
  }

  class Chart extends HTMLElement {
    static observedAttributes = ["chart"];

    connectedCallback() {
      if (!this.plot) this.build();
      this.resizes = new ResizeObserver(() => this.resize());
      this.resizes.observe(this);
      this.drawSoon();
    }

    disconnectedCallback() {
      this.resizes.disconnect();
      this.destroy();
    }

    attributeChangedCallback(name, before, after) {
      if (before !== after) this.at = null;
      this.drawSoon();
    }

    // drawSoon draws when the page is complete, but before the browser shows it. Otherwise, the
    // browser would compute the layout of incomplete pages. A chart below the visible part of the page
    // is drawn after the visible part is shown.
    drawSoon() {
      if (this.due) return;
      this.due = true;
      const draw = () => {
        this.due = false;
        if (this.plot && this.isConnected) this.draw();
      };
      queueMicrotask(() => {
        if (!this.plot || this.getBoundingClientRect().top < innerHeight) { draw(); return; }
        this.destroy();
        setTimeout(draw, 100);
      });
    }

    build() {
      this.plot = document.createElement("div");
      this.plot.className = "plot";
      this.plot.tabIndex = 0;
      this.plot.setAttribute("role", "application");
      this.plot.setAttribute("aria-roledescription", "chart");
      this.readout = document.createElement("p");
      this.readout.className = "readout";
      this.up = document.createElement("p");
      this.up.className = "axis up";
      this.right = document.createElement("p");
      this.right.className = "axis right";
      this.append(this.up, this.plot, this.right, this.readout);
      this.plot.addEventListener("keydown", (e) => this.key(e));
      this.plot.addEventListener("pointerdown", (e) => this.grab(e), true);
      // uPlot selects a range by mouse events, but not while a level is dragged.
      this.plot.addEventListener("mousedown", (e) => { if (this.held) e.stopPropagation(); }, true);
      this.plot.addEventListener("pointermove", (e) => this.drag(e));
      this.plot.addEventListener("dblclick", () => { if (this.zoom) this.zoomTo(null); });
      for (const end of ["pointerup", "pointercancel"]) this.plot.addEventListener(end, () => { this.held = null; });
    }

    destroy() {
      if (this.u) this.u.destroy();
      this.u = null;
    }

    resize() {
      const width = this.plot.clientWidth;
      if (this.due) return;
      if (!this.u) { if (width) this.draw(); return; }
      if (width && width !== this.u.width) this.u.setSize({ width, height: this.height(width) });
    }

    height(width) {
      const base = this.em / 15;
      if (this.data && this.data.small) return Math.round(150 * base);
      return Math.round(Math.min(Math.max(width * 0.45, 240 * base), 420 * base));
    }

    draw() {
      const style = getComputedStyle(this);
      this.em = parseFloat(style.fontSize);
      this.family = style.fontFamily;
      const data = charts.get(this.getAttribute("chart"));
      this.data = data;
      if (!data || !data.at.length || !this.plot.clientWidth) {
        this.destroy();
        this.readout.textContent = "";
        return;
      }
      this.plot.setAttribute("aria-label", data.title + ". " + data.summary + " Arrow keys read it out.");
      this.up.textContent = data.small ? "" : data.y.label;
      this.right.textContent = data.small ? "" : data.x.label;
      const [min, max] = this.full(), from = Math.max(data.from, min), to = Math.min(data.to, max);
      this.zoom = data.to > data.from && to > from ? [from, to] : null;
      const width = this.plot.clientWidth;
      const at = Array.from(data.at);
      if (data.split > 0) at[data.split] += 0.5;
      const points = [at].concat(data.series.map((s) => Array.from(s.y, (v) => Number.isFinite(v) ? v : null)));
      this.points = points;
      // If the curve grows or a level moves, the plot is updated, not created again.
      const form = JSON.stringify([data.x.unit, data.x.log, data.y.log, data.series.map((s) => [s.label, s.color, s.shape, s.dash])]) + this.look();
      if (this.u && form === this.form) {
        this.u.setData(points);
      } else {
        this.destroy();
        this.u = new uPlot(this.options(data, width), points, this.plot);
        this.form = form;
      }
      if (this.at === null || this.at === undefined) this.rest();
      else this.readAt(this.at, false);
    }

    // look contains the options that depend on the theme and the font size.
    look() {
      return css("ink") + css("ground") + this.em + this.getAttribute("chart");
    }

    full() {
      const x = this.data.x;
      if (x.unit === "bin") return [-0.6, x.max + (this.data.split > 0 ? 1.1 : 0.6)];
      return [x.min, x.max];
    }

    options(data, width) {
      const em = this.em;
      const font = Math.round(em * 0.8) + "px " + this.family;
      const axis = { filter: (u, splits) => splits, stroke: css("second"), font, labelFont: font, labelGap: 0,
        grid: { stroke: css("grid"), width: 1 }, ticks: { stroke: css("grid"), width: 1, size: 4 } };
      const self = this;
      return {
        width, height: this.height(width), legend: { show: false },
        padding: [12, Math.round(em * 1.7), 0, 0], // half of the last number may extend beyond the end
        cursor: { y: false, points: { show: false }, drag: { x: true, y: false, setScale: true, dist: 6 } },
        scales: {
          x: { time: false, distr: data.x.log ? 3 : 1, log: 2, range: () => self.range() },
          y: { distr: data.y.log ? 3 : 1, log: 10, range: () => [this.data.y.min, this.data.y.max] },
        },
        axes: [
          Object.assign({ splits: this.xSplits(em), values: (u, list) => list.map((v) => this.xTick(v)), size: Math.round(em * 2) }, axis),
          Object.assign({ splits: this.ySplits(), values: (u, list) => list.map((v) => v === null ? "" : this.yText(v)), size: Math.round(em * 3.9) }, axis),
        ],
        series: [{}].concat(data.series.map((s) => this.series(s))),
        hooks: {
          drawAxes: [(u) => this.bands(u)],
          draw: [(u) => this.decorate(u)],
          setCursor: [(u) => this.hover(u)],
          setSelect: [(u) => { if (u.select.width > 0) this.zoomTo([u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x")]); }],
        },
      };
    }

    // range keeps the zoom when the chart is redrawn.
    range() {
      this.plot.toggleAttribute("data-zoomed", !!this.zoom);
      return this.zoom || this.full();
    }

    // zoomTo zooms to a part of the x axis; null shows everything. Go keeps the zoom in the page's
    // address, and passes it with the chart.
    zoomTo(zoom) {
      this.zoom = zoom;
      [this.data.from, this.data.to] = zoom || [0, 0];
      onZoom(this.data.id, this.data.from, this.data.to);
    }

    series(s) {
      const stroke = css(s.color);
      if (s.shape === "bars") {
        const apart = s.label === "cold";
        return { stroke, width: apart ? 1 : 0, fill: apart ? (u) => hatch(u.ctx, stroke) : stroke,
          paths: uPlot.paths.bars({ size: [0.8, 60], align: 0 }), points: { show: false } };
      }
      return { stroke, width: this.data.x.unit === "references" && s.y.length > 200 ? 1 : 2, dash: s.dash ? [7, 4] : undefined, points: { show: this.data.x.unit === "cores", size: 6 },
        paths: s.shape === "step" ? uPlot.paths.stepped({ align: 1 }) : this.data.x.unit === "bin" ? overBins : uPlot.paths.linear() };
    }

    xSplits(em) {
      return (u, i, min, max) => {
        const width = u.width, room = Math.max(2, Math.floor(width / (em * 4.5)));
        if (this.data.x.unit === "bin") {
          const all = this.points[0].filter((v) => v >= min && v <= max);
          const every = Math.ceil(all.length / Math.max(2, Math.floor(width / (em * 2.6))));
          const cold = this.data.split > 0 && all[all.length - 1] === this.points[0][this.data.split] ? all.pop() : null;
          const ticks = all.filter((v, k) => k % every === 0 && (cold === null || k + every <= all.length));
          return cold === null ? ticks : ticks.concat(cold);
        }
        if (!this.data.x.log) {
          const step = niceStep((max - min) / Math.max(1, room - 1));
          const list = [];
          for (let v = Math.ceil(min / step) * step; v <= max; v += step) list.push(v);
          return list;
        }
        const low = Math.ceil(Math.log2(min) - 1e-9), high = Math.floor(Math.log2(max) + 1e-9);
        let every = Math.max(1, Math.ceil((high - low) / (room - 1)));
        if (every > 1) every += every % 2; // powers of four if there is no room for all numbers
        const list = [];
        for (let k = low; k <= high; k += every) list.push(2 ** k);
        return list;
      };
    }

    xTick(v) {
      const x = this.data.x;
      if (x.unit !== "bin") return writers[x.unit](v);
      const i = this.points[0].indexOf(v);
      return i < 0 ? "" : short(x.labels[i]);
    }

    yText(v) { return (writers[this.data.y.unit] || share)(v); }

    ySplits() {
      if (this.data.y.log && this.data.y.unit === "bytes") {
        return (u, i, min, max) => {
          const list = [], low = Math.ceil(Math.log2(min) - 1e-9), high = Math.log2(max);
          for (let k = low; k <= high; k += Math.max(1, Math.ceil((high - low) / 8))) list.push(2 ** k);
          return list;
        };
      }
      if (this.data.y.unit === "times") {
        return (u, i, min, max) => {
          const list = [];
          for (let v = 2 ** Math.ceil(Math.log2(min || 1) - 1e-9); v <= max * 1.0001; v *= 2) list.push(v);
          return list;
        };
      }
      if (this.data.y.log) {
        return (u, i, min, max) => {
          const list = [], decades = Math.log10(max / min), room = u.height / (this.em * 2.2);
          const every = Math.max(1, Math.ceil(decades / room));
          for (let d = Math.floor(Math.log10(min)); d <= 0; d += every) {
            for (const m of decades * 3 > room ? [1] : [1, 2, 5]) {
              const v = m * 10 ** d;
              if (v >= min * 0.999 && v <= max * 1.001) list.push(v);
            }
          }
          return list;
        };
      }
      return (u, i, min, max) => {
        const rough = (max - min) / 5;
        const step = this.data.y.unit === "bytes" ? 2 ** Math.ceil(Math.log2(rough || 1)) : niceStep(rough);
        const list = [];
        for (let v = 0; v <= max * 1.0001; v += step) list.push(v);
        return list;
      };
    }

    // bands draws the confidence intervals of estimates, as a bar at each point.
    bands(u) {
      const ctx = u.ctx, ratio = devicePixelRatio || 1;
      ctx.save();
      ctx.beginPath();
      ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
      ctx.clip();
      for (const s of this.data.series) {
        const at = Array.from(s.low.keys()).filter((i) => Number.isFinite(s.low[i]));
        if (!at.length) continue;
        const x = (i) => u.valToPos(this.points[0][i], "x", true), y = (v) => u.valToPos(v, "y", true);
        ctx.fillStyle = ctx.strokeStyle = css(s.color);
        ctx.globalAlpha = 0.15;
        ctx.beginPath();
        at.forEach((i) => ctx.lineTo(x(i), y(s.low[i])));
        at.slice().reverse().forEach((i) => ctx.lineTo(x(i), y(s.high[i])));
        ctx.fill();
        ctx.globalAlpha = 1;
        ctx.lineWidth = ratio;
        for (const i of at) {
          line(ctx, x(i), y(s.low[i]), x(i), y(s.high[i]));
          for (const v of [s.low[i], s.high[i]]) line(ctx, x(i) - 4 * ratio, y(v), x(i) + 4 * ratio, y(v));
        }
      }
      ctx.restore();
    }

    // decorate draws the labels of the curves, and the levels, which uPlot does not support.
    decorate(u) {
      const ctx = u.ctx, ratio = devicePixelRatio || 1;
      const em = this.em * ratio, family = this.family;
      ctx.save();
      const box = u.bbox;
      this.labels = [];
      if (this.data.series.length > 1 && !this.data.small) this.labelSeries(u, ctx, em, family);
      for (const m of this.data.marks) {
        const x = u.valToPos(m.x, "x", true), y = u.valToPos(m.y, "y", true);
        if (x < box.left - 1 || x > box.left + box.width + 1) continue;
        const color = css(m.color);
        ctx.strokeStyle = ctx.fillStyle = color;
        ctx.lineWidth = 1.5 * ratio;
        ctx.setLineDash([2 * ratio, 4 * ratio]);
        line(ctx, x, y, x, box.top + box.height);
        ctx.setLineDash([]);
        if (m.real > 0 && Math.abs(u.valToPos(m.real, "y", true) - y) > 3 * ratio) {
          const to = Math.min(Math.max(u.valToPos(m.real, "y", true), box.top), box.top + box.height);
          line(ctx, x, y, x, to);
          ctx.fillRect(x - 4 * ratio, to - 4 * ratio, 8 * ratio, 8 * ratio);
        }
        this.handle(ctx, x, y, ratio);
        this.label(u, ctx, m, x, y, em, family, box, color);
      }
      ctx.restore();
    }

    handle(ctx, x, y, ratio) {
      ctx.beginPath();
      ctx.arc(x, y, 8 * ratio, 0, 2 * Math.PI);
      ctx.fillStyle = css("paper");
      ctx.fill();
      ctx.lineWidth = 2.5 * ratio;
      ctx.stroke();
      ctx.lineWidth = 1.5 * ratio;
      for (const d of [-2, 2]) line(ctx, x + d * ratio, y - 3 * ratio, x + d * ratio, y + 3 * ratio);
    }

    label(u, ctx, m, x, y, em, family, box, color) {
      // The text of a mark is to its right, above the falling curve. If there is no room for it, only
      // the sentence below the chart contains it.
      const size = " " + bytes(m.x) + ": " + share(m.y);
      ctx.font = "600 " + em * 0.87 + "px " + family;
      const first = ctx.measureText(m.label).width;
      ctx.font = em * 0.87 + "px " + family;
      let room = box.left + box.width - x - em - first;
      for (const other of this.data.marks) { // the text must not cover the next mark
        const dx = u.valToPos(other.x, "x", true) - x, dy = u.valToPos(other.y, "y", true) - y;
        if (dx > 0 && Math.abs(dy + em) < em * 1.2) room = Math.min(room, dx - em * 1.6 - first);
      }
      const words = box.width < em * 34 ? [] : [size + " fully assoc.", size];
      const value = words.find((text) => ctx.measureText(text).width <= room) || "";
      const width = first + ctx.measureText(value).width;
      // If there is no room to the right, the name is drawn on top of its mark.
      const left = room >= 0 ? x + em * 0.8 : Math.min(x - width / 2, box.left + box.width - width);
      let top = Math.max(y - em * (room >= 0 ? 1 : 1.4), box.top + em * 0.8);
      const clash = () => this.labels.some((l) => Math.abs(l.top - top) < em * 1.1 && l.left < left + width + em * 0.4 && left < l.left + l.width + em * 0.4);
      while (clash() && top > box.top + em) top -= em * 0.6;
      while (clash() && top < box.top + box.height - em) top += em * 0.6; // no room above
      this.labels.push({ left, top, width });
      ctx.textAlign = "left";
      ctx.textBaseline = "middle";
      ctx.lineJoin = "round";
      ctx.strokeStyle = css("ground");
      ctx.lineWidth = em * 0.3;
      ctx.strokeText(value, left + first, top);
      ctx.fillStyle = color;
      ctx.fillText(value, left + first, top);
      ctx.font = "600 " + em * 0.87 + "px " + family;
      ctx.strokeText(m.label, left, top);
      ctx.fillText(m.label, left, top);
    }

    labelSeries(u, ctx, em, family) {
      const taken = [];
      ctx.font = "600 " + em * 0.87 + "px " + family;
      ctx.textBaseline = "middle";
      ctx.lineJoin = "round";
      const ends = [];
      this.data.series.forEach((s, i) => {
        if (s.shape === "bars") return;
        const y = this.points[i + 1];
        let last = y.length - 1;
        while (last >= 0 && y[last] === null) last--;
        if (last >= 0) ends.push({ s, last, at: u.valToPos(y[last], "y", true) });
      });
      // Labels are placed in the order of the ends of the curves, so that each is next to its curve.
      ends.sort((a, b) => a.at - b.at).forEach(({ s, last, at }) => {
        const box = u.bbox;
        const x = Math.min(u.valToPos(this.points[0][last], "x", true), box.left + box.width) - em * 0.4;
        const width = ctx.measureText(s.label).width;
        // The nearest free height above or below the end of the curve at which the label covers no
        // curve.
        const crossed = this.heights(u, x - width - em * 0.3, x + em * 0.3);
        const inside = (top) => top > box.top + em * 0.5 && top < box.top + box.height - em * 0.5;
        const apart = (top) => inside(top) && !taken.some((t) => Math.abs(t - top) < em);
        const below = (top) => apart(top) && !taken.some((t) => t > top);
        const free = (top) => below(top) && !crossed.some(([high, low]) => top > high - em * 0.6 && top < low + em * 0.6);
        let top;
        for (const fits of [free, below, apart]) {
          for (let d = 0.75; d < 25 && top === undefined; d += 0.25) top = [at - em * d, at + em * d].find(fits);
        }
        if (top === undefined) top = Math.max(at - em * 0.75, box.top + em * 0.6);
        taken.push(top);
        this.labels.push({ left: x - width, top, width });
        ctx.textAlign = "right";
        ctx.strokeStyle = css("ground");
        ctx.lineWidth = em * 0.3;
        ctx.strokeText(s.label, x, top);
        ctx.fillStyle = css(s.color);
        ctx.fillText(s.label, x, top);
      });
    }

    // heights returns, for each series, the highest and the lowest position of its curve within a
    // range.
    heights(u, from, to) {
      const all = [], list = this.points[0];
      this.data.series.forEach((s, k) => {
        if (s.shape === "bars") return;
        const y = this.points[k + 1];
        let high = Infinity, low = -Infinity;
        for (let i = this.index(u.posToVal(from / (devicePixelRatio || 1) - u.bbox.left / (devicePixelRatio || 1), "x")); i < list.length; i++) {
          if (y[i] !== null) {
            const at = u.valToPos(y[i], "y", true);
            high = Math.min(high, at);
            low = Math.max(low, at);
          }
          if (u.valToPos(list[i], "x", true) > to) break;
        }
        if (low >= high) all.push([high, low]);
      });
      return all;
    }

    // ---- Reading

    rest() {
      this.readout.textContent = this.data.small ? "" : "Point at the chart, or use the arrow keys, to read values.";
      this.readout.classList.add("idle");
    }

    hover(u) {
      const left = u.cursor.left;
      if (left === undefined || left === null || left < 0) { if (!this.keyed) this.rest(); return; }
      const at = u.posToVal(left, "x");
      if (this.keyed || !Number.isFinite(at)) return; // while the width changes, positions have no values
      this.at = at;
      this.say(at, false);
    }

    index(x) {
      const list = this.points[0];
      if (this.data.x.unit === "bin") {
        let best = 0;
        list.forEach((v, i) => { if (Math.abs(v - x) < Math.abs(list[best] - x)) best = i; });
        return best;
      }
      let low = 0, high = list.length - 1;
      while (low < high) {
        const mid = (low + high + 1) >> 1;
        if (list[mid] <= x) low = mid; else high = mid - 1;
      }
      return low;
    }

    say(x, aloud) {
      const i = this.index(x), data = this.data;
      let where = data.x.unit === "bin" ? (data.x.labels[i] === "cold" ? "cold" : "distance " + data.x.labels[i])
        : (data.x.unit === "references" ? (data.x.log ? count(data.at[i]) + " accesses" : "from reference " + count(data.at[i]))
          : data.x.unit === "cores" ? data.at[i] + (data.at[i] === 1 ? " core" : " cores") : writers[data.x.unit](x));
      const values = data.series
        .map((s, k) => [s, this.points[k + 1][i]])
        .filter(([, v]) => v !== null)
        .map(([s, v]) => (s.label === "cold" ? "accesses" : s.label) + " " + this.yText(v) +
          (s.low[i] < s.high[i] ? " (" + this.yText(s.low[i]) + " to " + this.yText(s.high[i]) + ")" : ""));
      const text = where + ": " + values.join(", ");
      this.readout.classList.remove("idle");
      this.readout.textContent = text;
      if (aloud) document.getElementById("live").textContent = text;
    }

    readAt(x, aloud) {
      const u = this.u;
      this.at = x;
      const px = this.data.x.unit === "bin" ? this.points[0][this.index(x)] : x;
      this.keyed = true;
      u.setCursor({ left: u.valToPos(px, "x"), top: 10 });
      this.keyed = false;
      this.say(x, aloud);
    }

    key(e) {
      if (!this.u || e.ctrlKey || e.metaKey || e.altKey) return;
      const [min, max] = [this.u.scales.x.min, this.u.scales.x.max];
      const data = this.data;
      const start = this.at === null || this.at === undefined ? (data.marks.length ? data.marks[0].x : min) : this.at;
      const steps = (e.shiftKey ? 10 : 1) * (e.key === "ArrowLeft" ? -1 : 1);
      let to;
      switch (e.key) {
        case "ArrowLeft": case "ArrowRight":
          if (this.at === null || this.at === undefined) to = start;
          else if (data.x.log) to = 2 ** ((Math.round(Math.log2(start) * 4) + steps) / 4);
          else to = this.points[0][Math.min(Math.max(this.index(start) + steps, 0), this.points[0].length - 1)];
          break;
        case "Home": to = min; break;
        case "End": to = max; break;
        case "+": case "=": this.scale(start, 0.5); break;
        case "-": this.scale(start, 2); break;
        case "Escape":
          if (!this.zoom) return;
          this.zoomTo(null);
          break;
        default: return;
      }
      e.preventDefault();
      if (to !== undefined) this.readAt(Math.min(Math.max(to, min), max), true);
    }

    scale(center, factor) {
      const full = this.full(), log = this.data.x.log;
      const f = log ? Math.log2 : (v) => v, g = log ? (v) => 2 ** v : (v) => v;
      const [min, max] = (this.zoom || full).map(f);
      const half = (max - min) * factor / 2, c = f(center);
      const low = Math.max(c - half, f(full[0])), high = Math.min(c + half, f(full[1]));
      this.at = center;
      this.zoomTo(high - low >= f(full[1]) - f(full[0]) - 1e-9 ? null : [g(low), g(high)]);
    }

    // ---- Levels that are dragged

    grab(e) {
      if (!this.u || !onMove || e.button > 0) return;
      const box = this.u.over.getBoundingClientRect();
      const x = e.clientX - box.left;
      let best = null, reach = e.pointerType === "touch" ? 22 : 10;
      for (const m of this.data.marks) {
        const d = Math.abs(this.u.valToPos(m.x, "x") - x);
        if (m.level && d <= reach) { best = m; reach = d; }
      }
      if (!best) return;
      this.held = best;
      this.plot.setPointerCapture(e.pointerId);
      e.stopPropagation();
    }

    drag(e) {
      if (!this.held || !this.u) return;
      const box = this.u.over.getBoundingClientRect();
      const value = this.u.posToVal(e.clientX - box.left, "x");
      const size = snap(value);
      if (size === this.sent) return;
      this.sent = size;
      onMove(this.held.level, size);
    }
  }

  // snap returns the nearest usual cache size: a power of two, or 1.5 times a power of two.
  function snap(v) {
    const k = 2 ** Math.floor(Math.log2(Math.max(v, 1024)));
    return [k, k * 1.5, k * 2].reduce((a, b) => Math.abs(Math.log(b / v)) < Math.abs(Math.log(a / v)) ? b : a);
  }

  function niceStep(rough) {
    const d = 10 ** Math.floor(Math.log10(rough || 1));
    for (const m of [1, 2, 5, 10]) if (m * d >= rough) return m * d;
    return 10 * d;
  }

  function line(ctx, x0, y0, x1, y1) {
    ctx.beginPath();
    ctx.moveTo(x0, y0);
    ctx.lineTo(x1, y1);
    ctx.stroke();
  }

  // overBins draws a series over bins as steps: each value is a horizontal line over its bin.
  function overBins(u, series, from, to) {
    const stroke = new Path2D(), x = u.data[0], y = u.data[series];
    let joined = false;
    for (let i = from; i <= to; i++) {
      if (y[i] === null) { joined = false; continue; }
      const top = u.valToPos(y[i], "y", true);
      stroke[joined ? "lineTo" : "moveTo"](u.valToPos(x[i] - 0.5, "x", true), top);
      stroke.lineTo(u.valToPos(x[i] + 0.5, "x", true), top);
      joined = true;
    }
    return { stroke, fill: null, clip: null, flags: 1 };
  }

  const hosts = (id) => document.querySelectorAll('sg-chart[chart="' + id + '"]');

  function redrawAll() {
    colors = new Map();
    for (const host of document.querySelectorAll("sg-chart")) if (host.plot) host.draw();
  }
  addEventListener("themechange", redrawAll);
  still.addEventListener("change", redrawAll);

  window.stackglassCharts = {
    onMove(f) { onMove = f; },
    onZoom(f) { onZoom = f; },
    set(data) {
      charts.set(data.id, data);
      for (const host of hosts(data.id)) if (host.plot) host.draw();
    },
    savePicture(id, name) {
      const host = hosts(id)[0];
      const map = window.stackglassMaps && window.stackglassMaps.picture(id) || window.stackglassMatrices && window.stackglassMatrices.picture(id) || window.stackglassFlames && window.stackglassFlames.picture(id);
      if (!map && (!host || !host.u)) return;
      const { canvas: from, title, below } = map || { canvas: host.u.ctx.canvas, title: host.data.title, below: host.data.x.label };
      const em = 15 * (devicePixelRatio || 1);
      const to = document.createElement("canvas");
      to.width = from.width;
      to.height = from.height + em * 4;
      const ctx = to.getContext("2d");
      ctx.fillStyle = css("ground");
      ctx.fillRect(0, 0, to.width, to.height);
      ctx.fillStyle = css("ink");
      ctx.font = "600 " + em + "px sans-serif";
      ctx.fillText(title, em, em * 1.5);
      ctx.drawImage(from, 0, em * 2);
      ctx.fillStyle = css("second");
      ctx.font = em * 0.8 + "px sans-serif";
      ctx.textAlign = "right";
      ctx.fillText(below, to.width - em, to.height - em * 0.7);
      to.toBlob((blob) => window.stackglassCharts.save(blob, name), "image/png");
    },
    save(blob, name) {
      const a = document.createElement("a");
      a.href = URL.createObjectURL(blob);
      a.download = name;
      a.click();
      setTimeout(() => URL.revokeObjectURL(a.href), 60000);
    },
  };
  customElements.define("sg-chart", Chart);
})();
