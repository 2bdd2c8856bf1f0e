// A real browser shows the commands for Cluster API, and why a machine gets no Hardware, without a
// reload of the page.
//   cluster-page.mjs URL CODE FOLDER PLAYWRIGHT COMMANDS MACHINES
// COMMANDS is the file with the output of `tinbox capi init`, MACHINES the file with the objects to
// apply.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { end, open } from "./browser.mjs";

const [url, code, folder, library, commands, machines] = process.argv.slice(2);
const browser = await open(url, library, folder);
const page = await browser.newPage();
const check = (good, what) => browser.check(page, good, what);
const shows = (part, ...words) => page.waitForFunction(
  ([id, all]) => all.every((word) => document.getElementById(id)?.textContent.includes(word)),
  [part, words],
);

try {
  await page.goto(`${url}/cluster-api`);
  check(new URL(page.url()).pathname === "/S", "the page needs a session");
  await browser.claim(page, code, "correct horse");
  await page.goto(`${url}/cluster-api`);
  await page.waitForFunction(() => document.getElementById("live").textContent === "live");
  await page.evaluate(() => { window.loadedOnce = true; });
  const init = await page.textContent("#capi-init");
  const printed = readFileSync(commands, "utf8").trim();
  check(init.trim() === printed, `other commands: ${init} and ${printed}`);
  check((await page.textContent("#capi-pair")).startsWith("tinbox capi pair"), "no pairing");
  await shows("clusters", "No management cluster");
  await shows("cluster-machines", "No cluster has machines");

  execFileSync("kubectl", ["apply", "-f", machines]);
  await shows("clusters", "fleet", "KubeconfigMissing", "Secret fleet-kubeconfig");
  await shows("cluster-machines", "default/edge-1", "this box", "none", "NoHardware");
  await shows("cluster-machines", "0 of 2 Hardware can be used", "default/nuc1", "default/nuc2");
  await browser.look(page, "cluster-api-machines");
  check(await page.evaluate(() => window.loadedOnce === true), "it was loaded anew");
} catch (error) {
  browser.complaints.push(`${error.message}: ${await page.textContent("main")}`);
} finally {
  await browser.close();
}
end(browser.complaints);
