// Matrices. Go passes the data, which this script draws into the element <sg-matrix chart="id">:
// the flows between threads, in shades of one hue, or the owner of each part of a data structure,
// as a colour with the thread's number. The pointer and the keys are handled here; Go is told which
// cell was chosen. The script is loaded when the first matrix is shown.
"use strict";
(function () {
  const matrices = new Map(); // what Go handed over last, by id
  let onPick = null;

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
  const threads = ["level1", "level2", "level3", "memory", "accent"];

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
      this.append(this.plot, this.readout);
      this.plot.addEventListener("pointermove", (e) => { const c = this.cell(e); if (c) this.say(c, false); });
      this.plot.addEventListener("pointerdown", (e) => { const c = this.cell(e); if (e.button === 0 && c) this.pick(c); });
      this.plot.addEventListener("keydown", (e) => this.key(e));
    }

    draw() {
      const data = this.data = matrices.get(this.getAttribute("chart"));
      const width = this.plot.clientWidth;
      if (!data || !width || !data.rows.length) return;
      const own = getComputedStyle(this);
      this.em = parseFloat(own.fontSize);
      this.family = own.fontFamily;
      this.plot.setAttribute("aria-label", data.title + ". " + data.summary + " Arrow keys read it out, Enter picks.");
      if (this.readout.classList.contains("idle")) this.readout.textContent = "Point at a cell, or use the arrow keys, to read it.";
      this.most = Math.max(...data.values, 0);
      const ctx = this.size(width);
      this.cells(ctx);
      this.labels(ctx);
      this.frame(ctx);
      this.canvas.setAttribute("data-ready", "");
    }

    size(width) {
      const { rows, columns, letters } = this.data, ratio = devicePixelRatio || 1, em = this.em;
      const ctx = this.canvas.getContext("2d");
      ctx.font = em * 0.8 + "px " + this.family;
      const longest = Math.max(...rows.map((r) => ctx.measureText(r).width));
      this.left = longest + em * (this.data.rowAxis ? 2.2 : 0.8);
      this.top = em * 2.6;
      this.wide = Math.min((width - this.left - 2) / columns.length, letters.length ? em * 1.6 : em * 5);
      this.high = letters.length ? em * 1.5 : Math.min(Math.max(this.wide * 0.6, em * 0.7), em * 2.2);
      const height = this.top + this.high * rows.length + 3;
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
      this.canvas.style.width = width + "px";
      this.canvas.style.height = height + "px";
      ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
      ctx.clearRect(0, 0, width, height);
      return ctx;
    }

    cells(ctx) {
      const { rows, columns, values, texts, letters } = this.data;
      const low = rgb("heat-low"), high = rgb("heat-high"), palette = threads.map(rgb), ground = rgb("ground");
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

    // hatch distinguishes neighbours by more than their colour.
    hatch(ctx, x, y, up, color) {
      ctx.save();
      ctx.beginPath();
      ctx.rect(x, y, this.wide - 1, this.high - 1);
      ctx.clip();
      ctx.beginPath();
      ctx.globalAlpha = 0.35;
      ctx.strokeStyle = color;
      ctx.lineWidth = 1;
      const h = this.high;
      for (let d = -h; d < this.wide; d += 6) {
        ctx.moveTo(x + d, up ? y + h : y);
        ctx.lineTo(x + d + h, up ? y : y + h);
      }
      ctx.stroke();
      ctx.restore();
    }

    labels(ctx) {
      const { rows, columns, rowAxis, columnAxis } = this.data, em = this.em;
      ctx.font = em * 0.8 + "px " + this.family;
      ctx.fillStyle = style("second");
      ctx.textBaseline = "middle";
      ctx.textAlign = "right";
      const everyRow = Math.ceil(em / this.high), everyColumn = Math.ceil(em * 1.6 / this.wide);
      rows.forEach((name, r) => { if (r % everyRow === 0) ctx.fillText(name, this.left - em * 0.4, this.top + (r + 0.5) * this.high); });
      ctx.textAlign = "center";
      columns.forEach((name, c) => { if (c % everyColumn === 0) ctx.fillText(name, this.left + (c + 0.5) * this.wide, this.top - em * 0.6); });
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
        if (r < 0 || c < 0) continue;
        ctx.strokeStyle = style(color);
        ctx.lineWidth = 2;
        ctx.strokeRect(this.left + c * this.wide - 0.5, this.top + r * this.high - 0.5, this.wide, this.high);
      }
    }

    cell(e) {
      if (!this.data) return null;
      const box = this.canvas.getBoundingClientRect();
      const c = Math.floor((e.clientX - box.left - this.left) / this.wide), r = Math.floor((e.clientY - box.top - this.top) / this.high);
      return r >= 0 && r < this.data.rows.length && c >= 0 && c < this.data.columns.length ? [r, c] : null;
    }

    say([r, c], aloud) {
      const { rows, columns, texts, letters, rowAxis, columnAxis } = this.data, text = texts[r * columns.length + c];
      this.readout.classList.remove("idle");
      this.readout.textContent = letters.length ? text || "not touched"
        : rowAxis + " thread " + rows[r] + ", " + columnAxis + " thread " + columns[c] + ": " + (text || "nothing");
      if (aloud) document.getElementById("live").textContent = this.readout.textContent;
    }

    pick(cell) {
      this.at = null;
      this.say(cell, false);
      if (!this.data.letters.length) onPick(this.data.id, cell[0], cell[1]);
    }

    key(e) {
      if (!this.data || e.ctrlKey || e.metaKey || e.altKey) return;
      const most = [this.data.rows.length - 1, this.data.columns.length - 1];
      let [r, c] = this.at || [Math.max(this.data.row, 0), Math.max(this.data.column, 0)];
      const first = !this.at;
      switch (e.key) {
        case "ArrowLeft": c -= first ? 0 : 1; break;
        case "ArrowRight": c += first ? 0 : 1; break;
        case "ArrowUp": r -= first ? 0 : 1; break;
        case "ArrowDown": r += first ? 0 : 1; break;
        case "Home": c = 0; break;
        case "End": c = most[1]; break;
        case "Enter": case " ": e.preventDefault(); this.pick([r, c]); return;
        default: return;
      }
      e.preventDefault();
      this.at = [Math.min(Math.max(r, 0), most[0]), Math.min(Math.max(c, 0), most[1])];
      this.draw();
      this.say(this.at, true);
    }
  }

  addEventListener("themechange", () => {
    for (const host of document.querySelectorAll("sg-matrix")) if (host.canvas) host.draw();
  });

  window.stackglassMatrices = {
    onPick(f) { onPick = f; },
    set(data) {
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
