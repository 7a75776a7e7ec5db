// The theme is set before the first paint, so that a dark page never flashes white. If the theme is
// "system", prefers-color-scheme decides.
"use strict";
(function () {
  let chosen = null;
  try { chosen = localStorage.getItem("theme"); } catch (e) { /* no storage: use the system's theme */ }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
