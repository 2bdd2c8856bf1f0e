// A real browser pairs a box with a management cluster by a pasted kubeconfig.
//   pair-page.mjs URL CODE FOLDER PLAYWRIGHT KUBECONFIG
import { readFileSync } from "node:fs";
import { end, open } from "./browser.mjs";

const [url, code, folder, library, kubeconfig] = process.argv.slice(2);
const browser = await open(url, library, folder);
const page = await browser.newPage();
const check = (good, what) => browser.check(page, good, what);
const text = readFileSync(kubeconfig, "utf8");

const pair = async (pasted) => {
  await page.goto(`${url}/cluster-api`);
  await page.fill("#pair-name", "fleet");
  await page.fill("#pair-kubeconfig", pasted);
  await page.click("form[action='/cluster-api/pair'] button");
};

try {
  await browser.claim(page, code, "correct horse");
  await page.goto(`${url}/cluster-api`);
  await browser.look(page, "cluster-api");

  await pair(text.replace('"admin"', '"another"'));
  const refused = await page.textContent("main");
  check(refused.includes("Not paired") && refused.includes("kubectl config view"), refused);

  await pair(text);
  await page.waitForURL(`${url}/cluster-api`);
  const shows = (all) => all.every((it) => document.getElementById("clusters").textContent.includes(it));
  await page.waitForFunction(shows, ["fleet", "ClusterAPIMissing"]);
  check(!(await page.content()).includes("client-key-data"), "the kubeconfig is on the page");
} catch (error) {
  browser.complaints.push(`${error.message}: ${await page.textContent("main")}`);
} finally {
  await browser.close();
}
end(browser.complaints);
