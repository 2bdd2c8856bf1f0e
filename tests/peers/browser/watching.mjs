// A real browser watches the installation of a machine, and another installation that fails,
// without a reload of a page. This program serves the image, and sends each part only after the
// pages have shown the progress before it.
//   watching.mjs URL CODE FOLDER PLAYWRIGHT MACHINE TARGET AGENT [ARGUMENT…]
import { execFileSync, spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { createServer } from "node:http";
import { end, open } from "./browser.mjs";

const [url, code, folder, library, machine, target, ...agent] = process.argv.slice(2);
// Percentages of the image. Each is sent after the pages have shown the one before.
const SHARES = [30, 70, 100];

const image = randomBytes(24 << 20);
const until = (percent) => Math.floor((image.length * percent) / 100);
let allowed = 0;
let waiting = () => {};
const allow = (percent) => {
  allowed = until(percent);
  waiting();
};
const server = createServer((request, response) => {
  response.writeHead(200, { "content-length": image.length });
  if (request.method === "HEAD") {
    response.end();
    return;
  }
  let sent = 0;
  waiting = () => {
    if (sent < allowed) response.write(image.subarray(sent, allowed));
    sent = allowed;
    if (sent === image.length) response.end();
  };
  waiting();
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const origin = `http://127.0.0.1:${server.address().port}/debian.raw`;

const install = (name, sum) => {
  const action = {
    name: "stream-debian",
    image: "quay.io/tinkerbell/actions/image2disk:latest",
    timeout: 300,
    environment: { IMG_URL: origin, DEST_DISK: target, IMG_SHA256: sum },
  };
  const tasks = [{ name: "os", worker: machine, actions: [action] }];
  const data = JSON.stringify({ version: "0.1", name, global_timeout: 600, tasks });
  const of = (kind, spec) =>
    ({ apiVersion: "tinkerbell.org/v1alpha1", kind, metadata: { name }, spec });
  const items = [
    of("Template", { data }),
    of("Workflow", { templateRef: name, hardwareRef: machine }),
  ];
  const input = JSON.stringify({ apiVersion: "v1", kind: "List", items });
  execFileSync("kubectl", ["apply", "-f", "-"], { input });
};

const browser = await open(url, library, folder);
const [now, story] = [await browser.newPage(), await browser.newPage()];
// Waits until the element with the ID `part` contains all `words`, in any order.
const shows = async (page, part, ...words) => {
  const said = ([id, all]) => {
    const text = document.getElementById(id)?.textContent ?? "";
    return all.every((word) => text.includes(word));
  };
  try {
    await page.waitForFunction(said, [part, words]);
  } catch {
    const text = await page.textContent(`#${part}`);
    throw new Error(`${page.url()}: #${part} never says ${JSON.stringify(words)}, but: ${text}`);
  }
};
// Waits until the progress bar in the element with the ID `part` is at `percent` or more.
const reaches = (page, part, percent) => page.waitForFunction(
  ([id, least]) => (document.querySelector(`#${id} progress`)?.value ?? 0) >= least,
  [part, percent],
);
const look = async (name) => {
  await browser.look(now, `watching-now-${name}`);
  await browser.look(story, `watching-machine-${name}`);
};

let working;
try {
  await browser.claim(now, code, "correct horse");
  await story.goto(`${url}/machines/${machine}`);
  for (const page of [now, story]) {
    await page.waitForFunction(() => document.getElementById("live").textContent === "live");
    await page.evaluate(() => { window.loadedOnce = true; });
  }
  await shows(now, "rack", machine, "Ready");
  install("first", createHash("sha256").update(image).digest("hex"));
  await shows(now, "headline", "waiting");
  await shows(now, "progress", machine, "Waiting", "switch it on");
  await shows(story, "machine", "Waiting", "first");
  await look("waiting");

  working = spawn(agent[0], agent.slice(1), { stdio: "inherit" });
  for (const [at, share] of SHARES.slice(0, -1).entries()) {
    allow(share);
    const least = share - 10;
    await reaches(now, "progress", least);
    await reaches(story, "machine", least);
    await shows(now, "headline", "1 machine is installing");
    await shows(now, "progress", machine, "Installing", "stream-debian", "of 24M");
    await shows(now, "rack", "Installing", "%");
    await shows(story, "machine", "Installing", "stream-debian");
    await look(`installing-${at + 1}`);
  }
  allow(100);
  await shows(now, "headline", "1 machine is in service");
  await shows(now, "rack", machine, "In service");
  await shows(now, "progress", "Nothing is being installed");
  await shows(story, "machine", "In service");
  await shows(story, "history", "action stream-debian succeeded");
  await look("in-service");

  install("second", "0".repeat(64));
  await shows(now, "headline", `${machine} needs you`);
  await shows(now, "needs", "stream-debian failed", machine, "fix the cause, then retry it");
  await shows(now, "rack", machine, "Failed");
  await shows(now, "events", "stream-debian failed");
  await shows(now, "health", "needs you");
  await shows(story, "machine", "Failed", "stream-debian failed", "second");
  await shows(story, "history", "stream-debian failed");
  const [there, here] = [
    await now.textContent("#needs"), await story.textContent("#machine article"),
  ];
  browser.check(story, there.includes(here.trim()), `two reasons: ${there} and ${here}`);
  await look("failed");
  for (const page of [now, story]) {
    const once = await page.evaluate(() => window.loadedOnce === true);
    browser.check(page, once, "it was loaded anew");
  }
} catch (error) {
  browser.complaints.push(error.message);
} finally {
  working?.kill("SIGKILL");
  server.closeAllConnections();
  server.close();
  await browser.close();
}
end(browser.complaints);
