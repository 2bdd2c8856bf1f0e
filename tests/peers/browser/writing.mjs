// A real browser writes a template in two tabs, renders it for a machine, searches, and chooses
// colors, by mouse and by the keys of the pages.
//   writing.mjs URL CODE FOLDER PLAYWRIGHT
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { end, open } from "./browser.mjs";

const [url, code, folder, library] = process.argv.slice(2);
const axe = join(dirname(createRequire(library).resolve("axe-core/package.json")), "axe.min.js");

const browser = await open(url, library, folder);
const page = await browser.newPage();
const check = (good, what) => browser.check(page, good, what);
// Takes screenshots, and checks the page with axe-core.
const look = async (name) => {
  await browser.look(page, `writing-${name}`);
  await page.evaluate(await (await import("node:fs/promises")).readFile(axe, "utf8"));
  const found = await page.evaluate(() => window.axe.run(document));
  for (const fault of found.violations) {
    const where = fault.nodes.map((node) => node.target.join(" ")).join(", ");
    check(false, `axe: ${fault.id}: ${fault.help}: ${where}`);
  }
};
const press = (name) => page.locator("main").getByRole("button", { name, exact: true }).click();
const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);

try {
  await browser.claim(page, code, "correct horse");
  // A template of the library, with the address of the box in it.
  await page.goto(`${url}/templates`);
  await look("templates-none");
  await press("Add debian");
  await page.getByText("No mistake found.").waitFor();
  check((await page.inputValue("#text")).includes("10.99.0.1"), "another address of the box");
  await page.selectOption("#machine", "nuc-01");
  await press("Show as rendered for this machine");
  await page.getByText("Rendered for nuc-01").waitFor();
  await page.locator("pre").getByText("52:54:00:77:00:01").first().waitFor();
  await look("template-rendered");

  // Two tabs: the second one must not overwrite the change of the first.
  const second = await page.context().newPage();
  await second.goto(`${url}/templates/debian`);
  const text = await page.inputValue("#text");
  await page.fill("#text", text.replace("global_timeout", "timout"));
  await press("Save");
  await page.getByText("The template is saved.").waitFor();
  await page.locator(".card.bad").getByText("timout").waitFor();
  await look("template-mistakes");
  await second.fill("#text", text.replace("Debian", "Mine"));
  await second.getByRole("button", { name: "Save", exact: true }).click();
  await second.getByText("Another person changed template debian meanwhile.").waitFor();
  check((await second.inputValue("#text")).includes("Mine"), "the typed text was forgotten");
  await second.close();

  // Without a connection, the typed text stays.
  await page.context().setOffline(true);
  await page.fill("#text", text);
  await press("Save");
  await page.getByText("The box does not answer.").waitFor();
  check((await page.inputValue("#text")) === text, "the typed text was lost");
  await page.context().setOffline(false);
  // The browser reports the request that failed.
  const lost = browser.complaints.splice(0);
  check(lost.every((it) => it.includes("ERR_INTERNET_DISCONNECTED")), lost.join("; "));
  await press("Save");
  await page.getByText("No mistake found.").waitFor();

  // Search by its key, and pages by theirs.
  await page.goto(`${url}/images`);
  await page.keyboard.press("/");
  await page.keyboard.type("52:54:00:77:00:01");
  await page.keyboard.press("Enter");
  await page.waitForURL(`${url}/machines/nuc-01`);
  await page.keyboard.press("g");
  await page.keyboard.press("t");
  await page.waitForURL(`${url}/templates`);
  await page.keyboard.press("?");
  await page.waitForURL(`${url}/help#keys`);
  await look("help");
  await page.fill("#q", "e");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Templates" }).waitFor();
  await look("search");

  // Colors stay on every page, also without JavaScript.
  await page.emulateMedia({ colorScheme: "light" });
  const light = await background();
  await page.getByRole("button", { name: "Dark", exact: true }).click();
  await page.waitForURL(`${url}/search`);
  const dark = await background();
  check(light !== dark, "the colors are the same");
  await page.goto(`${url}/`);
  check((await background()) === dark, "the colors were forgotten");
  await look("now-dark");
  await page.emulateMedia({ colorScheme: "light" });
  await page.getByRole("button", { name: "Auto", exact: true }).click();
  await page.waitForURL(`${url}/`);
  check((await background()) === light, "the browser's colors are not back");
  await page.goto(`${url}/templates/debian`);
  await page.getByText("Delete this template").click();
  await page.fill("#name", "debian");
  await press("Delete");
  await page.waitForURL(`${url}/templates`);
  check(!(await page.textContent("main")).includes("Not ended"), "the template is still there");
} catch (error) {
  browser.complaints.push(error.message);
} finally {
  await browser.close();
}
end(browser.complaints);
