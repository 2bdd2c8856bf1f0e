// A real browser installs three unknown machines at once. Prints a line when the machines must be
// switched on again.
//   several.mjs URL CODE FOLDER PLAYWRIGHT SYSTEM DISK PATIENCE MAC…
// PATIENCE is the time limit of the boots and installations, in milliseconds.
import { end, open } from "./browser.mjs";

const [url, code, folder, library, system, disk, patience, ...macs] = process.argv.slice(2);
const browser = await open(url, library, folder);
const page = await browser.newPage();
const main = page.locator("main");
const shows = (part, words, times) => page.waitForFunction(
  ([id, text, count]) =>
    (document.getElementById(id)?.textContent ?? "").split(text).length - 1 === count,
  [part, words, times],
  { timeout: Number(patience) },
);

try {
  await browser.claim(page, code, "correct horse");
  for (const mac of macs) await shows("new", mac, 1);
  await browser.look(page, "several-new");
  await main.getByRole("link", { name: "Install several…" }).click();
  for (const mac of macs) await page.check(`input[type="checkbox"][value="${mac}"]`);
  await page.check(`input[name="system"][value="${system}"]`);
  await page.fill("#prefix", "nuc");
  await page.fill("#disk", disk);
  await browser.look(page, "several-form");
  await main.getByRole("button", { name: "Erase the disks and install" }).click();
  for (const name of ["nuc01", "nuc02", "nuc03"]) {
    await main.getByRole("link", { name, exact: true }).waitFor();
  }
  await browser.look(page, "several-requested");
  console.log("requested");
  await main.getByRole("link", { name: "Now", exact: true }).click();
  await shows("rack", "In service", macs.length);
  await browser.look(page, "several-in-service");
} catch (error) {
  browser.complaints.push(`${error.message}: ${page.url()}: ${await page.textContent("main")}`);
} finally {
  await browser.close();
}
end(browser.complaints);
