// Starts the program under the page's policy.
"use strict";
(function () {
  // Vugu evaluates its helper script with eval, which the policy forbids. This eval ignores the
  // script, because vugu.js already contains it. All other calls are passed on, and the policy
  // refuses them.
  const evaluate = window.eval;
  window.eval = function (text) {
    if (typeof text === "string" && text.startsWith("(function(){if(window.vuguRender)return;")) return undefined;
    return evaluate(text);
  };

  // An event that fires while Vugu renders would wait forever for the lock that the render holds.
  // It is therefore handled after the render.
  const render = window.vuguRender;
  const setEventHandler = window.vuguSetEventHandler;
  let rendering = false;
  window.vuguRender = function () {
    rendering = true;
    try { return render.apply(this, arguments); } finally { rendering = false; }
  };
  window.vuguSetEventHandler = function (f) {
    setEventHandler(function (buffer) {
      if (!rendering) return f(buffer);
      const copy = buffer.slice();
      setTimeout(() => f(copy));
    });
  };

  // A render removes attributes that are not in its tree. The attribute open of a details element is
  // kept, because the user sets it.
  const remove = NamedNodeMap.prototype.removeNamedItem;
  NamedNodeMap.prototype.removeNamedItem = function (name) {
    const attribute = rendering && name === "open" && this.getNamedItem(name);
    return attribute && attribute.ownerElement.localName === "details" ? attribute : remove.call(this, name);
  };

  // A worker compiles the program, so that the page can handle events meanwhile.
  const compile = () => new Promise((done, failed) => {
    const worker = new Worker(document.documentElement.dataset.worker, { name: "compiler" });
    worker.onmessage = ({ data }) => {
      worker.terminate();
      if (data.program) done(data.program);
      else failed(new Error(data.why));
    };
    worker.onerror = (event) => failed(new Error(event.message || "no worker could be started"));
  });

  const fail = (text) => window.stackglass.fail(text);

  async function start() {
    if (location.protocol === "file:" && !("single" in document.documentElement.dataset)) {
      fail("Browsers do not run programs from files in a folder. Open stackglass.html, which is a single file and needs no server, or serve this folder with any web server, for example with “python3 -m http.server”, and open the address that it prints.");
      return;
    }
    if (typeof WebAssembly !== "object") {
      fail("This browser has no WebAssembly. The command stackglass needs no browser.");
      return;
    }
    const go = new Go();
    try {
      const instance = await WebAssembly.instantiate(await compile(), go.importObject);
      await go.run(instance);
    } catch (e) {
      fail("The page's program could not be started (" + e.message + "). Reload the page. Kept analyses are not affected.");
      return;
    }
    // Go's run resolves when the program has ended, which this program never does by itself.
    fail("The page's program has ended, probably because memory ran out. Stored analyses are untouched; reload the page to continue.");
  }
  addEventListener("DOMContentLoaded", start); // in a single file, the scripts of the workers are available from then on
})();
