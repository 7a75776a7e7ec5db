// Starts the program under the page's policy.
"use strict";
(function () {
  // Vugu evals its helper script. The policy forbids eval, and vugu.js has that
  // very script already: so eval ignores it. Everything else is left to the
  // policy, which refuses it.
  const evaluate = window.eval;
  window.eval = function (text) {
    if (typeof text === "string" && text.startsWith("(function(){if(window.vuguRender)return;")) return undefined;
    return evaluate(text);
  };

  // An event that fires while Vugu renders would wait for the lock that the
  // render holds, for ever: it is handled after the render.
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

  // A render removes attributes that are not in its tree. Whether a part of the page is unfolded
  // is the reader's choice, and stays.
  const remove = NamedNodeMap.prototype.removeNamedItem;
  NamedNodeMap.prototype.removeNamedItem = function (name) {
    const attribute = rendering && name === "open" && this.getNamedItem(name);
    return attribute && attribute.ownerElement.localName === "details" ? attribute : remove.call(this, name);
  };

  const fail = (text) => window.stackglass.fail(text);

  async function start() {
    if (location.protocol === "file:" && !("single" in document.documentElement.dataset)) {
      fail("Browsers start no programs from the files of a folder. Open stackglass.html, which is one file and needs no server; or have any web server serve this folder, for instance by “python3 -m http.server”, and open the address that it prints.");
      return;
    }
    if (typeof WebAssembly !== "object") {
      fail("This browser has no WebAssembly. The command stackglass does the same without a browser.");
      return;
    }
    const go = new Go();
    try {
      const { instance } = await loadProgram(document.documentElement.dataset.program, go.importObject);
      await go.run(instance);
    } catch (e) {
      fail("The page's program could not be started (" + e.message + "). Kept analyses are untouched; reload the page.");
      return;
    }
    // Go's run resolves when the program ended, which this one never does by itself.
    fail("The page's program has ended, probably because memory ran out. Stored analyses are untouched; reload the page to continue.");
  }
  start();
})();
