// Keys of all pages: "/" searches, "g" and a letter opens a page, "?" opens the help. Forms with
// long text are sent only to a box that answers, so that the text is not lost with the connection.
// Forms with a file show how much of it was sent.
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
  const CUT = "The connection was lost, and nothing was stored. Send the file again.";
  const MIB = 1 << 20;
  const upload = (form) => {
    const meter = document.createElement("div");
    meter.innerHTML = `<div class="meter"><progress max="100" value="0" aria-label="Upload">` +
      `</progress></div><p class="help" role="status"></p>`;
    const [bar, line] = [meter.querySelector("progress"), meter.lastChild];
    const request = new XMLHttpRequest();
    const mib = (bytes) => Math.ceil(bytes / MIB).toLocaleString();
    const leaves = (event) => event.preventDefault();
    request.upload.addEventListener("progress", ({ loaded, total }) => {
      bar.value = 100 * loaded / total;
      line.textContent = loaded < total ? `${mib(loaded)} of ${mib(total)} MiB sent.` :
        "The box checks the file.";
    });
    const ends = () => {
      removeEventListener("beforeunload", leaves);
      meter.remove();
      form.querySelectorAll("button").forEach((it) => { it.disabled = false; });
      delete form.dataset.state;
    };
    request.addEventListener("error", () => { ends(); notice(form, CUT); });
    request.addEventListener("load", () => {
      ends();
      if (request.responseURL !== new URL(form.action).href) {
        location.assign(request.responseURL);
        return;
      }
      // The response of a refused form, with what was typed.
      const page = new DOMParser().parseFromString(request.responseText, "text/html");
      document.title = page.title;
      document.body.replaceWith(page.body);
      scrollTo(0, 0);
    });
    notice(form, "");
    form.dataset.state = "sends";
    form.querySelectorAll("button").forEach((it) => { it.disabled = true; });
    form.append(meter);
    addEventListener("beforeunload", leaves);
    request.open("POST", form.action);
    request.send(new FormData(form));
  };

  document.addEventListener("submit", async (event) => {
    const form = event.target;
    if (form.enctype === "multipart/form-data") {
      event.preventDefault();
      if (!form.dataset.state) upload(form);
      return;
    }
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
