// Swaps the parts of a page for newer ones, as the box sends them.
"use strict";
(() => {
  const root = document.documentElement;
  const foot = document.getElementById("live");
  if (!foot || !window.EventSource) return;
  let last = Date.now();
  const swap = (id, html) => {
    const part = document.getElementById(id);
    if (!part) return;
    const focused = part.contains(document.activeElement) && document.activeElement;
    const link = focused && focused.getAttribute("href");
    part.innerHTML = html;
    if (link) {
      const again = [...part.querySelectorAll("a")].find((a) => a.getAttribute("href") === link);
      if (again) again.focus({ preventScroll: true });
    }
  };
  const source = new EventSource("/events?page=" + encodeURIComponent(location.pathname));
  source.addEventListener("parts", (event) => {
    last = Date.now();
    const parts = JSON.parse(event.data);
    for (const id of Object.keys(parts)) swap(id, parts[id]);
  });
  source.addEventListener("out", () => {
    source.close();
    location.reload();
  });
  setInterval(() => {
    const silent = Math.round((Date.now() - last) / 1000);
    const stale = silent >= 10;
    root.classList.toggle("stale", stale);
    const words = stale ? "no connection to the box, retrying" : "live";
    if (foot.textContent !== words) foot.textContent = words;
  }, 1000);
})();
