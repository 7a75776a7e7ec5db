// This script replaces the server in the single HTML file. Everything that the page and its workers
// fetch, import or start as a worker comes from this file, without changes to the page or the
// workers. The policy can therefore forbid every connection.
//
// tools/sitebuild/single.go builds the file. This script is the first in the page and in every
// worker. Elements script[data-file] contain the programs and demos, compressed with gzip and
// encoded as base64. A worker receives these files in a message.
"use strict";
(function () {
  const bundle = ["single.js", "wasm_exec.js", "worker.js"]; // the scripts of a worker
  const types = { wasm: "application/wasm", c: "text/plain; charset=utf-8", html: "text/html; charset=utf-8" };
  const page = self.document;
  const found = page ? parsed().then(collect) : arrived();

  function parsed() {
    return new Promise((resolve) => page.addEventListener("DOMContentLoaded", resolve));
  }

  function collect() {
    const files = new Map(), scripts = new Map();
    for (const e of page.querySelectorAll("script[data-file]")) {
      const to = bundle.includes(e.dataset.file) ? scripts : files;
      to.set(e.dataset.file, e.textContent);
      if (e.type === "text/plain") e.remove();
    }
    for (const [name, text] of files) files.set(name, new Blob([text]));
    const worker = new Blob(bundle.map((name) => scripts.get(name) + "\n;\n"), { type: "text/javascript" });
    return { files, worker, address: URL.createObjectURL(worker) };
  }

  function arrived() {
    self.importScripts = () => {}; // wasm_exec.js is already part of the worker's scripts
    return new Promise((resolve) => {
      self.addEventListener("message", function take(event) {
        if (!event.data.files) return;
        event.stopImmediatePropagation(); // the message is not for the program
        self.removeEventListener("message", take);
        resolve({ ...event.data, address: URL.createObjectURL(event.data.worker) });
      });
    });
  }

  self.fetch = async function (name) {
    const { files } = await found;
    name = name.replace(/\.[0-9a-f]{16}\./, "."); // files are stored without the hash in their names
    if (!files.has(name)) throw new TypeError(name + " is not in this file");
    const packed = Uint8Array.from(atob(await files.get(name).text()), (letter) => letter.charCodeAt(0));
    const body = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(body, { headers: { "Content-Type": types[name.split(".").pop()] || "application/octet-stream" } });
  };

  // A worker starts before it has received its files: its program waits for them in fetch.
  let address = "", parts = null;
  found.then((all) => { parts = { files: all.files, worker: all.worker }; address = all.address; });
  self.Worker = class extends self.Worker {
    constructor(name, options) {
      super(address + "#" + name.split("?")[1], options);
      this.postMessage(parts);
    }
  };

  // The demos' sources and the manual are also opened from the file.
  if (page) page.addEventListener("click", async (event) => {
    const link = event.target.closest('a[href^="demos/"], a[href^="docs/"]');
    if (!link) return;
    event.preventDefault();
    const name = link.getAttribute("href");
    const response = await fetch(name.startsWith("docs/") ? "manual.html" : name);
    open(URL.createObjectURL(await response.blob()));
  });
})();
