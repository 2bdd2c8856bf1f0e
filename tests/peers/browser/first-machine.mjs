// A real browser installs the first machine of a new box, with nothing but the page: from the claim
// to the machine in service. Prints a line when the machine must be switched on again, and the
// number of clicks and seconds at the end.
//   first-machine.mjs URL CODE FOLDER PLAYWRIGHT MAC SYSTEM DISK PATIENCE
// PATIENCE is the time limit of the boot and the installation, in milliseconds.
import { end, open } from "./browser.mjs";

const [url, code, folder, library, mac, system, disk, patience] = process.argv.slice(2);
const browser = await open(url, library, folder);
const page = await browser.newPage();
let clicks = 0;
const click = async (role, name) => {
  await page.locator("main").getByRole(role, { name, exact: true }).first().click();
  clicks += 1;
};
const shows = (part, words) => page.waitForFunction(
  ([id, text]) => document.getElementById(id)?.textContent.includes(text),
  [part, words],
  { timeout: Number(patience) },
);

try {
  const began = Date.now();
  await browser.claim(page, code, "correct horse");
  clicks += 1;
  // The machine asked for an address, and has no Hardware.
  await shows("new", mac);
  await browser.look(page, "first-machine-new");
  await click("link", "Install…");
  await page.check(`input[name="system"][value="${system}"]`);
  await page.fill("#name", "nuc1");
  browser.check(page, await page.inputValue("#address") !== "", "no address is proposed");
  await page.fill("#disk", disk);
  clicks += 1;
  await browser.look(page, "first-machine-form");
  await click("button", "Erase the disk and install");
  await page.getByText("The installation is requested.").waitFor();
  await shows("machine", "switch it on");
  console.log("requested");
  await shows("machine", "Installing");
  await shows("machine", "In service");
  await browser.look(page, "first-machine-in-service");
  const seconds = Math.round((Date.now() - began) / 1000);
  console.log(`in service after ${clicks} clicks and ${seconds} s`);
} catch (error) {
  browser.complaints.push(`${error.message}: ${await page.textContent("main")}`);
} finally {
  await browser.close();
}
end(browser.complaints);
