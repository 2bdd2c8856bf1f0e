// Keys of all pages: "/" searches, "g" and a letter opens a page, "?" opens the help. And forms with
// long text are sent only to a box that answers, so that the text is not lost with the connection.
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

  const PATIENCE_MS = 5000;
  const LOST = "The box does not answer. What you typed stays here: send it again when the " +
    "connection is back.";
  const answers = () => fetch("/ca.pem",
    { method: "HEAD", cache: "no-store", signal: AbortSignal.timeout(PATIENCE_MS) });
  const notice = (form, text) => {
    const last = form.querySelector("[data-lost]");
    if (last) last.remove();
    if (!text) return;
    const line = document.createElement("p");
    line.className = "error";
    line.dataset.lost = "";
    line.setAttribute("role", "alert");
    line.textContent = text;
    form.append(line);
  };
  document.addEventListener("submit", async (event) => {
    const form = event.target;
    const hasText = form.method === "post" && form.querySelector("textarea");
    if (!hasText || form.dataset.state === "sent") return;
    event.preventDefault();
    // A second press while the first is checked is the same request.
    if (form.dataset.state === "asks") return;
    form.dataset.state = "asks";
    try {
      await answers();
      notice(form, "");
      form.dataset.state = "sent";
      form.requestSubmit(event.submitter);
    } catch {
      notice(form, LOST);
    }
    delete form.dataset.state;
  });
})();
