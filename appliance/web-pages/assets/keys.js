// Keys of all pages: "/" searches, "g" and a letter opens a page, "?" opens the help.
"use strict";
(() => {
  const pages = { n: "/", m: "/machines", w: "/workflows", t: "/templates", e: "/network",
    i: "/images", c: "/cluster-api", b: "/box", h: "/help" };
  let waits = 0;
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, textarea, select, .console")) return;
    const goes = Date.now() - waits < 1500;
    waits = 0;
    if (goes && pages[event.key]) location.assign(pages[event.key]);
    else if (event.key === "g") waits = Date.now();
    else if (event.key === "?") location.assign("/help#keys");
    else if (event.key === "/") document.getElementById("q").focus();
    else return;
    event.preventDefault();
  });
})();
