// Searches the manual in the browser, and shows the stack to try. The search index is a script,
// which is built with the pages and loaded at the first key press.
"use strict";
(function () {
  const form = document.getElementById("search"), query = document.getElementById("query"), found = document.getElementById("found");
  const most = 12; // maximum number of results
  form.hidden = false;
  let loading = null;

  function sections() {
    return loading ||= new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = document.documentElement.dataset.index;
      script.onload = () => resolve(window.manualIndex);
      script.onerror = reject;
      document.head.append(script);
    });
  }

  // score rates a section. Words in headings count most. The score is 0 if a word does not occur in
  // the section.
  function score([, , title, heading, text], words) {
    let sum = 0;
    for (const word of words) {
      const here = (heading.toLowerCase().includes(word) ? 20 : 0) + (title.toLowerCase().includes(word) ? 8 : 0) +
        Math.min(5, text.toLowerCase().split(word).length - 1);
      if (!here) return 0;
      sum += here;
    }
    return sum;
  }

  function result([page, anchor, title, heading, text], words) {
    const item = document.createElement("li"), link = document.createElement("a"), excerpt = document.createElement("div");
    link.href = page + ".html#" + anchor;
    link.textContent = heading === title ? title : title + ": " + heading;
    const at = Math.max(0, text.toLowerCase().indexOf(words[0]) - 60);
    excerpt.className = "second";
    excerpt.textContent = (at ? "… " : "") + text.slice(at, at + 160) + (text.length > at + 160 ? " …" : "");
    item.append(link, excerpt);
    return item;
  }

  async function search() {
    const words = query.value.toLowerCase().split(/\s+/).filter(Boolean);
    found.hidden = !words.length;
    if (!words.length) return;
    const rated = (await sections()).map((s) => [score(s, words), s]).filter(([n]) => n).sort((a, b) => b[0] - a[0]);
    const summary = document.createElement("strong"), list = document.createElement("ol");
    summary.textContent = rated.length === 0 ? "Nothing found" : rated.length === 1 ? "1 section" : rated.length + " sections";
    list.append(...rated.slice(0, most).map(([, s]) => result(s, words)));
    found.replaceChildren(summary, list);
  }

  query.value = new URLSearchParams(location.search).get("q") || "";
  search();
  query.addEventListener("input", search);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    found.querySelector("a")?.click();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== query && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      query.focus();
    } else if (event.key === "Escape" && document.activeElement === query) {
      query.value = "";
      search();
    }
  });
})();

// A stack to try: the reader changes the accesses and the size of the cache. The initial accesses
// come from a code block in the language live-stack.
(function () {
  const most = 24, sizes = 8; // maximum number of accesses, and lines of the largest cache

  function element(name, properties, ...children) {
    const e = Object.assign(document.createElement(name), properties);
    e.append(...children);
    return e;
  }

  // distances returns the stack distance of each access; Infinity for the first access to a line.
  function distances(accesses) {
    const stack = [];
    return accesses.map((line) => {
      const depth = stack.indexOf(line);
      if (depth >= 0) stack.splice(depth, 1);
      stack.unshift(line);
      return depth < 0 ? Infinity : depth;
    });
  }

  const misses = (depths, lines) => depths.filter((d) => d >= lines).length;

  function table(accesses, depths, lines) {
    const row = (title, cells) => element("tr", {}, element("th", { scope: "row", textContent: title }), ...cells);
    return element("table", {}, element("tbody", {},
      row("access", accesses.map((a) => element("td", { textContent: a }))),
      row("stack distance", depths.map((d) => element("td", { textContent: d === Infinity ? "∞" : d }))),
      row("cache of " + lines + (lines === 1 ? " line" : " lines"), depths.map((d) => element("td", d < lines ? { className: "hit", textContent: "hit" } : { className: "miss", textContent: "miss" })))));
  }

  // curve draws the misses for each cache size.
  function curve(depths, lines) {
    const all = Array.from({ length: sizes }, (_, i) => misses(depths, i + 1));
    const columns = all.map((n, i) => {
      const bar = element("div", { className: "height" });
      bar.style.height = 5 * n / depths.length + "rem";
      return element("div", i + 1 === lines ? { className: "now" } : {}, String(n), bar, String(i + 1));
    });
    const bars = element("div", { className: "bars" }, ...columns);
    bars.setAttribute("role", "img");
    bars.setAttribute("aria-label", "Misses of caches of 1 to " + sizes + " lines: " + all.join(", "));
    return element("figure", {}, bars, element("figcaption", { className: "second", textContent: "Misses, by the number of lines in the cache" }));
  }

  for (const block of document.querySelectorAll("code.language-live-stack")) {
    const text = element("input", { type: "text", id: "live-accesses", value: block.textContent.trim(), maxLength: 2 * most, autocomplete: "off", spellcheck: false });
    const range = element("input", { type: "range", id: "live-lines", min: 1, max: sizes, value: 2 });
    const wide = element("div", { className: "wide", tabIndex: 0 }), bars = element("div"), said = element("p");
    said.setAttribute("role", "status");
    const show = () => {
      const accesses = (text.value.match(/[^\s,]/gu) || []).slice(0, most), depths = distances(accesses), lines = +range.value;
      range.setAttribute("aria-valuetext", lines + (lines === 1 ? " line" : " lines"));
      if (accesses.length === 0) {
        said.textContent = "Type accesses, one letter for each line of memory, such as a b a c.";
        wide.replaceChildren();
        bars.replaceChildren();
        return;
      }
      said.textContent = "With " + lines + (lines === 1 ? " line, " : " lines, ") + misses(depths, lines) + " of " + accesses.length + " accesses miss, because their stack distance is " + lines + " or more.";
      wide.replaceChildren(table(accesses, depths, lines));
      bars.replaceChildren(curve(depths, lines));
    };
    text.addEventListener("input", show);
    range.addEventListener("input", show);
    const form = element("form", {}, element("label", { textContent: "Accesses " }, text), element("label", { textContent: "Lines in the cache " }, range));
    form.addEventListener("submit", (event) => event.preventDefault());
    block.parentElement.replaceWith(element("div", { className: "live" }, form, wide, said, bars));
    show();
  }
})();
