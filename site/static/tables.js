// Tables of any length. This script draws the visible rows into the element <sg-table table="id">.
// It requests only these rows from Go, so a table of a million rows costs no more than a table of
// twenty. Scrolling and keys are handled here; Go is told which row was chosen, and which column to
// sort by.
//
// The box contains a block that is as high as all rows would be. The table is at the top of the
// visible part of this block, and its rows change as the box is scrolled. Browsers limit the height
// of a block: above mostHigh, each pixel represents more than its share of a row.
"use strict";
(function () {
  const tables = new Map(); // the latest data from Go, by id
  let onRows = null, onPick = null, onSort = null;
  const mostHigh = 8e6;

  // Code is shown with coloured comments, strings, numbers and reserved words.
  const reserved = {
    c: "alignas alignof as async auto await bool break case catch char class const constexpr continue crate decltype default delete do double else enum explicit export extern false final float fn for friend func goto if impl import in inline int interface let long loop match mod mut namespace new noexcept nullptr operator override package private protected pub public range register restrict return short signed size_t sizeof static struct super switch template this throw trait true try type typedef typename union unsigned use using var virtual void volatile where while",
    fortran: "allocatable allocate call case character common complex contains continue cycle deallocate default dimension do double elemental else elseif end enddo endif exit external function goto if implicit in inout integer intent interface intrinsic logical module none only out parameter pointer precision private procedure program public pure real recursive result return save select stop subroutine target then type use where while",
    hash: "and as assert async await begin break class const continue def del elif else end except export finally for from function global if import in is lambda let local module mutable not or pass raise return struct try using var while with yield",
  };
  for (const language in reserved) reserved[language] = new Set(reserved[language].split(" "));
  const text = /"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'/.source, rest = /|(\b\d[\w.]*)|([A-Za-z_]\w*)/.source;
  const tokens = {
    c: new RegExp("(\\/\\/.*|\\/\\*.*?(?:\\*\\/|$))|(" + text + ")" + rest + "|(^\\s*#\\s*\\w+)", "g"),
    fortran: new RegExp("(!.*|^[cC*](?=\\s).*)|(" + text + ")" + rest, "g"),
    hash: new RegExp("(#.*)|(" + text + ")" + rest, "g"),
  };
  const parts = ["", "comment", "text", "number", "", "word"];
  function colour(td, line, language, within, after) {
    const pieces = [];
    const add = (words, part) => pieces.push(part ? Object.assign(document.createElement("span"), { className: part, textContent: words }) : words);
    let at = 0;
    if (within) {
      const end = line.indexOf("*/");
      at = end < 0 ? line.length : end + 2;
      add(line.slice(0, at), "comment");
    }
    const token = tokens[language];
    token.lastIndex = at;
    for (let m; (m = token.exec(line)); ) {
      const part = m[4] ? (reserved[language].has(language === "fortran" ? m[4].toLowerCase() : m[4]) ? "word" : "") : parts[m.findIndex((x, i) => i && x !== undefined)];
      if (!part) continue;
      add(line.slice(at, m.index), "");
      add(m[0], part);
      at = m.index + m[0].length;
    }
    add(line.slice(at), "");
    if (after) add("   " + after, "after");
    td.replaceChildren(...pieces);
  }

  class Rows extends HTMLElement {
    static observedAttributes = ["table"];

    connectedCallback() {
      if (!this.box) this.build();
      this.wide = this.clientWidth;
      this.resizes = new ResizeObserver(([{ contentRect }]) => {
        const wide = Math.round(contentRect.width);
        if (wide === this.wide) return;
        this.wide = wide;
        this.fit();
      });
      this.resizes.observe(this);
      this.drawSoon();
    }

    disconnectedCallback() { this.resizes.disconnect(); }

    attributeChangedCallback(name, before, after) {
      if (before !== after) this.at = -1;
      this.drawSoon();
    }

    // drawSoon draws when the page is complete, but before the browser shows it. Otherwise, the
    // browser would compute the layout of incomplete pages.
    drawSoon() {
      if (this.due) return;
      this.due = true;
      queueMicrotask(() => {
        this.due = false;
        if (this.box && this.isConnected) this.draw();
      });
    }

    build() {
      this.at = -1; // the row that is selected with the keys
      this.sizes = new Map(); // the measured heights; see fit
      const make = (name, parent, set) => parent.appendChild(Object.assign(document.createElement(name), set));
      this.box = make("div", this, { className: "scroll rows" });
      this.tall = make("div", this.box, {});
      this.table = make("table", this.tall, { tabIndex: 0 });
      this.table.setAttribute("role", "grid");
      this.columns = make("colgroup", this.table, {});
      this.head = make("tr", make("thead", this.table, {}), {});
      this.body = make("tbody", this.table, {});
      this.box.addEventListener("scroll", () => { this.scrolled = true; this.fill(); });
      this.table.addEventListener("keydown", (e) => this.key(e));
      this.table.addEventListener("focus", () => { if (this.at < 0) this.go(Math.max(this.data ? this.data.selected : 0, 0)); });
      this.body.addEventListener("click", (e) => {
        const row = e.target.closest("tr");
        if (!row) return;
        const number = this.row(this.first + Array.from(this.body.children).indexOf(row));
        if (e.target.closest(".fold")) this.fold(number, !this.folded[number]);
        else this.pick(number);
      });
      this.head.addEventListener("click", (e) => {
        const key = e.target.closest("[data-sort]");
        if (key) onSort(this.data.id, key.dataset.sort);
      });
    }

    draw() {
      const data = this.data = tables.get(this.getAttribute("table"));
      if (!data) return;
      this.table.setAttribute("aria-label", data.caption);
      this.table.setAttribute("role", data.depths.length ? "treegrid" : "grid");
      this.table.id = data.id + "-rows";
      this.drawHead(data);
      // If the order or the rows change, the table is scrolled to the top; otherwise it stays where
      // it is.
      if (data.order !== this.order) {
        this.order = data.order;
        this.at = this.selected = -1;
        if (this.scrolled) this.box.scrollTop = 0;
        this.scrolled = false;
        this.table.removeAttribute("aria-activedescendant");
        this.folded = data.folded.slice(); // by row; the reader changes it by folding and unfolding
        this.shown = null;
      }
      if (data.selected >= 0 && data.selected !== this.selected) this.unfold(data.selected);
      this.list();
      this.fit();
      if (data.selected >= 0 && data.selected !== this.selected) this.show(data.selected, true);
      this.selected = data.selected;
    }

    drawHead(data) {
      const form = JSON.stringify(data.columns) + data.sort + data.reverse + data.longest;
      if (form === this.form) return;
      const focused = this.head.contains(document.activeElement) && document.activeElement.dataset.sort;
      this.form = form;
      this.columns.replaceChildren(...data.columns.map((c) => {
        const col = document.createElement("col");
        col.className = c.kind;
        // Long lines of code can be scrolled sideways.
        if (c.kind === "code" && data.longest) col.style.width = "calc(" + Math.min(data.longest + 2, 160) + "ch * var(--code-size, 1))";
        return col;
      }));
      this.table.style.minWidth = data.longest ? "max-content" : "";
      this.head.replaceChildren(...data.columns.map((c) => {
        const th = document.createElement("th");
        th.scope = "col";
        th.className = c.kind;
        if (!c.key) {
          th.appendChild(Object.assign(document.createElement("span"), { className: "head", textContent: c.name }));
          return th;
        }
        const button = th.appendChild(Object.assign(document.createElement("button"), { type: "button", className: "plain sort", textContent: c.name }));
        button.dataset.sort = c.key;
        if (c.key === data.sort) th.ariaSort = (c.kind === "number") !== data.reverse ? "descending" : "ascending";
        return th;
      }));
      if (focused) this.head.querySelector('[data-sort="' + focused + '"]')?.focus();
    }

    // list finds the rows of a tree that are not hidden. shown is null if no row is hidden.
    list() {
      const { rows, depths } = this.data;
      this.shown = null;
      if (this.folded.includes(true)) {
        this.shown = [];
        for (let i = 0, most = Infinity; i < rows; i++) {
          if (depths[i] > most) continue;
          most = this.folded[i] ? depths[i] : Infinity;
          this.shown.push(i);
        }
      }
      this.table.setAttribute("aria-rowcount", this.count() + 1);
    }

    count() { return this.shown ? this.shown.length : this.data.rows; }

    // row returns the row at a place among the shown rows; place returns the place of a row.
    row(place) { return this.shown ? this.shown[place] : place; }

    place(row) {
      if (!this.shown) return row;
      let low = 0, top = this.shown.length;
      while (low < top) {
        const middle = (low + top) >> 1;
        if (this.shown[middle] < row) low = middle + 1;
        else top = middle;
      }
      return low;
    }

    // fold hides or shows the rows below a row.
    fold(row, yes) {
      this.folded[row] = yes;
      this.list();
      this.fit();
      this.go(row);
    }

    unfold(row) {
      for (let i = this.parent(row); i !== undefined; i = this.parent(i)) this.folded[i] = false;
    }

    // fit sets the height of the block to the height of all rows. No row wraps, so the height depends
    // only on the width, the columns and the number of rows. fit measures each combination once,
    // because a measurement makes the browser compute the layout of the page.
    fit() {
      if (!this.data || !this.wide) return;
      const count = Math.min(this.count(), +this.getAttribute("rows") || 18);
      while (this.body.children.length > count) this.body.lastChild.remove();
      while (this.body.children.length < count) this.body.append(document.createElement("tr"));
      this.fill();
      if (count === 0) { this.tall.style.height = this.box.style.height = ""; return; }
      const form = [this.wide, count, this.form].join();
      if (!this.sizes.has(form)) {
        const [row, table] = [this.body.firstChild, this.table].map((e) => e.getBoundingClientRect().height);
        const extra = this.box.offsetHeight - this.box.clientHeight; // height of the horizontal scroll bar
        this.sizes.set(form, { row, table, box: table + extra });
      }
      const { row, table, box } = this.sizes.get(form);
      this.box.style.height = box + "px";
      this.tall.style.height = table + Math.min((this.count() - count) * row, mostHigh) + "px";
      if (this.top() !== this.first) this.fill();
    }

    // top returns the first visible row. A box that was never scrolled is not measured, because the
    // browser would have to compute the layout.
    top() {
      const hidden = this.count() - this.body.children.length;
      if (hidden <= 0 || !this.scrolled) return 0;
      const way = this.box.scrollHeight - this.box.clientHeight;
      if (way <= 0) return 0;
      return Math.min(hidden, Math.round(this.box.scrollTop / way * hidden));
    }

    fill() {
      const data = this.data, rows = this.body.children;
      if (!data) return;
      this.first = this.top();
      for (let i = 0; i < rows.length; ) {
        const from = this.row(this.first + i);
        let n = 1; // number of consecutive rows
        while (i + n < rows.length && this.row(this.first + i + n) === from + n) n++;
        const list = onRows ? onRows(data.id, from, n) : [];
        for (let k = 0; k < n; k++, i++) this.fillRow(rows[i], from + k, list[k]);
      }
      this.active();
    }

    fillRow(tr, number, row) {
      const data = this.data, cells = row ? row.cells : [];
      while (tr.children.length > cells.length) tr.lastChild.remove();
      while (tr.children.length < cells.length) tr.append(document.createElement("td"));
      tr.id = data.id + "-row-" + number;
      tr.className = row ? row.mark : "";
      tr.setAttribute("aria-rowindex", this.place(number) + 2);
      const depth = data.depths[number];
      if (depth) {
        tr.setAttribute("aria-level", depth);
        tr.style.setProperty("--depth", depth - 1);
      }
      if (number === data.selected) tr.setAttribute("aria-selected", "true");
      else tr.removeAttribute("aria-selected");
      const folds = this.folded.length > 0 && data.depths[number + 1] > depth;
      if (folds) tr.setAttribute("aria-expanded", !this.folded[number]);
      else tr.removeAttribute("aria-expanded");
      cells.forEach((text, i) => {
        if (!i && this.folded.length) text = (folds ? this.folded[number] ? "▸" : "▾" : "\u2003") + "\u00a0" + text;
        const td = tr.children[i], kind = data.columns[i].kind;
        td.className = kind;
        if (!i && row.tint) ["hue", "light", "chroma"].forEach((name, k) => td.style.setProperty("--" + name, row.tint[k]));
        const share = row.shares && row.shares[i] >= 0 ? row.shares[i] : "";
        td.style.setProperty("--share", share);
        td.classList.toggle("share", share !== "");
        const title = row.titles && row.titles[i] || text;
        const after = kind === "code" && row.after || "";
        if (td.textContent === text + (after && "   " + after) && (td.title === title || kind === "code")) return;
        if (kind === "code" && data.language) colour(td, text, data.language, row.mark === "comment", after);
        else [td.textContent, td.title] = [text, title];
        if (i || !this.folded.length) return;
        const span = (className, textContent) => Object.assign(document.createElement("span"), { className, textContent });
        td.replaceChildren(folds ? span("fold", text.slice(0, 1)) : text.slice(0, 1), row.tint ? span("square", text.slice(1)) : text.slice(1));
      });
    }

    active() {
      for (const tr of this.body.children) tr.classList.toggle("active", tr.id === this.data.id + "-row-" + this.at);
    }

    // show scrolls a row into view.
    show(row, middle) {
      const count = this.body.children.length, hidden = this.count() - count;
      if (hidden <= 0) return;
      row = this.place(row);
      let first = this.top();
      if (row >= first && row < first + count) return;
      if (middle) first = row - (count >> 1);
      else first = row < first ? row : row - count + 1;
      first = Math.min(Math.max(first, 0), hidden);
      this.scrolled = true;
      this.box.scrollTop = first / hidden * (this.box.scrollHeight - this.box.clientHeight);
      this.fill();
    }

    go(row) {
      if (!this.data || !this.data.rows) return;
      this.at = Math.min(Math.max(row, 0), this.data.rows - 1);
      this.show(this.at, false);
      this.active();
      this.table.setAttribute("aria-activedescendant", this.data.id + "-row-" + this.at);
    }

    pick(row) {
      if (row < 0 || row >= this.data.rows) return;
      this.at = row;
      this.active();
      onPick(this.data.id, row);
    }

    // parent and child return rows of a tree; undefined if there is none.
    parent(row) {
      const depths = this.data.depths;
      for (let i = row - 1; i >= 0 && depths.length; i--) if (depths[i] < depths[row]) return i;
    }

    child() {
      const depths = this.data.depths;
      if (depths[this.at + 1] > depths[this.at]) return this.at + 1;
    }

    key(e) {
      if (e.target !== this.table || e.ctrlKey || e.metaKey || e.altKey) return;
      const page = Math.max(1, this.body.children.length - 1), at = this.place(this.at), child = this.child();
      const by = (n) => this.row(Math.min(Math.max(at + n, 0), this.count() - 1));
      const to = { ArrowLeft: this.parent(this.at), ArrowRight: child, ArrowDown: by(1), ArrowUp: by(-1), PageDown: by(page), PageUp: by(-page),
        Home: 0, End: by(Infinity) }[e.key];
      if (child && this.folded.length && (e.key === "ArrowRight" && this.folded[this.at] || e.key === "ArrowLeft" && !this.folded[this.at])) {
        this.fold(this.at, e.key === "ArrowLeft");
        e.preventDefault();
        return;
      }
      if (e.key === "Enter" || e.key === " ") this.pick(this.at);
      else if (to === undefined) return;
      else this.go(to);
      e.preventDefault();
    }
  }

  window.stackglassTables = {
    connect(rows, pick, sort) { [onRows, onPick, onSort] = [rows, pick, sort]; },
    set(data) {
      tables.set(data.id, data);
      for (const host of document.querySelectorAll('sg-table[table="' + data.id + '"]')) if (host.box) host.draw();
    },
  };
  customElements.define("sg-table", Rows);
})();
