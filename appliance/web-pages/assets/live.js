// Swaps the parts of a page for newer ones, as the box sends them.
"use strict";
(() => {
  const root = document.documentElement;
  const foot = document.getElementById("live");
  if (!foot || !window.EventSource) return;
  // The stream has no CSRF token: new forms get that of the page.
  const csrf = document.querySelector("input[name=csrf]");
  let last = Date.now();
  const swap = (id, html) => {
    const part = document.getElementById(id);
    if (!part) return;
    const focused = part.contains(document.activeElement) && document.activeElement;
    // A link is known by its address, a button by that of its form.
    const place = (it) => it.getAttribute("href") || (it.form && it.form.getAttribute("action"));
    const wanted = focused && place(focused);
    part.innerHTML = html;
    for (const it of part.querySelectorAll("input[name=csrf]")) it.value = csrf.value;
    if (wanted) {
      const again = [...part.querySelectorAll("a, button")].find((it) => place(it) === wanted);
      if (again) again.focus({ preventScroll: true });
    }
  };
  const connect = () => {
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
    // The browser opens a broken connection again; an answer other than 200 ends the source.
    source.addEventListener("error", () => {
      if (source.readyState === EventSource.CLOSED) setTimeout(again, 5000);
    });
  };
  // After a restart the box knows no session: the page leads to the login then.
  const again = () => {
    fetch(location.href, { redirect: "manual", cache: "no-store" })
      .then((answer) => (answer.type === "opaqueredirect" ? location.reload() : connect()))
      .catch(() => setTimeout(again, 5000));
  };
  connect();
  setInterval(() => {
    const silent = Math.round((Date.now() - last) / 1000);
    const stale = silent >= 10;
    root.classList.toggle("stale", stale);
    const words = stale ? "no connection to the box, retrying" : "live";
    if (foot.textContent !== words) foot.textContent = words;
  }, 1000);
})();
