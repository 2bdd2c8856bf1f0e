// Shows the serial console of a machine as the box sends it: text lines, without colors.
"use strict";
(() => {
  const shown = document.getElementById("console");
  const state = document.getElementById("console-state");
  if (!shown || !state || !window.fetch) return;
  const LINES_MAX = 2000;
  const RETRY_MS = 5000;
  const SEQUENCE_MAX = 64;
  const SEQUENCES = /\x1b\[[0-9;?]*[ -\/]*[@-~]|\x1b[()][0-9A-Z]|\x1b[=>78A-Z]/g;
  let lines = [""];
  let column = 0;
  let unfinished = "";
  const put = (character) => {
    const line = lines[lines.length - 1];
    const start = line.slice(0, column).padEnd(column);
    lines[lines.length - 1] = start + character + line.slice(column + 1);
    column += 1;
  };
  const take = (text) => {
    text = unfinished + text;
    const cut = text.search(/\x1b(\[[0-9;?]*[ -\/]*|[()])?$/);
    unfinished = cut < 0 || text.length - cut > SEQUENCE_MAX ? "" : text.slice(cut);
    if (cut >= 0) text = text.slice(0, cut);
    for (const character of text.replace(SEQUENCES, "")) {
      if (character === "\n") lines.push("");
      if (character === "\n" || character === "\r") column = 0;
      else if (character === "\b") column = Math.max(0, column - 1);
      else if (character >= " " || character === "\t") put(character);
    }
    lines = lines.slice(-LINES_MAX);
    const below = shown.scrollHeight - shown.scrollTop - shown.clientHeight;
    shown.textContent = lines.join("\n");
    if (below < 40) shown.scrollTop = shown.scrollHeight;
  };
  const follow = async () => {
    const answer = await fetch(shown.dataset.output, { redirect: "manual", cache: "no-store" });
    if (answer.type === "opaqueredirect") return location.reload();
    if (!answer.ok) throw new Error(await answer.text());
    state.textContent = "live, read-only";
    [lines, column, unfinished] = [[""], 0, ""];
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) throw new Error("The console has ended.");
      take(value);
    }
  };
  const connect = () =>
    follow().catch((error) => {
      state.textContent = error.message + " Next attempt in 5 s.";
      setTimeout(connect, RETRY_MS);
    });
  connect();
})();
