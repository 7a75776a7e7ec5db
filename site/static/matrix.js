// Matrices. Go passes the data, which this script draws into the element <sg-matrix chart="id">:
// the flows between threads, in shades of one hue; the owner of each part of a data structure, as a
// colour with the thread's number; or a map of addresses, whose cells may form areas with names. The
// pointer and the keys are handled here; Go is told which cell was chosen. The script is loaded when
// the first matrix is shown.
"use strict";
(function () {
  const matrices = new Map(); // what Go handed over last, by id
  let onPick = null, onZoom = null;

  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  function rgb(name) {
    const hex = style(name).replace("#", "");
    const full = hex.length === 3 ? Array.from(hex, (d) => d + d).join("") : hex;
    return [0, 2, 4].map((i) => parseInt(full.slice(i, i + 2), 16));
  }
  const mix = (a, b, t) => a.map((v, i) => Math.round(v + (b[i] - v) * t));
  const css = (c) => "rgb(" + c.join(" ") + ")";
  function luminance(c) {
    const [r, g, b] = c.map((v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  }

  class Matrix extends HTMLElement {
    static observedAttributes = ["chart"];

    connectedCallback() {
      if (!this.canvas) this.build();
      this.resizes = new ResizeObserver(() => this.draw());
      this.resizes.observe(this);
      this.draw();
    }

    disconnectedCallback() { this.resizes.disconnect(); }

    attributeChangedCallback() { this.at = null; if (this.canvas) this.draw(); }

    build() {
      this.plot = document.createElement("div");
      this.plot.className = "plot";
      this.plot.tabIndex = 0;
      this.plot.setAttribute("role", "application");
      this.plot.setAttribute("aria-roledescription", "matrix");
      this.canvas = this.plot.appendChild(document.createElement("canvas"));
      this.readout = document.createElement("p");
      this.readout.className = "readout idle";
      this.whole = document.createElement("button");
      this.whole.type = "button";
      this.whole.className = "plain whole";
      this.whole.textContent = "show the whole map";
      this.whole.hidden = true;
      this.whole.addEventListener("click", () => { this.show(null); this.plot.focus(); });
      this.append(this.plot, this.readout, this.whole);
      this.plot.addEventListener("pointermove", (e) => this.move(e));
      this.plot.addEventListener("pointerdown", (e) => this.press(e));
      this.plot.addEventListener("pointerup", (e) => this.release(e));
      this.plot.addEventListener("pointercancel", () => { this.from = null; this.draw(); });
      this.plot.addEventListener("keydown", (e) => this.key(e));
    }

    draw() {
      const data = this.data = matrices.get(this.getAttribute("chart"));
      const width = this.plot.clientWidth;
      if (!data || !width || !data.rows.length) return;
      const own = getComputedStyle(this);
      this.em = parseFloat(own.fontSize);
      this.family = own.fontFamily;
      const keys = data.zoom ? " Arrow keys read it out, plus enlarges, Escape shows the whole map." : data.map ? " Arrow keys read it out." : " Arrow keys read it out, Enter picks.";
      this.plot.setAttribute("aria-label", data.title + ". " + data.summary + keys);
      this.plot.classList.toggle("zooms", data.zoom);
      const all = [0, 0, data.rows.length, data.columns.length];
      [this.row0, this.column0, this.row1, this.column1] = data.part || all;
      this.whole.hidden = !data.part;
      if (this.readout.classList.contains("idle")) this.readout.textContent = "Point at a cell, or use the arrow keys, to read it.";
      this.most = data.values.reduce((a, b) => Math.max(a, b), 0) || 1;
      const ctx = this.size(width);
      this.cells(ctx);
      this.labels(ctx);
      this.frame(ctx);
      this.canvas.setAttribute("data-ready", "");
    }

    size(width) {
      const { rows, letters, map, names } = this.data, ratio = devicePixelRatio || 1, em = this.em;
      const columns = this.column1 - this.column0, shown = this.row1 - this.row0;
      const ctx = this.canvas.getContext("2d");
      ctx.font = em * 0.8 + "px " + this.family;
      const longest = Math.max(...rows.map((r) => ctx.measureText(r).width));
      this.left = longest + em * (this.data.rowAxis ? 2.2 : 0.8);
      this.top = em * 2.6;
      this.wide = Math.min((width - this.left - 2) / columns, letters.length ? em * 1.6 : map ? Infinity : em * 5);
      this.high = letters.length ? em * 1.5 : names.length ? em * 2.1 : map ? Math.min(Math.max(em * 20 / shown, 4), em * 2.2)
        : Math.min(Math.max(this.wide * 0.6, em * 0.7), em * 2.2);
      const height = this.top + this.high * shown + 3;
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
      this.canvas.style.width = width + "px";
      this.canvas.style.height = height + "px";
      ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
      ctx.clearRect(0, 0, width, height);
      return ctx;
    }

    cells(ctx) {
      if (this.data.map) { this.areas(ctx); return; }
      const { rows, columns, values, texts, letters } = this.data;
      const low = rgb("heat-low"), high = rgb("heat-high"), palette = this.data.colors.map(rgb), ground = rgb("ground");
      ctx.textAlign = "center";
      ctx.textBaseline = "middle";
      rows.forEach((_, r) => columns.forEach((_, c) => {
        const i = r * columns.length + c, v = values[i];
        const x = this.left + c * this.wide, y = this.top + r * this.high;
        let color = v > 0 ? mix(low, high, 0.12 + 0.88 * Math.sqrt(v / this.most)) : low, text = texts[i] || "";
        if (letters.length) {
          if (!v) return;
          // If there are more threads than colours, the colours are used again, mixed with the
          // background.
          const turn = Math.floor((v - 1) / palette.length) % 3;
          color = mix(palette[(v - 1) % palette.length], ground, turn * 0.33);
          text = letters[v - 1];
        }
        ctx.fillStyle = css(color);
        ctx.fillRect(x, y, this.wide - 1, this.high - 1);
        ctx.font = this.em * 0.73 + "px " + this.family;
        if (letters.length && v % 3 !== 1) this.hatch(ctx, x, y, v % 3 === 2, css(ground));
        if (!text || ctx.measureText(text).width > this.wide - 3 || this.em * 0.8 > this.high) return;
        ctx.fillStyle = luminance(color) > 0.179 ? "#000" : "#fff";
        ctx.fillText(text, x + this.wide / 2 - 0.5, y + this.high / 2);
      }));
    }

    // areas draws a map. Adjacent cells with the same name form one area.
    areas(ctx) {
      const { columns, values, names } = this.data, n = columns.length;
      const low = rgb("heat-low"), high = rgb("heat-high"), hair = style("field");
      ctx.textBaseline = "middle";
      ctx.font = this.em * 0.8 + "px " + this.family;
      for (let r = this.row0; r < this.row1; r++) {
        for (let c = this.column0, end; c < this.column1; c = end) {
          const i = r * n + c, v = values[i], name = names[i];
          for (end = c + 1; end < this.column1 && values[r * n + end] === v && names[r * n + end] === name && (names.length || v <= 0); end++);
          if (v === -1) continue;
          const x = this.left + (c - this.column0) * this.wide, y = this.top + (r - this.row0) * this.high, w = (end - c) * this.wide;
          if (v === -2) { this.hatch(ctx, x, y, true, hair, w); continue; }
          const color = v > 0 ? mix(low, high, 0.12 + 0.88 * Math.sqrt(v / this.most)) : low;
          ctx.fillStyle = css(color);
          ctx.fillRect(x, y, names.length ? w - 1.5 : w + 0.4, names.length ? this.high - 2 : this.high + 0.4);
          if (!names.length) continue;
          if (v === 0) { ctx.strokeStyle = hair; ctx.lineWidth = 1; ctx.strokeRect(x + 0.5, y + 0.5, w - 2.5, this.high - 3); }
          const text = this.fit(ctx, name, w - 8);
          if (!text) continue;
          ctx.textAlign = "center";
          ctx.fillStyle = luminance(color) > 0.179 ? "#000" : "#fff";
          ctx.fillText(text, x + (w - 1.5) / 2, y + this.high / 2 - 0.5);
        }
      }
    }

    // fit shortens a name to a width; "" if less than a letter would be left.
    fit(ctx, name, width) {
      for (let n = name.length; n > 0; n--) {
        const text = n < name.length ? name.slice(0, n) + "…" : name;
        if (ctx.measureText(text).width <= width) return text;
      }
      return "";
    }

    // hatch returns a pattern that distinguishes neighbours by more than their colour.
    hatch(ctx, x, y, up, color, wide = this.wide) {
      ctx.save();
      ctx.beginPath();
      ctx.rect(x, y, wide - 1, this.high - 1);
      ctx.clip();
      ctx.beginPath();
      ctx.globalAlpha = 0.35;
      ctx.strokeStyle = color;
      ctx.lineWidth = 1;
      const h = this.high;
      for (let d = -h; d < wide; d += 6) {
        ctx.moveTo(x + d, up ? y + h : y);
        ctx.lineTo(x + d + h, up ? y : y + h);
      }
      ctx.stroke();
      ctx.restore();
    }

    labels(ctx) {
      const { rows, columns, rowAxis, columnAxis, map, names } = this.data, em = this.em;
      ctx.font = em * 0.8 + "px " + this.family;
      ctx.fillStyle = style("second");
      ctx.textBaseline = "middle";
      ctx.textAlign = "right";
      // Bytes of a line are numbered in steps of a power of two.
      const step = (least) => names.length ? 2 ** Math.ceil(Math.log2(Math.max(least, 1))) : Math.ceil(least);
      const everyRow = Math.ceil((map && !names.length ? 2 : 1) * em / this.high), everyColumn = step(em * (map && !names.length ? 4.5 : 1.6) / this.wide);
      for (let r = this.row0; r < this.row1; r++) if ((r - this.row0) % everyRow === 0) ctx.fillText(rows[r], this.left - em * 0.4, this.top + (r - this.row0 + 0.5) * this.high);
      ctx.textAlign = map ? "left" : "center";
      for (let c = this.column0; c < this.column1; c++) {
        const x = this.left + (c - this.column0 + (map ? 0 : 0.5)) * this.wide;
        if ((c - this.column0) % everyColumn === 0 && (!map || x + ctx.measureText(columns[c]).width <= this.left + this.wide * (this.column1 - this.column0))) ctx.fillText(columns[c], x, this.top - em * 0.6);
      }
      ctx.textAlign = "left";
      ctx.fillText(columnAxis, this.left, em * 0.7);
      if (!rowAxis) return;
      ctx.save();
      ctx.translate(em * 0.7, this.top);
      ctx.rotate(-Math.PI / 2);
      ctx.textAlign = "right";
      ctx.fillText(rowAxis, 0, 0);
      ctx.restore();
    }

    frame(ctx) {
      const [row, column] = [this.data.row, this.data.column];
      for (const [r, c, color] of [[row, column, "ink"], [this.at ? this.at[0] : -1, this.at ? this.at[1] : -1, "accent"]]) {
        if (r < this.row0 || c < this.column0 || r >= this.row1 || c >= this.column1) continue;
        ctx.strokeStyle = style(color);
        ctx.lineWidth = 2;
        const [first, end] = this.area(r, c);
        ctx.strokeRect(this.left + (first - this.column0) * this.wide - 0.5, this.top + (r - this.row0) * this.high - 0.5, (end - first) * this.wide, this.high);
      }
      const part = this.from && this.to && this.between();
      if (!part) return;
      ctx.strokeStyle = style("accent");
      ctx.lineWidth = 2;
      ctx.strokeRect(this.left + (part[1] - this.column0) * this.wide, this.top + (part[0] - this.row0) * this.high, (part[3] - part[1]) * this.wide, (part[2] - part[0]) * this.high);
    }

    // area returns the columns of the area to which a cell belongs: the first one, and the one after
    // the last. Without names, it is only the cell.
    area(r, c) {
      const { columns, names } = this.data, row = r * columns.length;
      let [first, end] = [c, c + 1];
      while (names.length && first > this.column0 && names[row + first - 1] === names[row + c]) first--;
      while (names.length && end < this.column1 && names[row + end] === names[row + c]) end++;
      return [first, end];
    }

    // between returns the cells between the place where the pointer was pressed and its current
    // place; null if both are in the same cell.
    between() {
      const [a, b] = [this.from, this.to];
      if (a[0] === b[0] && a[1] === b[1]) return null;
      return [Math.min(a[0], b[0]), Math.min(a[1], b[1]), Math.max(a[0], b[0]) + 1, Math.max(a[1], b[1]) + 1];
    }

    // show shows a part of a map. part contains the first row and column, and the row and column
    // after the last; null shows the whole map.
    show(part) {
      this.data.part = part;
      this.draw();
      onZoom(...(part || [0, 0, 0, 0]));
      document.getElementById("live").textContent = part
        ? "Rows " + this.data.rows[part[0]] + " to " + this.data.rows[part[2] - 1] + ", columns " + this.data.columns[part[1]] + " to " + this.data.columns[part[3] - 1] : "The whole map";
    }

    press(e) {
      const c = this.cell(e);
      if (e.button !== 0 || !c) return;
      if (this.data.zoom && e.pointerType !== "touch") {
        this.from = this.to = c;
        this.plot.setPointerCapture(e.pointerId);
      }
      this.pick(c);
    }

    move(e) {
      const c = this.cell(e);
      if (!c) return;
      this.say(c, false);
      if (!this.from) return;
      this.to = c;
      this.draw();
    }

    release() {
      if (!this.from) return;
      const part = this.between();
      this.from = this.to = null;
      if (part) this.show(part);
    }

    // closer zooms in to half as many rows and columns around a cell.
    closer([r, c]) {
      const half = (at, from, to, least) => {
        const size = Math.max(Math.ceil((to - from) / 2), Math.min(least, to - from)), first = Math.min(Math.max(at - (size >> 1), from), to - size);
        return [first, first + size];
      };
      const [r0, r1] = half(r, this.row0, this.row1, 4), [c0, c1] = half(c, this.column0, this.column1, 8);
      this.show([r0, c0, r1, c1]);
    }

    cell(e) {
      if (!this.data) return null;
      const box = this.canvas.getBoundingClientRect();
      const c = this.column0 + Math.floor((e.clientX - box.left - this.left) / this.wide), r = this.row0 + Math.floor((e.clientY - box.top - this.top) / this.high);
      return r >= this.row0 && r < this.row1 && c >= this.column0 && c < this.column1 ? [r, c] : null;
    }

    say([r, c], aloud) {
      const { rows, columns, texts, letters, rowAxis, columnAxis, map, names } = this.data, text = texts[r * columns.length + c];
      this.readout.classList.remove("idle");
      this.readout.textContent = letters.length ? text || "not touched" : map && names.length ? text
        : map ? rowAxis + " " + rows[r] + ", reference " + columns[c] + ": " + (text || "no access")
        : rowAxis + " thread " + rows[r] + ", " + columnAxis + " thread " + columns[c] + ": " + (text || "nothing");
      if (aloud) document.getElementById("live").textContent = this.readout.textContent;
    }

    pick(cell) {
      this.at = null;
      this.say(cell, false);
      if (!this.data.letters.length && !this.data.map) onPick(this.data.id, cell[0], cell[1]);
    }

    key(e) {
      if (!this.data || e.ctrlKey || e.metaKey || e.altKey) return;
      const most = [this.row1 - 1, this.column1 - 1];
      let [r, c] = this.at || [Math.max(this.data.row, this.row0), Math.max(this.data.column, this.column0)];
      const first = !this.at, [from, end] = this.area(r, c);
      switch (e.key) {
        case "ArrowLeft": if (!first) c = from - 1; break;
        case "ArrowRight": if (!first) c = end; break;
        case "ArrowUp": r -= first ? 0 : 1; break;
        case "ArrowDown": r += first ? 0 : 1; break;
        case "+": case "=": if (this.data.zoom) { e.preventDefault(); this.closer([r, c]); } return;
        case "-": case "Escape": if (this.data.part) { e.preventDefault(); e.stopPropagation(); this.show(null); } return;
        case "Home": c = this.column0; break;
        case "End": c = most[1]; break;
        case "Enter": case " ": e.preventDefault(); this.pick([r, c]); return;
        default: return;
      }
      e.preventDefault();
      this.at = [Math.min(Math.max(r, this.row0), most[0]), Math.min(Math.max(c, this.column0), most[1])];
      this.draw();
      this.say(this.at, true);
    }
  }

  addEventListener("themechange", () => {
    for (const host of document.querySelectorAll("sg-matrix")) if (host.canvas) host.draw();
  });

  window.stackglassMatrices = {
    onPick(f) { onPick = f; },
    onZoom(f) { onZoom = f; },
    set(data) {
      if (!data.part[2]) data.part = null;
      matrices.set(data.id, data);
      for (const host of document.querySelectorAll('sg-matrix[chart="' + data.id + '"]')) if (host.canvas) host.draw();
    },
    // picture returns the drawing, which charts.js saves.
    picture(id) {
      const host = document.querySelector('sg-matrix[chart="' + id + '"]');
      return host && host.data ? { canvas: host.canvas, title: host.data.title, below: host.data.columnAxis } : null;
    },
  };
  customElements.define("sg-matrix", Matrix);
})();
