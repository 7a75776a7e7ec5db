// Flame graphs. Go passes a tree of calls, which this script draws into the element
// <sg-flame flame="id">. The width of a frame is proportional to its weight. The frames that it
// calls are below it; its callers are above it. An overview of the whole graph and an axis are at
// the top; they stay in view while the graph is scrolled. The pointer and the keys are handled here; Go is
// told which frame to zoom to, and returns the text of the box beside the pointer. The script is
// loaded when the first flame graph is shown.
"use strict";
(function () {
  const flames = new Map(); // the latest data from Go, by id
  let onZoom = null, onAbout = null, onWords = null;
  const high = 21, least = 0.4; // height and minimum width of a frame, in pixels
  const thin = "\u202f";
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const calm = matchMedia("(prefers-reduced-motion: reduce)");

  class Flame extends HTMLElement {
    static observedAttributes = ["flame"];

    connectedCallback() {
      if (!this.box) this.build();
      this.resizes = new ResizeObserver(() => this.draw());
      this.resizes.observe(this);
      this.take();
    }

    disconnectedCallback() { this.resizes.disconnect(); this.hide(); }

    attributeChangedCallback() { if (this.box) this.take(); }

    build() {
      const make = (name, parent, set) => parent.appendChild(Object.assign(document.createElement(name), set));
      this.box = make("div", this, { className: "scroll", tabIndex: 0 });
      this.box.setAttribute("role", "application");
      this.box.setAttribute("aria-roledescription", "flame graph");
      this.tall = make("div", this.box, {});
      this.canvas = make("canvas", this.tall, {});
      this.tip = make("div", this, { className: "flame-tip", hidden: true });
      this.tip.setAttribute("aria-hidden", "true"); // the text is announced elsewhere
      this.at = this.over = -1; // the frame selected by keys, and the frame below the pointer
      this.zoom = -2; // not drawn yet
      this.box.addEventListener("scroll", () => this.draw());
      this.box.addEventListener("pointermove", (e) => { if (e.pointerType !== "touch") this.point(e); });
      this.box.addEventListener("pointerleave", () => { this.hide(); this.paint(); });
      this.box.addEventListener("click", (e) => {
        const i = this.frame(e);
        if (i >= 0) this.pick(i);
        else this.pan(e);
      });
      this.box.addEventListener("keydown", (e) => this.key(e));
      this.box.addEventListener("focus", () => this.paint());
      this.box.addEventListener("blur", () => { this.hide(); this.paint(); });
    }

    // take reads the data from Go, and zooms to the requested frame.
    take() {
      const data = flames.get(this.getAttribute("flame"));
      if (!data) return;
      const other = !this.data || this.data.title !== data.title || this.data.names.length !== data.names.length;
      this.data = data;
      if (other) {
        this.at = this.over = -1;
        this.hide();
        this.deepest = Math.max(0, ...data.depths);
      }
      const all = data.weights.reduce((sum, w, i) => data.parents[i] < 0 ? sum + w : sum, 0), same = this.all === all;
      this.all = all;
      this.box.setAttribute("aria-label", data.title + ". " + data.summary + " Arrow keys go from frame to frame, Enter zooms in, Escape zooms out.");
      const to = data.zoom < 0 ? [0, this.all] : [data.starts[data.zoom], data.starts[data.zoom] + data.weights[data.zoom]];
      const moves = !other && same && this.zoom !== data.zoom && this.zoom > -2 && !calm.matches && this.range;
      const from = this.range;
      if (this.zoom !== data.zoom) this.at = data.zoom;
      this.zoom = data.zoom;
      cancelAnimationFrame(this.moving);
      if (!moves) {
        this.range = to;
        this.draw();
        this.reveal(data.zoom);
        return;
      }
      const began = performance.now();
      const step = () => {
        const t = Math.min(1, (performance.now() - began) / 160), ease = 1 - (1 - t) ** 3;
        this.range = t < 1 ? [0, 1].map((k) => from[k] + (to[k] - from[k]) * ease) : to;
        this.paint();
        if (t < 1) this.moving = requestAnimationFrame(step);
        else this.reveal(data.zoom);
      };
      step();
    }

    // row is the number of rows between the axis and a frame.
    row(i) { return this.data.up ? this.deepest - this.data.depths[i] : this.data.depths[i]; }

    draw() {
      const data = this.data, width = this.tall.clientWidth;
      if (!data || !width) return;
      const rows = this.deepest + 1, own = getComputedStyle(this), em = parseFloat(own.fontSize);
      this.small = Math.min(rows * 4 + 2, 30); // height of the overview
      this.head = this.small + Math.round(em * 1.2);
      const all = this.head + rows * high + 1;
      this.tall.style.height = all + "px";
      const height = Math.min(this.box.clientHeight, all), ratio = devicePixelRatio || 1;
      this.font = em * 0.8 + "px " + own.fontFamily;
      this.width = width;
      this.height = height;
      if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
        this.canvas.width = Math.round(width * ratio);
        this.canvas.height = Math.round(height * ratio);
        this.canvas.style.width = width + "px";
        this.canvas.style.height = height + "px";
      }
      if (data.up && !this.scrolled) this.box.scrollTop = this.scrolled = this.box.scrollHeight;
      this.paint();
    }

    // place returns the left border and the width of a frame in a part of the graph.
    place(i, [low, top] = this.range) {
      const scale = this.width / (top - low || 1);
      const x = (this.data.starts[i] - low) * scale, end = x + this.data.weights[i] * scale;
      return [Math.max(x, 0), Math.min(end, this.width) - Math.max(x, 0)];
    }

    paint() {
      const data = this.data;
      if (!data || !this.width || !this.range) return;
      const ctx = this.canvas.getContext("2d"), ratio = devicePixelRatio || 1;
      const light = +style("base-light"), chroma = +style("base-chroma");
      const colors = { ground: style("ground"), ink: style("ink"), second: style("second"), grid: style("grid"), field: style("field"), accent: style("accent") };
      ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
      ctx.clearRect(0, 0, this.width, this.height);
      ctx.font = this.font;
      ctx.textBaseline = "middle";
      const ellipsis = this.letters(ctx, "…");
      for (let i = 0; i < data.names.length; i++) {
        const y = this.y(i);
        if (y + high < this.head || y > this.height) continue;
        const [x, wide] = this.place(i);
        if (wide < least) continue;
        const gone = data.matches.length && !data.matches[i], above = data.zoom >= 0 && this.isAbove(i);
        ctx.globalAlpha = above ? 0.55 : 1;
        ctx.fillStyle = gone ? colors.grid : this.color(i, light, chroma);
        ctx.fillRect(x, y, wide > 2 ? wide - 1 : wide, high - 1);
        ctx.globalAlpha = 1;
        if (data.matches.length && data.matches[i]) {
          ctx.fillStyle = colors.accent;
          ctx.fillRect(x, y + high - 3, wide > 2 ? wide - 1 : wide, 2);
        }
        if (wide < 16) continue;
        ctx.fillStyle = gone || above ? colors.second : colors.ink;
        const text = this.fit(ctx, data.names[i], wide - 9, ellipsis);
        if (text) ctx.fillText(text, x + 4, y + high / 2);
      }
      this.ring(ctx, this.over, colors.second, 1);
      if (document.activeElement === this.box) this.ring(ctx, this.at, colors.ink, 2);
      this.drawHead(ctx, light, chroma, colors);
      this.canvas.setAttribute("data-ready", "");
    }

    // y returns the upper border of a frame on the canvas.
    y(i) { return this.head + this.row(i) * high - this.box.scrollTop; }

    // drawHead draws the overview, in which the part in view is framed, and the axis. The axis starts
    // at 0 at the left border, so that the share of a frame can be read from its width.
    drawHead(ctx, light, chroma, colors) {
      const { width, small, head, data, all } = this, [low, top] = this.range;
      ctx.fillStyle = colors.ground;
      ctx.fillRect(0, 0, width, head);
      const row = (small - 2) / (this.deepest + 1);
      for (let i = 0; i < data.names.length; i++) {
        const [x, wide] = this.place(i, [0, all]);
        if (wide < least) continue;
        ctx.fillStyle = this.color(i, light, chroma);
        ctx.fillRect(x, 1 + this.row(i) * row, wide, row);
      }
      const from = width * low / (all || 1), to = width * top / (all || 1);
      ctx.globalAlpha = 0.65;
      ctx.fillStyle = colors.ground;
      ctx.fillRect(0, 0, from, small);
      ctx.fillRect(to, 0, width - to, small);
      ctx.globalAlpha = 1;
      ctx.strokeStyle = top - low < all ? colors.accent : colors.field;
      ctx.lineWidth = 1;
      ctx.strokeRect(from + 0.5, 0.5, Math.max(to - from - 1, 2), small - 1);

      const span = (top - low) / (data.total || 1), em = parseFloat(this.font), smallest = span * em * 7 / width;
      const power = 10 ** Math.floor(Math.log10(smallest)), step = power * ([1, 2, 5].find((k) => k * power >= smallest) || 10);
      for (let k = 0; span > 0 && k * step <= span * 1.0001; k++) {
        const x = width * k * step / span, text = Number((k * step * 100).toPrecision(3)) + thin + "%", wide = this.letters(ctx, text);
        ctx.fillStyle = colors.field;
        ctx.fillRect(Math.min(x, width - 1), small, 1, head - small);
        ctx.fillStyle = colors.second;
        ctx.fillText(text, x + 3 + wide > width ? x - wide - 3 : x + 3, (small + head) / 2);
      }
    }

    // pan zooms to a frame below the pointer in the overview, in the row of the zoomed frame or in a
    // row nearer to the root.
    pan(e) {
      const data = this.data, box = this.canvas.getBoundingClientRect(), x = e.clientX - box.left;
      if (!data || e.clientY - box.top > this.small) return;
      const depth = data.zoom < 0 ? 0 : data.depths[data.zoom];
      let best = -1;
      for (let i = 0; i < data.names.length; i++) {
        const [left, wide] = this.place(i, [0, this.all]);
        if (data.depths[i] <= depth && x >= left && x < left + wide && (best < 0 || data.depths[i] > data.depths[best])) best = i;
      }
      if (best >= 0 && best !== data.zoom) this.pick(best);
    }

    ring(ctx, i, color, wide) {
      if (i < 0) return;
      const [x, w] = this.place(i);
      if (w < least) return;
      ctx.strokeStyle = color;
      ctx.lineWidth = wide;
      ctx.strokeRect(x + wide / 2, this.y(i) + wide / 2, Math.max(w - 1 - wide, 1), high - 1 - wide);
    }

    // isAbove reports whether a frame is a caller of the zoomed frame.
    isAbove(i) {
      if (this.data.depths[i] >= this.data.depths[this.data.zoom]) return false;
      for (let at = this.data.parents[this.data.zoom]; at >= 0; at = this.data.parents[at]) if (at === i) return true;
      return false;
    }

    // color returns the colour of a frame in a theme with the given lightness and chroma.
    color(i, light, chroma) {
      const [hue, lighter, strength] = this.data.tints.subarray(i * 3), over = i === this.over ? Math.sign(0.5 - light) * 0.06 : 0;
      return `oklch(${light + lighter + over} ${chroma * strength} ${hue})`;
    }

    letters(ctx, text) { return ctx.measureText(text).width; }

    // fit shortens a name to the available width.
    fit(ctx, name, wide, ellipsis) {
      if (name.length * 12 < wide || this.letters(ctx, name) <= wide) return name;
      let low = 0, top = Math.min(name.length, Math.ceil(wide / 2));
      while (low < top) {
        const middle = (low + top + 1) >> 1;
        if (this.letters(ctx, name.slice(0, middle)) + ellipsis <= wide) low = middle;
        else top = middle - 1;
      }
      return low > 0 ? name.slice(0, low) + "…" : "";
    }

    // frame returns the frame at the pointer.
    frame(e) {
      if (!this.data || !this.range) return -1;
      const box = this.canvas.getBoundingClientRect(), x = e.clientX - box.left;
      const y = e.clientY - box.top - this.head, row = y < 0 ? -1 : Math.floor((y + this.box.scrollTop) / high);
      for (let i = 0; i < this.data.names.length; i++) {
        if (this.row(i) !== row) continue;
        const [left, wide] = this.place(i);
        if (wide >= least && x >= left && x < left + wide) return i;
      }
      return -1;
    }

    point(e) {
      const i = this.frame(e);
      this.box.style.cursor = i >= 0 ? "pointer" : "";
      if (i !== this.over) {
        this.over = i;
        this.paint();
        if (i >= 0) this.tell(i);
      }
      if (i < 0) this.hide();
      else this.beside(e.clientX, e.clientY);
    }

    // tell sets the text of the box beside the pointer.
    tell(i) {
      const { where, lines } = onAbout(this.data.id, i);
      const add = (name, parent, text) => parent.appendChild(Object.assign(document.createElement(name), { textContent: text }));
      const tip = this.tip;
      tip.replaceChildren();
      add("b", tip, this.data.names[i]);
      add("p", tip, where);
      const table = add("table", tip, ""), head = add("tr", table, "");
      for (const text of ["", "with callees", "", "own", ""]) add("th", head, text);
      for (const line of lines) {
        const tr = add("tr", table, "");
        if (line[0] === this.data.event) tr.className = "chosen";
        line.forEach((text, k) => add(k ? "td" : "th", tr, text));
      }
    }

    beside(x, y) {
      const tip = this.tip;
      tip.hidden = false;
      const { offsetWidth: wide, offsetHeight: tall } = tip, gap = 14;
      tip.style.left = Math.max(6, x + gap + wide > innerWidth ? Math.min(x - gap - wide > 0 ? x - gap - wide : innerWidth - wide - 6, innerWidth - wide - 6) : x + gap) + "px";
      tip.style.top = Math.max(6, y + gap + tall > innerHeight ? y - gap - tall : y + gap) + "px";
    }

    hide() {
      this.tip.hidden = true;
      this.over = -1;
    }

    // reveal scrolls only the box, until the frame is visible.
    reveal(i) {
      if (i < 0) return;
      const y = this.row(i) * high;
      if (y < this.box.scrollTop) this.box.scrollTop = y - high;
      else if (y + high + this.head > this.box.scrollTop + this.box.clientHeight) this.box.scrollTop = y + 2 * high + this.head - this.box.clientHeight;
    }

    pick(i) {
      this.hide();
      this.at = i;
      onZoom(this.data.id, i === this.data.zoom ? this.data.parents[i] : i);
    }

    // beside returns the next visible frame to the left or right in the same row.
    neighbour(i, step) {
      const { depths, starts } = this.data;
      let best = -1;
      for (let k = 0; k < depths.length; k++) {
        if (depths[k] !== depths[i] || (starts[k] - starts[i]) * step <= 0 || this.place(k)[1] < least) continue;
        if (best < 0 || (starts[best] - starts[k]) * step > 0) best = k;
      }
      return best;
    }

    key(e) {
      const data = this.data;
      if (!data || e.ctrlKey || e.metaKey || e.altKey) return;
      const first = this.at < 0, i = first ? Math.max(data.zoom, 0) : this.at;
      let to = -1;
      const child = () => data.parents.findIndex((p, k) => p === i && this.place(k)[1] >= least);
      switch (e.key) {
        case "ArrowDown": to = first ? i : data.up ? data.parents[i] : child(); break;
        case "ArrowUp": to = first ? i : data.up ? child() : data.parents[i]; break;
        case "ArrowLeft": to = first ? i : this.neighbour(i, -1); break;
        case "ArrowRight": to = first ? i : this.neighbour(i, 1); break;
        case "Home": to = Math.max(data.zoom, 0); break;
        case "Enter": case " ": e.preventDefault(); if (data.names.length) this.pick(i); return;
        case "0": if (data.zoom < 0) return; e.preventDefault(); onZoom(data.id, -1); return;
        case "Escape":
          if (data.zoom < 0) return;
          e.preventDefault();
          onZoom(data.id, data.parents[data.zoom]);
          return;
        default: return;
      }
      e.preventDefault();
      if (to < 0 || to >= data.names.length) return;
      this.at = to;
      this.reveal(to);
      this.paint();
      document.getElementById("live").textContent = onWords(data.id, to);
      const [x] = this.place(to), box = this.canvas.getBoundingClientRect();
      this.tell(to);
      this.beside(box.left + x, box.top + this.y(to) + high);
    }
  }

  addEventListener("themechange", () => {
    for (const host of document.querySelectorAll("sg-flame")) if (host.box) host.paint();
  });

  window.stackglassFlames = {
    connect(zoom, about, words) { [onZoom, onAbout, onWords] = [zoom, about, words]; },
    set(data) {
      flames.set(data.id, data);
      for (const host of document.querySelectorAll('sg-flame[flame="' + data.id + '"]')) if (host.box) host.take();
    },
    // picture returns the drawing, which charts.js saves.
    picture(id) {
      const host = document.querySelector('sg-flame[flame="' + id + '"]');
      return host && host.data ? { canvas: host.canvas, title: host.data.title, below: "" } : null;
    },
  };
  customElements.define("sg-flame", Flame);
})();
