// Searches the manual in the browser: the index is a script, made with the pages, that is loaded at the
// first key.
"use strict";
(function () {
  const form = document.getElementById("search"), query = document.getElementById("query"), found = document.getElementById("found");
  const most = 12; // results
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

  // score rates a section: every word must occur in it, and headings count most. 0: it does not match.
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
