// Explains glossary terms where they occur in a result: on hover, on focus, on tap, and in the list
// that the key "?" opens. The build prepends window.glossary to this script: the words, the meaning
// and the manual page of each term. After each change, the script finds the terms in the page's
// text and underlines them with the highlight registry, so it changes no element of the program.
"use strict";
(function () {
  const where = "h2, h3, th, dt, dd, legend, label, .caption, .chip, .second, .summary, [role=columnheader]";
  const entries = new Map();
  for (const [words, meaning, page] of window.glossary) {
    for (const word of words.split(",")) entries.set(word.toLowerCase(), { word, meaning, page });
  }
  const pattern = new RegExp("(?<![\\w-])(" + Array.from(entries.keys()).sort((a, b) => b.length - a.length)
    .map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replace(/ /g, "\\s+")).join("|") + ")(?:e?s)?(?![\\w-])", "gi");
  // The visible terms: the ranges in each text node, and each term once.
  let found = new Map(), inView = new Map();
  function scan() {
    const result = document.getElementById("result");
    found = new Map();
    inView = new Map();
    const ranges = [], once = new Map(); // the terms found in each element
    const walk = result && document.createTreeWalker(result, NodeFilter.SHOW_TEXT);
    while (walk && walk.nextNode()) {
      // Names of source locations and of data (.where) are not terms.
      const text = walk.currentNode, element = text.parentElement.closest("option, .where, " + where);
      if (!element || element.matches("option, .where")) continue;
      if (!once.has(element)) once.set(element, new Set());
      const hits = [];
      for (const m of text.data.matchAll(pattern)) {
        const term = entries.get(m[1].toLowerCase().replace(/\s+/g, " "));
        if (once.get(element).has(term)) continue;
        once.get(element).add(term);
        const range = new Range();
        range.setStart(text, m.index);
        range.setEnd(text, m.index + m[0].length);
        ranges.push(range);
        hits.push({ term, range });
        inView.set(term.meaning, term);
      }
      if (hits.length) found.set(text, hits);
    }
    if (CSS.highlights) CSS.highlights.set("term", new Highlight(...ranges));
  }
  let due = 0;
  const later = () => {
    clearTimeout(due);
    due = setTimeout(() => (window.requestIdleCallback || setTimeout)(scan, { timeout: 1000 }), 300);
  };
  new MutationObserver(later).observe(document.getElementById("main"), { childList: true, subtree: true, characterData: true });
  later();

  // The explanation.
  const box = document.createElement("div");
  Object.assign(box, { id: "term", popover: "manual" });
  box.setAttribute("role", "tooltip");
  document.body.append(box);
  let shown = null, opening = 0, closing = 0;
  const explained = (term) => {
    const name = Object.assign(document.createElement("b"), { textContent: term.word });
    const more = Object.assign(document.createElement("a"), { href: "docs/" + term.page, target: "_blank", textContent: "more" });
    more.setAttribute("aria-label", "more about " + term.word);
    return [name, " ", term.meaning, " ", more];
  };
  function show(hit) {
    clearTimeout(closing);
    if (shown === hit) return;
    shown = hit;
    box.replaceChildren(...explained(hit.term));
    box.showPopover();
    const at = hit.range.getBoundingClientRect(), size = box.getBoundingClientRect();
    const below = at.bottom + 6 + size.height < innerHeight;
    box.style.left = Math.max(8, Math.min(at.left, innerWidth - size.width - 8)) + "px";
    box.style.top = (below ? at.bottom + 6 : Math.max(8, at.top - size.height - 6)) + "px";
  }
  function hide() {
    clearTimeout(opening);
    clearTimeout(closing);
    if (shown) box.hidePopover();
    shown = null;
  }
  const leave = () => { clearTimeout(opening); clearTimeout(closing); closing = setTimeout(hide, 250); };

  function termAt(x, y) {
    let node, offset;
    if (document.caretPositionFromPoint) {
      const caret = document.caretPositionFromPoint(x, y);
      if (caret) [node, offset] = [caret.offsetNode, caret.offset];
    } else if (document.caretRangeFromPoint) {
      const caret = document.caretRangeFromPoint(x, y);
      if (caret) [node, offset] = [caret.startContainer, caret.startOffset];
    }
    const hit = (found.get(node) || []).find(({ range }) => range.startOffset <= offset && offset <= range.endOffset);
    if (!hit) return null;
    const at = hit.range.getBoundingClientRect(); // the caret position is that of the nearest text
    return x >= at.left - 2 && x <= at.right + 2 && y >= at.top - 2 && y <= at.bottom + 2 ? hit : null;
  }
  addEventListener("pointermove", (e) => {
    if (e.pointerType === "touch" || e.buttons || !found.size) return;
    if (box.contains(e.target)) return clearTimeout(closing);
    const hit = e.target.closest && e.target.closest("#result") && termAt(e.clientX, e.clientY);
    if (!hit) return leave();
    if (hit === shown) return clearTimeout(closing);
    clearTimeout(opening);
    opening = setTimeout(() => show(hit), shown ? 0 : 300);
  }, { passive: true });
  addEventListener("click", (e) => {
    if (box.contains(e.target)) return;
    const control = e.target.closest && e.target.closest("a, button, input, select, summary");
    const hit = !control && termAt(e.clientX, e.clientY);
    if (hit) show(hit);
    else hide();
  });
  addEventListener("focusin", (e) => {
    if (box.contains(e.target)) return;
    hide();
    if (!e.target.matches(":focus-visible") || !e.target.closest("#result")) return;
    const around = e.target.closest("th, label, dt, dd, [role=columnheader]") || e.target;
    for (const [text, hits] of found) {
      if (!around.contains(text)) continue;
      show(hits[0]);
      e.target.setAttribute("aria-describedby", "term");
      return;
    }
  });
  addEventListener("keydown", (e) => {
    if (e.key !== "Escape" || !shown) return;
    e.stopImmediatePropagation(); // the key closes only the explanation
    hide();
  }, true);
  addEventListener("scroll", hide, { capture: true, passive: true });

  // The list in the dialog with the keys.
  document.getElementById("keys").addEventListener("show", () => {
    scan();
    const list = document.getElementById("terms");
    list.replaceChildren();
    for (const term of Array.from(inView.values()).sort((a, b) => (a.word < b.word ? -1 : 1))) {
      const [name, , ...rest] = explained(term);
      const dt = document.createElement("dt"), dd = document.createElement("dd");
      dt.append(name);
      dd.append(...rest);
      list.append(dt, dd);
    }
  });
})();
