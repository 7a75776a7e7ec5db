// The theme is set before the first paint, so that a dark page never flashes
// white. "system" leaves it to prefers-color-scheme.
"use strict";
(function () {
  let chosen = null;
  try { chosen = localStorage.getItem("theme"); } catch (e) { /* storage is off: system */ }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
