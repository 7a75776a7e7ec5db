// The parts of the first screen that work before the program is ready. Dropped files, chosen files
// and demo cards are queued. The theme, the list of keys and offline use do not need the program.
"use strict";
(function () {
  const $ = (id) => document.getElementById(id);

  // The queue. Its items are {file, more, handle}, where handle is a promise of a handle that
  // reopens the file; {demo, file, title}; or {pair}, with two demos. Go calls
  // stackglass.onItem(handler), which first passes the queued items to the handler.
  const queue = [];
  let handler = null;
  function offer(item) {
    if (handler) return handler(item);
    queue.push(item);
    $("boot-state").textContent = "The analysis is still loading; " + (item.pair || [item]).map((i) => i.title || i.file.name).join(" and ") + " is next.";
  }
  const offerAll = (files, handles = []) => Array.from(files).forEach((file, i) => offer({ file, more: i > 0, handle: handles[i] }));
  window.stackglass = {
    onItem(f) {
      handler = f;
      $("boot-state").textContent = "";
      for (const item of queue.splice(0)) handler(item);
    },
    fail(text) {
      const state = $("boot-state");
      state.textContent = text;
      state.classList.add("problem");
      $("first").hidden = false;
    },
  };

  // Files that the user drops anywhere on the page or chooses.
  const root = document.documentElement;
  let depth = 0;
  const hasFiles = (e) => e.dataTransfer && Array.from(e.dataTransfer.types).includes("Files");
  addEventListener("dragenter", (e) => { if (hasFiles(e)) { depth++; root.classList.add("dropping"); } });
  addEventListener("dragleave", (e) => { if (hasFiles(e) && --depth <= 0) { depth = 0; root.classList.remove("dropping"); } });
  addEventListener("dragover", (e) => { if (hasFiles(e)) { e.preventDefault(); e.dataTransfer.dropEffect = "copy"; } });
  addEventListener("drop", (e) => {
    if (!hasFiles(e)) return;
    e.preventDefault();
    depth = 0;
    root.classList.remove("dropping");
    // Handles can be requested only while the event is handled.
    const files = Array.from(e.dataTransfer.items).filter((item) => item.kind === "file");
    const folders = files.map((item) => item.webkitGetAsEntry && item.webkitGetAsEntry()).filter((entry) => entry && entry.isDirectory);
    if (folders.length) return folders.forEach(offerFolder);
    offerAll(e.dataTransfer.files, files.map((item) => item.getAsFileSystemHandle && item.getAsFileSystemHandle().catch(() => null)));
  });

  // A DynamoRIO trace is a folder with one file for each thread. It becomes one file, which begins
  // with a list of the files of the threads. The browser copies none of them.
  const isPart = (file) => /\.(mem)?trace(\.(zip|gz|lz4|zst|sz))?$/.test(file.name);
  const within = (folder) => new Promise((done, failed) => {
    const reader = folder.createReader(), all = [];
    const more = () => reader.readEntries((some) => { all.push(...some); if (some.length) more(); else done(all); }, failed);
    more();
  });
  async function offerFolder(folder) {
    try {
      let entries = await within(folder);
      const inner = entries.find((entry) => entry.isDirectory && entry.name === "trace");
      if (inner) entries = await within(inner);
      const files = await Promise.all(entries.filter((entry) => entry.isFile).map((entry) => new Promise((done, failed) => entry.file(done, failed))));
      const parts = files.filter(isPart).sort((a, b) => (a.name < b.name ? -1 : 1));
      if (!parts.length) return offerAll(files);
      const list = ["stackglass folder\n", ...parts.map((file) => file.size + " " + file.name + "\n"), "\n"];
      offer({ file: new File([...list, ...parts], folder.name, { lastModified: Math.max(...parts.map((file) => file.lastModified)) }) });
    } catch (error) {
      $("boot-state").textContent = "The folder " + folder.name + " could not be read: " + error.message;
    }
  }
  const picker = $("file");
  picker.addEventListener("change", () => {
    offerAll(picker.files);
    picker.value = ""; // so that the same file can be chosen again
  });
  // Files that the system opens with the installed page, by a double click or by sharing them. The
  // service worker stores shared files.
  if (window.launchQueue) {
    launchQueue.setConsumer(async ({ files }) => offerAll(await Promise.all(files.map((handle) => handle.getFile())), files));
  }
  if (location.search === "?shared") takeShared();
  async function takeShared() {
    history.replaceState(null, "", location.pathname + location.hash);
    const cache = await caches.open("shared");
    for (const request of await cache.keys()) {
      const name = decodeURIComponent(request.url.split("/").pop());
      offerAll([new File([await (await cache.match(request)).blob()], name)]);
      await cache.delete(request);
    }
  }
  addEventListener("click", (e) => {
    const card = e.target.closest && e.target.closest("[data-demo]");
    if (card) offer(demo(card));
    const pair = e.target.closest && e.target.closest("[data-pair]");
    if (pair) offer({ pair: pair.dataset.pair.split(" ").map((name) => demo($("demo-" + name))) });
  });
  const demo = (card) => ({ demo: card.dataset.demo, file: { name: card.dataset.file }, url: card.dataset.file, title: card.dataset.title });

  // The theme.
  const theme = $("theme");
  theme.value = document.documentElement.dataset.theme || "system";
  theme.addEventListener("change", () => {
    if (theme.value === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme.value;
    try { localStorage.setItem("theme", theme.value); } catch (e) { /* without storage, the choice applies to this page only */ }
    dispatchEvent(new Event("themechange"));
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => dispatchEvent(new Event("themechange")));

  // The commands that record a program.
  $("accepted-open").addEventListener("click", () => $("accepted").showModal());
  $("commands-copy").addEventListener("click", async (e) => {
    const commands = document.querySelector('[data-language="' + document.querySelector("[name=language]:checked").value + '"]');
    try {
      await navigator.clipboard.writeText(commands.textContent + "\n");
      e.target.textContent = "Copied";
      setTimeout(() => { e.target.textContent = "Copy"; }, 2000);
    } catch { // not allowed: the user can copy the selection
      getSelection().selectAllChildren(commands);
      e.target.textContent = "Selected";
    }
  });

  // Keys.
  const keys = $("keys");
  const showKeys = async () => {
    keys.showModal();
    if ($("result")) await explained();
    keys.dispatchEvent(new Event("show")); // terms.js fills in the list of terms
  };

  // The script that explains terms is loaded when the pointer or the keyboard focus reaches a result
  // for the first time.
  const terms = document.documentElement.dataset.terms;
  let loading = terms ? null : Promise.resolve(); // in a single file, the script is part of it
  const explained = () => loading ||= new Promise((done) => {
    document.head.append(Object.assign(document.createElement("script"), { src: terms, onload: done, onerror: done }));
  });
  for (const kind of ["pointermove", "pointerdown", "focusin"]) {
    addEventListener(kind, (e) => {
      if (!loading && e.target.closest && e.target.closest("#result") && (kind !== "focusin" || e.target.matches(":focus-visible"))) explained();
    }, { passive: true });
  }
  $("keys-open").addEventListener("click", showKeys);
  addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented || document.querySelector("dialog[open]")) return;
    const t = e.target;
    if (t.isContentEditable || /^(SELECT|TEXTAREA)$/.test(t.tagName) || (t.tagName === "INPUT" && /^(text|search)$/.test(t.type))) return;
    if (e.key === "?") { e.preventDefault(); showKeys(); }
    else if (e.key === "o") { e.preventDefault(); picker.click(); }
    else if (/^[1-9]$/.test(e.key)) press('[data-key="' + e.key + '"]', e);
    else if (e.key === "c") focusChart(e);
    else if (/^(Arrow(Left|Right)|Home|End)$/.test(e.key) && t.matches(".tabs a")) alongTabs(t, e);
    else if (e.key === "/") focusOn("[data-key-search]", e);
    else if (e.key === "t") press("[data-key-table]", e);
    else if (e.key === "i") press("[data-key-ir]", e);
    else if (/^[np]$/.test(e.key)) press('[data-key-hot="' + e.key + '"]', e);
    else if (e.key === "Escape" && !$("first").checkVisibility() && !document.querySelector(":popover-open")) press("#back", e);
  });
  function focusChart(e) {
    focusOn("sg-chart .plot, sg-flame .scroll", e);
  }
  function focusOn(selector, e) {
    const target = document.querySelector(selector);
    if (!target) return;
    e.preventDefault();
    target.focus();
  }
  // alongTabs moves the focus along the tabs. Enter then opens a tab.
  function alongTabs(tab, e) {
    e.preventDefault();
    const all = Array.from(tab.parentElement.querySelectorAll("a")), at = all.indexOf(tab);
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: all.length - 1 }[e.key];
    all[(to + all.length) % all.length].focus();
  }
  function press(selector, e) {
    const target = document.querySelector(selector);
    if (!target) return;
    e.preventDefault();
    target.click();
  }
  $("home").addEventListener("click", () => scrollTo(0, 0));
  $("nav-demos") && $("nav-demos").addEventListener("click", (e) => {
    e.preventDefault();
    location.hash = "";
    const demos = $("demos");
    if (demos) setTimeout(() => { demos.scrollIntoView(); demos.focus(); });
  });

  // Offline use.
  const offline = $("offline-state");
  if ("single" in document.documentElement.dataset) {
    offline.textContent = "It is stored: this file contains everything.";
    return;
  }
  if (!("serviceWorker" in navigator) || !isSecureContext) {
    offline.textContent = "It cannot be stored: this browser does not support this, or the page was not opened over https or from localhost.";
    return;
  }
  navigator.serviceWorker.ready.then(() => { offline.textContent = "It is stored now."; });
  // The browser gives up if a file cannot be fetched or if storing takes minutes. Files that were
  // stored are kept, so another attempt continues where the last one ended.
  const waits = [2000, 8000, 32000];
  async function store() {
    let registration;
    try {
      registration = await navigator.serviceWorker.register("sw.js");
    } catch (e) {
      offline.textContent = "The browser refused to store it (" + e.message + ").";
      return;
    }
    // A newer version that was fetched during an earlier visit is activated when no page uses the
    // older version. Earlier activation would give a page and its workers different versions, and a
    // worker that is ended during its work might delay the next visit.
    if (registration.waiting) offline.textContent = "It is stored now, and so is a newer version. To use the newer version, close all tabs of this page and open it again.";
    const storing = registration.installing;
    storing && storing.addEventListener("statechange", () => {
      if (storing.state !== "redundant" || registration.active) return;
      if (waits.length > 0) setTimeout(store, waits.shift());
      else offline.textContent = "It could not be stored. Reload the page to try again.";
    });
  }
  addEventListener("load", store);
})();
