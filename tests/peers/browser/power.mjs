// A real browser switches a machine by its BMC, and reads the BMC.
//   power.mjs URL CODE FOLDER PLAYWRIGHT
import { end, open } from "./browser.mjs";

const [url, code, folder, library] = process.argv.slice(2);
const browser = await open(url, library, folder);
const page = await browser.newPage();
const main = page.locator("main");
const press = (name) => main.getByRole("button", { name, exact: true }).click();
const follow = (name) => main.getByRole("link", { name, exact: true }).click();
const power = (state) => page.waitForFunction(
  (word) => {
    const terms = [...document.querySelectorAll("#machine dt")];
    return terms.some((it) => it.textContent === "Power" && it.nextSibling.textContent.startsWith(word));
  },
  state,
);

try {
  await browser.claim(page, code, "correct horse");
  await page.goto(`${url}/machines/nuc-01`);
  await power("off");
  await press("Switch on");
  await page.getByText("Power on is requested.").waitFor();
  await power("on");
  await browser.look(page, "power-on");

  // Data may be lost: the page shows the effect first.
  await follow("Switch off");
  await main.getByText("Data that the machine has not written yet is lost.").waitFor();
  await press("Switch off");
  await page.getByText("Power off is requested.").waitFor();
  await power("off");

  // Sensors and events as the BMC reports them, newest event first.
  await follow("BMC");
  await main.getByRole("heading", { name: "Sensors" }).waitFor();
  for (const cell of ["CPU_Temp", "Fan1", "12V"]) {
    await main.getByRole("cell", { name: cell, exact: true }).waitFor();
  }
  await main.getByRole("heading", { name: "Events" }).waitFor();
  const events = await main.locator('td[data-name="event"]').allTextContents();
  browser.check(page, events.length === 4, `events: ${JSON.stringify(events)}`);
  await browser.look(page, "power-bmc");

  await press("Let it blink for a minute");
  await main.getByText("nuc-01 blinks for a minute.").waitFor();
} catch (error) {
  browser.complaints.push(`${error.message}: ${page.url()}: ${await page.textContent("main")}`);
} finally {
  await browser.close();
}
end(browser.complaints);
