// The map of sets × ways. Go passes the data, which this script draws into the element <sg-heatmap
// chart="id">. A row is a number of sets, and a column is a number of ways. Both axes are
// logarithmic, so all caches of one size lie on a straight line. The pointer and the keys are
// handled here; Go is told which cell was chosen, and describes it in words.
"use strict";
(function () {
  const maps = new Map(); // the latest data from Go, by id
  let onPick = null;

  const thin = "\u202f";
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

  // rgb reads a colour of app.css.
  function rgb(name) {
    const hex = style(name).replace("#", "");
    const full = hex.length === 3 ? Array.from(hex, (d) => d + d).join("") : hex;
    return [0, 2, 4].map((i) => parseInt(full.slice(i, i + 2), 16));
  }
  const mix = (a, b, t) => a.map((v, i) => Math.round(v + (b[i] - v) * t));
  const css = (c) => "rgb(" + c.join(" ") + ")";
  function bytes(n) {
    let i = 0;
    while (n >= 1024 && i < 4) { n /= 1024; i++; }
    return Number(n.toPrecision(3)) + thin + ["B", "KiB", "MiB", "GiB", "TiB"][i];
  }
  function percent(share) {
    const p = share * 100, size = Math.abs(p);
    if (size === 0) return "0";
    if (size < 0.05) return p < 0 ? ">−.1" : "<.1";
    const text = size >= 9.95 ? size.toFixed(0) : size.toFixed(1);
    return (p < 0 ? "−" : "") + text;
  }

  function exactly(share) {
    const p = share * 100, size = Math.abs(p);
    return (p < 0 ? "−" : "") + (size && size < 0.001 ? "< 0.001" : Number(size.toPrecision(3)));
  }

  class HeatMap extends HTMLElement {
    static observedAttributes = ["chart"];

    connectedCallback() {
      if (!this.canvas) this.build();
      this.resizes = new ResizeObserver(() => this.draw());
      this.resizes.observe(this);
      this.draw();
    }

    disconnectedCallback() { this.resizes.disconnect(); }

    attributeChangedCallback() { if (this.canvas) this.draw(); }

    build() {
      const make = (name, set) => this.appendChild(Object.assign(document.createElement(name), set));
      make("p", { className: "axis up", textContent: "sets" });
      this.plot = make("div", { className: "plot", tabIndex: 0 });
      this.plot.setAttribute("role", "application");
      this.plot.setAttribute("aria-roledescription", "map");
      this.canvas = this.plot.appendChild(document.createElement("canvas"));
      make("p", { className: "axis right", textContent: "ways" });
      this.scale = make("div", { className: "heat-scale" });
      this.scale.setAttribute("aria-hidden", "true");
      this.readout = make("p", { className: "readout idle", textContent: "Point at a cell, or use the arrow keys, to read it." });
      this.plot.addEventListener("keydown", (e) => this.key(e));
      this.plot.addEventListener("pointerdown", (e) => { const at = this.at(e); if (at) onPick(at.sets, at.ways); });
      this.plot.addEventListener("pointermove", (e) => this.read(this.at(e)));
      this.plot.addEventListener("pointerleave", () => this.read(null));
    }

    // draw computes the layout for the available width.
    draw() {
      const data = this.data = maps.get(this.getAttribute("chart"));
      const width = this.plot.clientWidth;
      if (!data || !width) return;
      const ratio = devicePixelRatio || 1, font = getComputedStyle(this);
      const em = this.em = parseFloat(font.fontSize);
      this.family = font.fontFamily;
      this.plot.setAttribute("aria-label", data.title + ". " + data.summary + " Arrow keys move from cache to cache; with Shift they keep its size.");
      this.left = Math.round(em * 4.2);
      this.bottom = Math.round(em * 1.8);
      this.row = Math.round(em * 1.55);
      const height = this.row * data.rows + this.bottom;
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
      this.canvas.style.setProperty("width", width + "px");
      this.canvas.style.setProperty("height", height + "px");
      this.width = width - this.left - 2;
      const ctx = this.canvas.getContext("2d");
      ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
      ctx.clearRect(0, 0, width, height);
      ctx.textBaseline = "middle";
      this.colours();
      this.place(ctx);
      this.cells(ctx);
      this.diagonals(ctx);
      this.axes(ctx);
      this.marks(ctx);
      this.legend();
      this.read(null);
    }

    // colours chooses the colours: for shares, one hue that starts from the page's background; for
    // signed values, two hues that colour-blind readers can distinguish.
    colours() {
      this.low = rgb("heat-low");
      this.high = rgb("heat-high");
      this.less = rgb("level1");
      this.more = rgb("level2");
      const { least, most, signed } = this.data;
      this.far = signed ? Math.max(-least, most) || 1 : most || 1;
      // The scale is logarithmic if the shares span more than two decades.
      this.floor = !signed && least > 0 && most / least > 100 ? least : 0;
    }

    colour(v) {
      if (this.data.signed) {
        const t = Math.sqrt(Math.min(Math.abs(v) / this.far, 1));
        return mix(this.low, v < 0 ? this.less : this.more, t);
      }
      const t = this.floor ? Math.log(Math.max(v, this.floor) / this.floor) / Math.log(this.far / this.floor) : v / this.far;
      return mix(this.low, this.high, Math.min(Math.max(t, 0), 1));
    }

    // The column for w ways extends from log2(w) to log2(w+1).
    x(ways) { return this.left + this.width * Math.log2(ways) / Math.log2(this.data.columns + 1); }
    // Larger numbers of sets are further up.
    y(row) { return this.row * (this.data.rows - 1 - row); }

    // place computes the positions of the levels' names and of the sizes of diagonals. No size
    // covers a name.
    place(ctx) {
      ctx.font = "600 " + this.em * 0.8 + "px " + this.family;
      this.names = this.data.marks.map((m) => {
        const [x, y, w, h] = this.box(m), width = ctx.measureText(m.label).width;
        return { x: Math.min(x + w + this.em * 0.3, this.left + this.width - width), y: y + h / 2, width };
      });
      const { rows, columns, lineBytes } = this.data;
      const last = Math.log2(columns + 1), most = rows - 1 + Math.floor(last);
      ctx.font = "600 " + this.em * 0.73 + "px " + this.family;
      this.sizes = [];
      for (let k = 6; k <= most; k += 2) {
        const l = Math.max(k - rows + 1, Math.log2(17)), text = bytes(lineBytes * 2 ** k), width = ctx.measureText(text).width;
        const x = this.left + this.width * l / last + 4, y = this.y(k - l) + this.row / 2 - this.row * 0.62;
        if (x + width <= this.left + this.width && y >= 4 && this.free(x, x + width, y)) this.sizes.push({ text, x, y, width });
      }
    }

    // free reports whether a range of a row contains no name.
    free(from, to, y) {
      return !this.names.some((n) => Math.abs(n.y - y) < this.row * 0.9 && n.x < to + 2 && from < n.x + n.width + 2);
    }

    cells(ctx) {
      const { rows, columns, values } = this.data;
      for (let a = 0; a < rows; a++) {
        for (let w = 1; w <= columns; w++) {
          const v = values[a * columns + w - 1], c = this.colour(v);
          if (isNaN(v)) continue; // the analysis did not count this number of sets
          const from = this.x(w), to = this.x(w + 1);
          ctx.fillStyle = css(c);
          ctx.fillRect(from, this.y(a), to - from + 0.6, this.row + 0.6);
        }
      }
    }

    // diagonals draws lines through the caches of one size, for every second power of two, with the
    // size to the right.
    diagonals(ctx) {
      const { rows, columns } = this.data;
      const last = Math.log2(columns + 1), most = rows - 1 + Math.floor(last);
      ctx.save();
      ctx.strokeStyle = style("ink");
      ctx.globalAlpha = 0.45;
      ctx.setLineDash([3, 4]);
      ctx.lineWidth = 1;
      for (let k = 0; k <= most; k += 2) {
        const from = Math.max(0, k - rows + 1), to = Math.min(last, k);
        const x = (l) => this.left + this.width * l / last, y = (l) => this.y(k - l) + this.row / 2;
        ctx.beginPath();
        ctx.moveTo(x(from), y(from));
        ctx.lineTo(x(to), y(to));
        ctx.stroke();
      }
      ctx.restore();
      ctx.textAlign = "left";
      ctx.font = "600 " + this.em * 0.73 + "px " + this.family;
      ctx.lineJoin = "round";
      for (const { text, x, y } of this.sizes) {
        ctx.strokeStyle = style("paper");
        ctx.lineWidth = 3;
        ctx.strokeText(text, x, y);
        ctx.fillStyle = style("ink");
        ctx.fillText(text, x, y);
      }
    }

    axes(ctx) {
      const { rows, columns } = this.data;
      ctx.fillStyle = style("second");
      ctx.font = this.em * 0.8 + "px " + this.family;
      ctx.textAlign = "right";
      for (let a = 0; a < rows; a += 2) ctx.fillText(String(2 ** a).replace(/\B(?=(\d{3})+$)/g, thin), this.left - 6, this.y(a) + this.row / 2);
      ctx.textAlign = "center";
      for (const w of [1, 2, 4, 8, 16, 32]) if (w <= columns) {
        const end = this.left + this.width - ctx.measureText(w).width / 2;
        ctx.fillText(w, Math.min((this.x(w) + this.x(w + 1)) / 2, end), this.row * rows + this.bottom / 2);
      }
    }

    box(cell) {
      const x = this.x(cell.ways), y = this.y(cell.sets);
      return [x, y, this.x(cell.ways + 1) - x, this.row];
    }

    // marks draws the levels of the hierarchy, and the chosen cell.
    marks(ctx) {
      ctx.font = "600 " + this.em * 0.8 + "px " + this.family;
      ctx.textAlign = "left";
      ctx.lineJoin = "round";
      this.data.marks.forEach((m, i) => {
        const [x, y, w, h] = this.box(m);
        ctx.strokeStyle = style(m.color);
        ctx.lineWidth = 2;
        ctx.strokeRect(x + 1, y + 1, Math.max(w - 2, 3), h - 2);
        const name = this.names[i];
        ctx.strokeStyle = style("paper");
        ctx.lineWidth = 4;
        ctx.strokeText(m.label, name.x, name.y);
        ctx.fillStyle = style(m.color);
        ctx.fillText(m.label, name.x, name.y);
      });
      const [x, y, w, h] = this.box(this.data.cell);
      for (const [color, inset, width] of [["paper", -2, 4], ["ink", -1.5, 2]]) {
        ctx.strokeStyle = style(color);
        ctx.lineWidth = width;
        ctx.strokeRect(x + inset, y + inset, Math.max(w, 4) - 2 * inset, h - 2 * inset);
      }
    }

    // legend draws the scale, as text and as steps of colour.
    legend() {
      const { least, most, signed } = this.data;
      const at = signed ? [-this.far, -this.far / 4, 0, this.far / 4, this.far]
        : [0, 0.25, 0.5, 0.75, 1].map((t) => this.floor ? this.floor * (this.far / this.floor) ** t : this.far * t);
      const swatches = document.createDocumentFragment();
      const word = (text) => swatches.appendChild(document.createElement("span")).textContent = text;
      const canvas = document.createElement("canvas");
      for (const v of at) {
        const one = swatches.appendChild(canvas.cloneNode());
        one.width = 24;
        one.height = 12;
        const ctx = one.getContext("2d");
        ctx.fillStyle = css(this.colour(v));
        ctx.fillRect(0, 0, 24, 12);
        word(percent(v) + thin + "%");
      }
      word(this.data.says + (this.floor ? ", logarithmic" : ""));
      this.scale.replaceChildren(swatches);
      // Vugu removes attributes that it did not set, so the attribute is not set here.
      this.canvas.toggleAttribute("data-ready", least <= most);
    }

    // at returns the cell under the pointer, if any.
    at(e) {
      if (e.button > 0 || !this.data) return null;
      const box = this.canvas.getBoundingClientRect();
      const l = (e.clientX - box.left - this.left) / this.width * Math.log2(this.data.columns + 1);
      const ways = Math.floor(2 ** l), sets = this.data.rows - 1 - Math.floor((e.clientY - box.top) / this.row);
      return ways >= 1 && ways <= this.data.columns && sets >= 0 && sets < this.data.rows ? { sets, ways } : null;
    }

    // read shows the number of the cell under the pointer, or of the chosen cell.
    read(cell) {
      const { columns, values, signed, lineBytes } = this.data, { sets, ways } = cell || this.data.cell, v = values[sets * columns + ways - 1];
      this.readout.classList.remove("idle");
      this.readout.textContent = (2 ** sets).toLocaleString("en").replaceAll(",", thin) + (sets ? " sets, " : " set, ") + ways + (ways > 1 ? " ways, " : " way, ") +
        bytes(lineBytes * 2 ** sets * ways) + ": " + (isNaN(v) ? "not counted" : (signed && v > 0 ? "+" : "") + exactly(v) + thin + "% " + this.data.says.split(";")[0]);
    }

    key(e) {
      if (!this.data || e.ctrlKey || e.metaKey || e.altKey) return;
      const { rows, columns, cell } = this.data;
      let { sets, ways } = cell;
      // With Shift, the size stays the same: half as many sets, with twice as many ways.
      if (e.shiftKey && (e.key === "ArrowRight" || e.key === "ArrowDown")) { sets--; ways *= 2; }
      else if (e.shiftKey && (e.key === "ArrowLeft" || e.key === "ArrowUp")) { if (ways % 2) return; sets++; ways /= 2; }
      else switch (e.key) {
        case "ArrowLeft": ways--; break;
        case "ArrowRight": ways++; break;
        case "ArrowUp": sets++; break;
        case "ArrowDown": sets--; break;
        case "Home": ways = 1; break;
        case "End": ways = columns; break;
        case "PageUp": sets = rows - 1; break;
        case "PageDown": sets = 0; break;
        default: return;
      }
      e.preventDefault();
      if (sets >= 0 && sets < rows && ways >= 1 && ways <= columns) onPick(sets, ways);
    }
  }

  addEventListener("themechange", () => {
    for (const host of document.querySelectorAll("sg-heatmap")) if (host.canvas) host.draw();
  });

  window.stackglassMaps = {
    onPick(f) { onPick = f; },
    set(data) {
      maps.set(data.id, data);
      for (const host of document.querySelectorAll('sg-heatmap[chart="' + data.id + '"]')) if (host.canvas) host.draw();
    },
    // picture returns the drawing, which charts.js saves.
    picture(id) {
      const host = document.querySelector('sg-heatmap[chart="' + id + '"]');
      return host && host.data ? { canvas: host.canvas, title: host.data.title, below: "ways × sets, in per cent of accesses" } : null;
    },
  };
  customElements.define("sg-heatmap", HeatMap);
})();
