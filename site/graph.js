// Graphs. Go passes the blocks of a function and the edges between them, which this script draws
// into the element <sg-graph graph="id">. dagre, which precedes this script in the same file,
// computes a layout in rows. The pointer and the keys are handled here; Go is told which block was
// chosen. The script is loaded when the first graph is shown.
"use strict";
(function () {
  const graphs = new Map(); // the latest data from Go, by id
  let onPick = null;
  const svg = (name, attributes, parent) => {
    const e = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const key in attributes) e.setAttribute(key, attributes[key]);
    if (parent) parent.append(e);
    return e;
  };
  const pad = 12, line = 18; // padding and line height in pixels

  class Graph extends HTMLElement {
    static observedAttributes = ["graph"];

    connectedCallback() {
      if (!this.box) this.build();
      this.draw();
    }

    attributeChangedCallback() { if (this.box) this.draw(); }

    build() {
      this.box = document.createElement("div");
      this.box.className = "scroll";
      this.append(this.box);
      this.ruler = document.createElement("canvas").getContext("2d");
      this.box.addEventListener("click", (e) => {
        const node = e.target.closest("[data-node]");
        if (node) this.pick(+node.dataset.node);
      });
      this.box.addEventListener("keydown", (e) => this.key(e));
      this.box.addEventListener("focusin", (e) => {
        const node = e.target.closest("[data-node]");
        if (node) this.at = +node.dataset.node;
      });
    }

    draw() {
      const data = this.data = graphs.get(this.getAttribute("graph"));
      if (!data) return;
      const focused = this.box.contains(document.activeElement);
      const form = JSON.stringify([data.nodes.map((n) => n.lines), data.edges.map((e) => [e.from, e.to])]);
      if (form !== this.form) {
        this.form = form;
        this.at = data.selected;
        this.place(data);
      }
      this.paint(data);
      if (focused) this.focusNode(this.at, false);
    }

    // place computes the layout of the blocks.
    place(data) {
      const own = getComputedStyle(this);
      this.ruler.font = "13px " + own.fontFamily;
      const wide = (text) => this.ruler.measureText(text).width;
      const g = new dagre.graphlib.Graph({ multigraph: true });
      g.setGraph({ rankdir: "TB", nodesep: 28, ranksep: 34, edgesep: 14, marginx: pad, marginy: pad });
      g.setDefaultEdgeLabel(() => ({}));
      data.nodes.forEach((n, i) => g.setNode(String(i), { width: Math.max(70, ...n.lines.map(wide)) + 2 * pad, height: line * n.lines.length + pad }));
      data.edges.forEach((e, i) => g.setEdge(String(e.from), String(e.to), { width: e.text ? wide("99.99 %") : 0, height: e.text ? line : 0, labelpos: "r" }, String(i)));
      dagre.layout(g);
      this.nodes = data.nodes.map((_, i) => g.node(String(i)));
      this.edges = data.edges.map((e, i) => g.edge({ v: String(e.from), w: String(e.to), name: String(i) }));
      // Edges to earlier rows run beside the blocks, where dagre reserves no room for them.
      const all = this.edges.flatMap((e) => e.points).concat(this.nodes.flatMap((n) => [{ x: n.x - n.width / 2, y: n.y }, { x: n.x + n.width / 2, y: n.y }]));
      this.left = Math.min(0, ...all.map((p) => p.x - pad));
      this.wide = Math.max(g.graph().width, ...all.map((p) => p.x + pad)) - this.left;
      this.high = g.graph().height;
    }

    // path draws an edge with round corners, or an edge from a block to itself as a curve beside
    // the block.
    path(edge, { points }) {
      const at = (x, y) => x.toFixed(1) + " " + y.toFixed(1);
      if (edge.from === edge.to) {
        const n = this.nodes[edge.from], x = n.x + n.width / 2, h = n.height / 4;
        return `M${at(x, n.y - h)}C${at(x + 26, n.y - 1.6 * h)} ${at(x + 26, n.y + 1.6 * h)} ${at(x, n.y + h)}`;
      }
      let path = "M" + at(points[0].x, points[0].y);
      for (let i = 1; i < points.length - 1; i++) {
        const p = points[i], before = points[i - 1], after = points[i + 1];
        const near = (q) => { const d = Math.hypot(q.x - p.x, q.y - p.y) || 1, r = Math.min(14, d / 2) / d; return at(p.x + (q.x - p.x) * r, p.y + (q.y - p.y) * r); };
        path += "L" + near(before) + "Q" + at(p.x, p.y) + " " + near(after);
      }
      const last = points[points.length - 1];
      return path + "L" + at(last.x, last.y);
    }

    paint(data) {
      const root = svg("svg", { width: this.wide, height: this.high, viewBox: `${this.left} 0 ${this.wide} ${this.high}`, role: "group", "aria-label": data.title + ". " + data.summary });
      const heads = svg("marker", { id: data.id + "-head", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 9, markerHeight: 9, markerUnits: "userSpaceOnUse", orient: "auto" }, svg("defs", {}, root));
      svg("path", { d: "M0 0L8 4L0 8z", class: "head" }, heads);
      data.edges.forEach((e, i) => {
        const at = this.edges[i];
        svg("path", { d: this.path(e, at), class: "way" + (e.never ? " never" : ""), "stroke-width": (1 + 3 * e.share).toFixed(2), "marker-end": `url(#${data.id}-head)` }, root);
        if (e.text) svg("text", { x: e.from === e.to ? this.nodes[e.from].x + this.nodes[e.from].width / 2 + 24 : at.x, y: at.y, class: "share", "text-anchor": e.from === e.to ? "start" : "middle", "dominant-baseline": "middle" }, root).textContent = e.text;
      });
      this.elements = data.nodes.map((n, i) => {
        const at = this.nodes[i], x = at.x - at.width / 2, y = at.y - at.height / 2;
        const g = svg("g", { class: "block" + (i === data.selected ? " selected" : "") + (n.never ? " never" : ""), "data-node": i, role: "button", "aria-label": n.about, "aria-pressed": i === data.selected, tabindex: i === this.at || (this.at < 0 && !i) ? 0 : -1 }, root);
        svg("rect", { x, y, width: at.width, height: at.height, rx: 3 }, g);
        svg("rect", { x, y, width: Math.max(n.share > 0 ? 2 : 0, at.width * n.share), height: 3, class: "bar" }, g);
        n.lines.forEach((text, k) => {
          svg("text", { x: at.x, y: y + pad / 2 + line * (k + 0.5) + 1, "text-anchor": "middle", "dominant-baseline": "middle", class: k ? "more" : "name" }, g).textContent = text;
        });
        return g;
      });
      this.box.replaceChildren(root);
      this.box.setAttribute("data-ready", "");
      if (data.selected !== this.selected) {
        this.selected = data.selected;
        this.reveal(data.selected);
      }
    }

    // reveal scrolls only the box, until the block is visible.
    reveal(i) {
      const at = this.nodes[i];
      if (!at) return;
      this.box.scrollTop = at.y - this.box.clientHeight / 2;
      this.box.scrollLeft = at.x - this.left - this.box.clientWidth / 2;
    }

    focusNode(i, show) {
      const e = this.elements[i];
      if (!e) return;
      for (const other of this.elements) other.setAttribute("tabindex", other === e ? 0 : -1);
      e.focus({ preventScroll: true });
      if (show) this.reveal(i);
    }

    pick(i) {
      this.at = i;
      onPick(this.data.id, i);
    }

    // key moves along the edges: down to the next block, up to the previous block, left and right
    // to the neighbours.
    key(e) {
      if (!this.data || e.ctrlKey || e.metaKey || e.altKey) return;
      const i = Math.max(this.at, 0), here = this.nodes[i];
      let to = -1;
      const nearest = (list) => list.reduce((best, n) => best < 0 || Math.abs(this.nodes[n].x - here.x) < Math.abs(this.nodes[best].x - here.x) ? n : best, -1);
      const all = this.nodes.map((_, n) => n);
      switch (e.key) {
        case "ArrowDown": to = nearest(this.data.edges.filter((w) => w.from === i && this.nodes[w.to].y > here.y).map((w) => w.to)); break;
        case "ArrowUp": to = nearest(this.data.edges.filter((w) => w.to === i && this.nodes[w.from].y < here.y).map((w) => w.from)); break;
        case "ArrowLeft": to = nearest(all.filter((n) => Math.abs(this.nodes[n].y - here.y) < line && this.nodes[n].x < here.x)); break;
        case "ArrowRight": to = nearest(all.filter((n) => Math.abs(this.nodes[n].y - here.y) < line && this.nodes[n].x > here.x)); break;
        case "Home": to = 0; break;
        case "End": to = this.nodes.length - 1; break;
        case "Enter": case " ": e.preventDefault(); this.pick(i); return;
        default: return;
      }
      e.preventDefault();
      if (to >= 0) this.focusNode(to, true);
    }
  }

  window.stackglassGraphs = {
    onPick(f) { onPick = f; },
    set(data) {
      graphs.set(data.id, data);
      for (const host of document.querySelectorAll('sg-graph[graph="' + data.id + '"]')) if (host.box) host.draw();
    },
  };
  customElements.define("sg-graph", Graph);
})();
