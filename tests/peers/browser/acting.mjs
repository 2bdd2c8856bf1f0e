// A real browser installs a machine, retries, cancels and dismisses, with nothing but the page. A
// real agent does the work. This program serves the image, or refuses it.
//   acting.mjs URL CODE FOLDER PLAYWRIGHT MAC TARGET AGENT [ARGUMENT…]
import { execFileSync, spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { end, open } from "./browser.mjs";

const [url, code, folder, library, mac, target, ...agent] = process.argv.slice(2);
const axe = join(dirname(createRequire(library).resolve("axe-core/package.json")), "axe.min.js");

const image = randomBytes(1 << 20);
// What the server does with a request: "send", "refuse" or "hold".
let mode = "refuse";
const server = createServer((request, response) => {
  if (mode === "refuse") {
    response.writeHead(404).end();
    return;
  }
  response.writeHead(200, { "content-length": image.length });
  if (request.method === "HEAD") response.end();
  else if (mode === "send") response.end(image);
  else response.write(image.subarray(0, 1 << 16));
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));

const apply = (items) => {
  const input = JSON.stringify({ apiVersion: "v1", kind: "List", items });
  execFileSync("kubectl", ["apply", "-f", "-"], { input });
};
const action = {
  name: "stream-image",
  image: "quay.io/tinkerbell/actions/image2disk:latest",
  timeout: 300,
  environment: {
    IMG_URL: `http://127.0.0.1:${server.address().port}/small.raw`,
    DEST_DISK: target,
    IMG_SHA256: createHash("sha256").update(image).digest("hex"),
  },
};
const tasks = [{ name: "os", worker: "{{.device_1}}", actions: [action] }];
const data = JSON.stringify({ version: "0.1", name: "small", global_timeout: 600, tasks });
apply([
  { apiVersion: "tinkerbell.org/v1alpha1", kind: "Template", metadata: { name: "small" },
    spec: { data } },
]);

const browser = await open(url, library, folder);
const page = await browser.newPage();
const check = (good, what) => browser.check(page, good, what);
// Waits until the element with the ID `part` contains all `words`, in any order.
const shows = async (part, ...words) => {
  const said = ([id, all]) => {
    const text = document.getElementById(id)?.textContent ?? "";
    return all.every((word) => text.includes(word));
  };
  try {
    await page.waitForFunction(said, [part, words]);
  } catch {
    const text = await page.textContent("main");
    throw new Error(`${page.url()}: #${part} never has ${JSON.stringify(words)}, but: ${text}`);
  }
};
// Takes screenshots, and checks the page with axe-core.
const look = async (name) => {
  await browser.look(page, `acting-${name}`);
  await page.evaluate(await (await import("node:fs/promises")).readFile(axe, "utf8"));
  const found = await page.evaluate(() => window.axe.run(document));
  for (const fault of found.violations) {
    const where = fault.nodes.map((node) => node.target.join(" ")).join(", ");
    check(false, `axe: ${fault.id}: ${fault.help}: ${where}`);
  }
};
// Presses Tab until the element with this name has the focus, then Enter.
const byKeyboard = async (name) => {
  for (let presses = 0; presses < 60; presses += 1) {
    await page.keyboard.press("Tab");
    const text = await page.evaluate(() => document.activeElement?.textContent?.trim());
    if (text === name) {
      await page.keyboard.press("Enter");
      return;
    }
  }
  throw new Error(`${page.url()}: the keyboard does not reach ${name}`);
};
const press = (name) => page.locator("main").getByRole("button", { name, exact: true }).click();
const follow = (name) => page.locator("main").getByRole("link", { name, exact: true }).click();

let working;
try {
  await browser.claim(page, code, "correct horse");
  await page.goto(`${url}/machines`);
  await look("machines-none");
  await page.fill("#mac", mac.toUpperCase().replaceAll(":", "-"));
  await press("Add");
  await look("form");
  // Every mistake at once, with the typed values.
  await page.check('input[name="system"][value="small"]');
  await page.fill("#name", "Nuc 1");
  await page.fill("#ssh_keys", "-----BEGIN OPENSSH PRIVATE KEY-----");
  await press("Erase the disk and install");
  await page.getByText("is not a valid name").waitFor();
  await page.getByText("This is a private key").waitFor();
  check(await page.isChecked('input[value="small"]'), "the system was forgotten");
  await look("form-mistakes");
  await page.fill("#name", "nuc-01");
  await page.fill("#ssh_keys", "");
  await press("Show the workflow");
  await page.locator("main").getByText(`"worker":"${mac}"`).waitFor();
  await look("form-workflow");
  await press("Erase the disk and install");
  await page.getByText("The installation is requested.").waitFor();
  check(page.url() === `${url}/machines/nuc-01?done=install`, "another page");
  await shows("machine", "Waiting");

  // The image is missing: the machine needs a person, who retries it from the card.
  working = spawn(agent[0], agent.slice(1), { stdio: "inherit" });
  await page.goto(`${url}/`);
  await shows("needs", "nuc-01 FAILED", "stream-image", "404");
  await look("now-failed");
  await follow("History");
  await follow("Workflow");
  await shows("actions", "failed", "stream-image", "404");
  await shows("workflow", "nuc-01", "small");
  await look("workflow-failed");
  await page.goto(`${url}/`);
  mode = "send";
  await press("Retry from stream-image");
  await page.getByText("The retry is requested.").waitFor();
  await shows("machine", "In service");
  await look("in-service");

  // The tabs of the machine.
  await follow("Hardware");
  await page.getByRole("cell", { name: "disk", exact: true }).first().waitFor();
  await look("hardware");
  await follow("YAML");
  await page.locator("main pre").getByText("kind: Hardware").waitFor();
  await look("yaml");
  await follow("Log");
  await shows("log", "");
  await look("log");
  await follow("History");

  // A machine in service is installed again only by its name.
  await follow("Install…");
  await page.check('input[name="system"][value="small"]');
  await page.fill("#typed", "nuc-02");
  await press("Erase the disk and install");
  await page.getByText("This machine is called nuc-01").waitFor();
  mode = "hold";
  await page.fill("#typed", "nuc-01");
  await press("Erase the disk and install");
  await shows("machine", "Installing");

  // A canceled workflow is no failure. The keyboard is enough.
  await page.getByRole("link", { name: "Cancel", exact: true }).waitFor();
  await byKeyboard("Cancel");
  await page.getByText("A disk that was being written does not boot.").waitFor();
  await look("confirm");
  await byKeyboard("Cancel");
  await page.getByText("The cancellation is requested.").waitFor();
  await shows("machine", "Canceled");
  await page.goto(`${url}/`);
  await shows("rack", "nuc-01", "Canceled");
  check(!(await page.textContent("#needs")).includes("nuc-01"), "a canceled workflow is a problem");
  await look("now-canceled");

  // Without JavaScript: start over, which fails, and dismiss the failure.
  mode = "refuse";
  const plain = await browser.withoutScript();
  await plain.goto(`${url}/machines/nuc-01`);
  await plain.getByRole("link", { name: "Start over", exact: true }).click();
  await plain.getByRole("button", { name: "Start over", exact: true }).click();
  await plain.getByText("The workflow is requested to start over.").waitFor();
  await shows("needs", "nuc-01 FAILED");
  await plain.goto(`${url}/`);
  await plain.getByRole("button", { name: "Dismiss", exact: true }).click();
  await plain.getByText("The problem is dismissed.").waitFor();
  await page.waitForFunction(() => !document.getElementById("needs").textContent.includes("nuc"));
  await shows("rack", "nuc-01", "Failed");
  await look("now-dismissed");
} catch (error) {
  browser.complaints.push(error.message);
} finally {
  working?.kill("SIGKILL");
  server.closeAllConnections();
  server.close();
  await browser.close();
}
end(browser.complaints);
