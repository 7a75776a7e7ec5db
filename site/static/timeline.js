// The timeline: draws what Go hands over where an <sg-timeline> stands: the miss
// ratio of each level, the cycles of an access, the phases, the marked regions, the threads, and the
// functions with the most misses, over the run. A range is
// brushed with the pointer or the keys; Go hears of it, and says in words what
// it is.
"use strict";
(function () {
  let data = null; // the latest data from Go
  let onRange = null, onFunction = null;
  let busy = 0, next = null; // the time at which Go began to process a range, and the range to send next

  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const thin = "\u202f";
  function count(x, digits = 3) {
    let i = 0;
    while (x.toPrecision(digits) >= 1000 && i < 4) { x /= 1000; i++; }
    return Number(x.toPrecision(digits)) + (i ? thin + ["", "k", "M", "G", "T"][i] : "");
  }
  const cyclesText = (x) => "≈ " + count(x); // an estimate
  const percent = (x) => (x && x < 0.00001 ? "< 0.001" : Number((x * 100).toPrecision(3))) + thin + "%";

  // Only one range at a time is sent to Go, so that the page does not lag behind the pointer.
  function send(from, to, phase) {
    if (busy && performance.now() - busy < 2000) { next = [from, to, phase]; return; }
    busy = performance.now();
    onRange(from, to, !!phase);
  }

  class Timeline extends HTMLElement {
    connectedCallback() {
      if (!this.canvas) this.build();
      this.resizes = new ResizeObserver(() => this.draw());
      this.resizes.observe(this);
      this.draw();
    }

    disconnectedCallback() { this.resizes.disconnect(); }

    build() {
      this.plot = document.createElement("div");
      this.plot.className = "plot";
      this.plot.tabIndex = 0;
      this.plot.setAttribute("role", "application");
      this.plot.setAttribute("aria-roledescription", "timeline");
      this.canvas = this.plot.appendChild(document.createElement("canvas"));
      this.readout = document.createElement("p");
      this.readout.className = "readout idle";
      this.append(this.plot, this.readout);
      this.plot.addEventListener("pointerdown", (e) => this.grab(e));
      this.plot.addEventListener("pointermove", (e) => this.move(e));
      this.plot.addEventListener("pointerup", (e) => this.release(e));
      this.plot.addEventListener("pointercancel", () => { this.held = null; this.draw(); });
      this.plot.addEventListener("pointerleave", () => { this.hover = this.over = null; this.draw(); });
      this.plot.addEventListener("blur", () => { this.over = null; this.draw(); });
      this.plot.addEventListener("dblclick", () => this.choose(0, 0));
      this.plot.addEventListener("keydown", (e) => this.key(e));
      this.turned = 0; // how far the wheel was turned since the last zoom
      this.plot.addEventListener("wheel", (e) => this.wheel(e), { passive: false });
    }

    // range is the range that is being selected, or else the range that Go shows.
    get range() { return this.held && this.held.range || [data.from, data.to]; }

    x(window) { return this.left + this.width * Math.min(window * data.window, data.references) / data.references; }

    window(e) {
      const box = this.canvas.getBoundingClientRect();
      return Math.min(Math.max((e.clientX - box.left - this.left) / this.width * data.references / data.window, 0), data.windows);
    }

    draw() {
      const full = this.plot.clientWidth;
      if (!data || !full) return;
      const ratio = devicePixelRatio || 1, font = getComputedStyle(this), em = parseFloat(font.fontSize);
      const narrow = full < 30 * em;
      const area = Math.round(em * (narrow ? 2 : 2.9)), band = Math.round(em * 1.3);
      const lanes = narrow ? [] : data.lanes.slice(0, 8), lane = Math.round(em * (lanes.length > 4 ? 0.75 : 0.9));
      const cost = data.cycles.length ? Math.round(em * 1.5) : 0;
      this.bandsFrom = area + 2 + (cost && cost + 2);
      this.bandsTo = this.bandsFrom + band;
      // In a narrow window, only the outer regions are drawn.
      this.rowHigh = Math.round(em * 1.15);
      const rows = Math.min(data.regions.reduce((n, r) => Math.max(n, r.row + 1), 0), narrow ? 1 : Infinity);
      this.regionsTo = this.bandsTo + (rows && 2 + rows * this.rowHigh);
      const lanesTo = this.regionsTo + (lanes.length ? 2 + lanes.length * lane : 0);
      this.functions = data.functions.slice(0, narrow ? 2 : Infinity);
      this.functionsFrom = lanesTo + 2;
      this.functionHigh = Math.round(em * 1.05);
      const ruler = lanesTo + (this.functions.length && 2 + this.functions.length * this.functionHigh), height = ruler + Math.round(em * 1.1);
      this.canvas.width = Math.round(full * ratio);
      this.canvas.height = Math.round(height * ratio);
      this.canvas.style.setProperty("width", full + "px");
      this.canvas.style.setProperty("height", height + "px");
      const ctx = this.canvas.getContext("2d");
      ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
      ctx.fillStyle = style("paper");
      ctx.fillRect(0, 0, full, height);
      ctx.textBaseline = "middle";
      ctx.font = em * 0.7 + "px " + font.fontFamily;
      // The names of the rows are to the left of the drawing. Each name is a list of texts and colours.
      const most = Math.max(...this.functions.map((f) => Math.max(...f.y)), 1e-9);
      const names = [[em * 0.75, ...data.levels.map((l) => [l.label, l.color]), ["misses", "second"]], [em * (narrow ? 1.6 : 1.95), ["max " + percent(this.most), "second"]]];
      if (cost) names.push([area + 2 + cost / 2, ["cycles, max " + cyclesText(Math.max(...data.cycles)), "second"]]);
      if (data.bands.length) names.push([this.bandsFrom + band / 2, ["phases", "second"]]);
      if (rows) names.push([this.bandsTo + 2 + this.rowHigh / 2, ["marked regions", "second"]]);
      lanes.forEach((l, i) => names.push([this.regionsTo + 2 + (i + 0.5) * lane, [l.label, "ink"]]));
      this.functions.forEach((f, i) => names.push([this.functionsFrom + (i + 0.5) * this.functionHigh, [f.label, "ink"]]));
      names.push([ruler + em * 0.6, ["references", "second"]]);
      const wide = names.map(([, ...texts]) => ctx.measureText(texts.map((t) => t[0]).join(" ")).width);
      this.left = Math.round(Math.min(Math.max(...wide) + em * 0.8, full * (narrow ? 0.4 : 0.2)));
      this.width = full - this.left;
      for (const [y, ...texts] of names) this.name(ctx, texts, y, em);
      this.ruler(ctx, ruler, em);
      this.areas(ctx, area);
      if (cost) this.area(ctx, data.cycles, Math.max(...data.cycles, 1e-9), area + 2 + cost, cost - 2, style("memory"));
      for (const b of data.bands) this.band(ctx, b, this.bandsFrom, band, em, font.fontFamily, 0.22);
      for (const r of data.regions) if (r.row < rows) this.band(ctx, r, this.bandsTo + 2 + r.row * this.rowHigh, this.rowHigh - 1, em, font.fontFamily, 0.1);
      lanes.forEach((l, i) => this.lane(ctx, l, this.regionsTo + 2 + i * lane, lane - 1, Math.max(...l.y, 1), "accent"));
      this.functions.forEach((f, i) => {
        const y = this.functionsFrom + i * this.functionHigh;
        this.lane(ctx, f, y, this.functionHigh - 1, most, "level1");
        if (f !== this.over) return;
        ctx.strokeStyle = style("accent");
        ctx.lineWidth = 1.5;
        ctx.strokeRect(0.75, y - 0.25, full - 1.5, this.functionHigh - 0.5);
      });
      this.brush(ctx, height, em);
      this.say();
    }

    // most is the highest share of accesses that miss in a window.
    get most() { return Math.max(...data.levels.map((l) => Math.max(...l.y)), 1e-9); }

    // areas draws the share of accesses that miss in each level. The areas overlap.
    areas(ctx, height) {
      for (let k = 1; k < 4; k++) {
        ctx.fillStyle = style("grid");
        ctx.fillRect(this.left, Math.round(height * k / 4), this.width, 1);
      }
      for (const level of data.levels) this.area(ctx, level.y, this.most, height, height - 3, style(level.color));
    }

    // name writes the name of a row. A name that is too long ends with an ellipsis.
    name(ctx, texts, y, em) {
      let x = em * 0.3;
      const fits = (text) => x + ctx.measureText(text).width <= this.left - em * 0.3;
      for (let [text, color] of texts) {
        if (!fits(text)) {
          while (text && !fits(text + "…")) text = text.slice(0, -1);
          text += "…";
        }
        ctx.fillStyle = style(color);
        ctx.fillText(text, x, y);
        x += ctx.measureText(text + " ").width;
      }
    }

    // ruler draws an axis that counts references.
    ruler(ctx, top, em) {
      const from = data.first * data.window, least = data.references * em * 6 / this.width;
      const power = 10 ** Math.floor(Math.log10(least)), step = power * [1, 2, 5, 10].find((k) => k * power >= least);
      for (let at = Math.ceil(from / step) * step; at <= from + data.references; at += step) {
        // Adjacent labels differ: they have all digits of a multiple of the step.
        const digits = Math.max(3, Math.floor(Math.log10(at)) - Math.round(Math.log10(power)) + 1);
        const x = this.left + this.width * (at - from) / data.references, text = count(at, digits), wide = ctx.measureText(text).width;
        ctx.fillStyle = style("field");
        ctx.fillRect(Math.min(x, this.left + this.width - 1), top, 1, em * 0.3);
        ctx.fillStyle = style("second");
        ctx.fillText(text, Math.min(x + 3, this.left + this.width - wide - 3), top + em * 0.6);
      }
    }

    // area draws a value of each window, above the line at bottom. The value most is height pixels
    // above it.
    area(ctx, values, most, bottom, height, color) {
      const path = new Path2D(), edge = new Path2D();
      path.moveTo(this.x(0), bottom);
      for (let i = 0; i < data.windows; i++) {
        const y = bottom - height * values[i] / most;
        path.lineTo(this.x(i), y);
        path.lineTo(this.x(i + 1), y);
        edge[i ? "lineTo" : "moveTo"](this.x(i), y);
        edge.lineTo(this.x(i + 1), y);
      }
      path.lineTo(this.x(data.windows), bottom);
      ctx.fillStyle = ctx.strokeStyle = color;
      ctx.globalAlpha = 0.28;
      ctx.fill(path);
      ctx.globalAlpha = 1;
      ctx.lineWidth = 1.25;
      ctx.stroke(edge);
      ctx.fillStyle = style("hair");
      ctx.fillRect(this.left, bottom, this.width, 1);
    }

    // band draws a phase or a region. A phase or a region that occurs again has the same colour.
    band(ctx, b, top, height, em, family, fill) {
      const hues = ["level1", "level3", "side-b", "side-a", "level2", "memory"];
      ctx.font = em * 0.8 + "px " + family;
      const from = this.x(b.from), to = Math.max(this.x(b.to) - 1, from + 1);
      ctx.fillStyle = style(hues[(b.number - 1) % hues.length]);
      ctx.globalAlpha = fill;
      ctx.fillRect(from, top, to - from, height);
      ctx.globalAlpha = 1;
      ctx.fillRect(from, top, to - from, 2);
      let text = b.label;
      const room = to - from - em * 0.5;
      if (room < em) return;
      if (ctx.measureText(text).width > room) {
        while (text.length > 2 && ctx.measureText(text + "…").width > room) text = text.slice(0, -1);
        text = text.length > 2 ? text + "…" : "";
      }
      ctx.fillStyle = style("ink");
      ctx.fillText(text, from + em * 0.3, top + height / 2 + 1);
    }

    // region returns the region at the pointer.
    region(e) {
      const box = this.canvas.getBoundingClientRect(), y = e.clientY - box.top, at = this.window(e);
      if (y < this.bandsTo || y >= this.regionsTo || e.clientX - box.left < this.left) return null;
      const row = Math.floor((y - this.bandsTo - 2) / this.rowHigh);
      return data.regions.find((r) => r.row === row && at >= r.from && at < r.to) || null;
    }

    // windowsOf returns the windows of a phase, or the windows that contain a part of a region.
    windowsOf(b) {
      const from = Math.floor(b.from);
      return [from, Math.max(Math.ceil(b.to), from + 1)];
    }

    // function returns the function at the pointer.
    function(e) {
      const y = e.clientY - this.canvas.getBoundingClientRect().top;
      return this.functions[Math.floor((y - this.functionsFrom) / this.functionHigh)] || null;
    }

    // functionText describes the misses of a function in a window, or in the whole run.
    functionText(f, at) {
      const [level] = data.levels, sum = f.y.reduce((a, b) => a + b, 0);
      const text = f.label + ": " + count(sum) + " misses in " + level.label + " in the whole run";
      return text + (at === null ? "" : ", " + count(f.y[Math.min(Math.floor(at), data.windows - 1)]) + " at the pointer") + ". Click, or press Enter, to see the function in Code.";
    }

    // lane draws the amounts of a thread or a function. The amount most has the darkest shade.
    lane(ctx, lane, y, height, most, color) {
      ctx.fillStyle = style(color);
      for (let i = 0; i < data.windows; i++) {
        ctx.globalAlpha = lane.y[i] ? 0.15 + 0.6 * lane.y[i] / most : 0.04;
        ctx.fillRect(this.x(i), y, this.x(i + 1) - this.x(i) + 0.3, height);
      }
      ctx.globalAlpha = 1;
    }

    // brush shades the part outside of the range, and draws the two handles.
    brush(ctx, height, em) {
      const [from, to] = this.range;
      if (to > from) {
        const a = this.x(from), b = this.x(to);
        ctx.fillStyle = style("ground");
        ctx.globalAlpha = 0.6;
        ctx.fillRect(this.left, 0, a - this.left, height);
        ctx.fillRect(b, 0, this.left + this.width - b, height);
        ctx.globalAlpha = 1;
        ctx.strokeStyle = ctx.fillStyle = style("accent");
        ctx.lineWidth = 1.5;
        ctx.strokeRect(a + 0.75, 0.75, Math.max(b - a - 1.5, 1), height - 1.5);
        for (const x of [a, b]) {
          ctx.beginPath();
          ctx.roundRect(Math.min(Math.max(x - 3, this.left), this.left + this.width - 6), height / 2 - em * 0.7, 6, em * 1.4, 3);
          ctx.fill();
        }
      }
      if (this.hover !== null && this.hover !== undefined && !this.held && this.hoverX >= this.left) {
        ctx.fillStyle = style("second");
        ctx.fillRect(this.hoverX, 0, 1, height);
      }
    }

    // say shows the numbers at the pointer, or those of the range.
    say() {
      const at = this.hover, aside = this.hoverX < this.left, idle = at === null || at === undefined || aside && !this.over;
      this.plot.setAttribute("aria-label", data.title + ". " + data.summary + " " + data.sentence +
        " Arrow keys move the range, with Shift its end; W and S zoom, A and D move the range by a quarter; Page Up and Page Down choose a phase" + (data.regions.length ? ", with Shift a marked region" : "") + (this.functions.length ? "; Up and Down choose a function, and Enter shows it in Code" : "") + "; Escape chooses the whole run.");
      this.readout.classList.toggle("idle", idle);
      if (idle) { this.readout.textContent = data.sentence; return; }
      if (this.over) { this.readout.textContent = this.over.text || this.functionText(this.over, aside ? null : at); return; }
      const i = Math.min(Math.floor(at), data.windows - 1), band = data.bands.find((b) => i >= b.from && i < b.to);
      this.readout.textContent = count((i + data.first) * data.window) + "–" + count(Math.min((i + 1) * data.window, data.references) + data.first * data.window) + " references: " +
        data.levels.map((l) => l.label + " misses " + percent(l.y[i]) + " of accesses").join(", ") + (data.cycles.length ? "; " + cyclesText(data.cycles[i]) + " memory cycles per access" : "") + (band ? "; phase " + band.number + ", mostly " + band.label : "") + ".";
    }

    grab(e) {
      if (e.button > 0 || !data) return;
      this.plot.setPointerCapture(e.pointerId);
      const at = this.window(e), [from, to] = this.range, box = this.canvas.getBoundingClientRect();
      const near = (window) => to > from && Math.abs(this.x(window) - (e.clientX - box.left)) <= 7;
      this.held = { start: near(from) ? to : near(to) ? from : Math.min(Math.floor(at), data.windows - 1), x: e.clientX, range: null, function: this.function(e), handle: near(from) || near(to),
        band: e.clientX - box.left >= this.left && e.clientY - box.top >= this.bandsFrom && e.clientY - box.top < this.bandsTo ? data.bands.find((b) => at >= b.from && at < b.to) : this.region(e) };
      this.hover = null;
      onRange(-1, -1, false); // until the pointer is released, all changes are one step of the history
    }

    move(e) {
      if (!data) return;
      const at = this.window(e), held = this.held;
      if (!held) {
        this.hover = at;
        this.over = this.region(e) || this.function(e);
        this.plot.style.cursor = this.over && this.over.id !== undefined ? "pointer" : "";
        this.hoverX = e.clientX - this.canvas.getBoundingClientRect().left;
        this.draw();
        return;
      }
      if (Math.abs(e.clientX - held.x) < 4 && !held.range) return;
      const end = held.handle ? Math.round(at) : at >= held.start ? Math.ceil(at) : Math.floor(at);
      let from = Math.min(held.start, end), to = Math.max(held.start, end);
      if (!held.handle && end <= held.start) to = held.start + 1;
      if (to === from) to < data.windows ? to++ : from--;
      held.range = [from, to];
      this.draw();
      send(from, to);
    }

    release(e) {
      const held = this.held;
      this.held = null;
      if (!held) return;
      if (held.range) { data.from = held.range[0]; data.to = held.range[1]; send(...held.range); } else if (held.function) onFunction(held.function.id);
      else if (held.band) this.choose(...this.windowsOf(held.band), true);
      else if (!held.handle && data.to > data.from) {
        const at = this.window(e);
        if (at < data.from || at > data.to) this.choose(0, 0);
      }
      this.draw();
    }

    // wheel zooms in or out at the pointer if Ctrl is pressed. Browsers also report pinches on a
    // touchpad in this way. Turns that follow each other closely are one step of the history.
    wheel(e) {
      if (!data || !e.ctrlKey && !e.metaKey) return;
      e.preventDefault();
      if (!this.turned || e.timeStamp - this.turnedAt > 500) { this.turned = 0; onRange(-1, -1, false); }
      this.turnedAt = e.timeStamp;
      this.turned += e.deltaY * (e.deltaMode ? 20 : 1);
      if (Math.abs(this.turned) < 40) return;
      const range = this.zoomed(this.turned > 0, this.window(e));
      this.turned = Math.sign(this.turned);
      this.hover = null;
      this.choose(...range);
    }

    // zoomed returns a smaller or larger range than the current range, in which a window keeps its
    // place. Both ends are 0 for the whole run.
    zoomed(out, at) {
      const n = data.windows, [a, b] = this.range, [from, to] = b > a ? [a, b] : [0, n], size = to - from;
      const next = Math.min(out ? Math.max(Math.round(size * 1.25), size + 1) : Math.max(Math.min(Math.round(size * 0.8), size - 1), 1), n);
      if (next === n) return [0, 0];
      const share = Math.min(Math.max((at - from) / size, 0), 1);
      const first = Math.min(Math.max(Math.round(from + share * (size - next)), 0), n - next);
      return [first, first + next];
    }

    choose(from, to, phase) {
      data.from = from;
      data.to = to;
      this.draw();
      send(from, to, phase);
    }

    key(e) {
      if (!data || e.ctrlKey || e.metaKey || e.altKey) return;
      let [from, to] = this.range;
      const key = e.key.length === 1 && !e.shiftKey ? e.key.toLowerCase() : e.key; // with Caps Lock
      const n = data.windows, quarter = Math.ceil((to - from) / 4), by = { ArrowLeft: -1, ArrowRight: 1, a: -quarter, d: quarter }[key], chosen = to > from;
      switch (key) {
        case "w": case "s":
          [from, to] = this.zoomed(key === "s", chosen ? (from + to) / 2 : n / 2);
          break;

        case "ArrowUp": case "ArrowDown": case "Enter": {
          const at = this.functions.indexOf(this.over);
          if (!this.functions.length || key === "Enter" && at < 0) return;
          e.preventDefault();
          if (key === "Enter") { onFunction(this.over.id); return; }
          this.over = this.functions[Math.min(Math.max(at + (key === "ArrowDown" ? 1 : -1), 0), this.functions.length - 1)];
          this.hover = null;
          this.draw();
          document.getElementById("live").textContent = this.readout.textContent = this.functionText(this.over, null);
          return;
        }
        case "ArrowLeft": case "ArrowRight": case "a": case "d":
          if (!by) return;
          if (!chosen) { from = by > 0 ? 0 : n - 1; to = from + 1; }
          else if (e.shiftKey) to = Math.min(Math.max(to + by, from + 1), n);
          else { const d = Math.min(Math.max(by, -from), n - to); from += d; to += d; }
          break;
        case "Home": case "End":
          if (!chosen) { from = 0; to = n; }
          if (key === "Home") from = 0; else to = n;
          break;
        case "PageUp": case "PageDown": {
          const list = e.shiftKey ? data.regions : data.bands, step = key === "PageDown" ? 1 : -1;
          if (!list.length) return;
          const is = (b) => { const w = this.windowsOf(b); return w[0] === from && w[1] === to; };
          let at = this.chosen && list.includes(this.chosen) && is(this.chosen) ? list.indexOf(this.chosen) : list.findLastIndex((b) => Math.floor(b.from) <= from);
          if (e.shiftKey && step > 0 && chosen && at >= 0 && !is(list[at]) && Math.floor(list[at].from) === from) at--;
          this.chosen = list[!chosen ? (step > 0 ? 0 : list.length - 1) : Math.min(Math.max(at + step, 0), list.length - 1)];
          [from, to] = this.windowsOf(this.chosen);
          break;
        }
        case "Escape":
          if (!chosen) return;
          from = to = 0;
          break;
        default: return;
      }
      e.preventDefault();
      e.stopPropagation();
      this.hover = null;
      this.choose(from, to);
    }
  }

  addEventListener("themechange", () => { for (const host of document.querySelectorAll("sg-timeline")) if (host.canvas) host.draw(); });

  window.stackglassTimelines = {
    onRange(f) { onRange = f; },
    onFunction(f) { onFunction = f; },
    set(d) {
      data = d;
      busy = 0;
      if (next) { const [from, to, phase] = next; next = null; send(from, to, phase); }
      for (const host of document.querySelectorAll("sg-timeline")) if (host.canvas) host.draw();
    },
  };
  customElements.define("sg-timeline", Timeline);
})();
