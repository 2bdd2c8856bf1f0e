// A real browser claims a fresh box and sets it up: roles of the NICs, time zone and update hours,
// then the restart. None of these pages has a script.
//   setup.mjs URL CODE FOLDER PLAYWRIGHT
import { end, open } from "./browser.mjs";

const [url, code, folder, library] = process.argv.slice(2);
const browser = await open(url, library, folder);
const page = await browser.newPage();
const check = (good, what) => browser.check(page, good, what);
const next = () => page.click("main form button");
const role = (card) => page.inputValue(`[name="role.${card}"]`);
const mode = (card) => page.inputValue(`[name="mode.${card}"]`);
const choose = (name, value) => page.selectOption(`[name="${name}"]`, value);

try {
  await page.goto(`${url}/S/${code}`);
  await page.fill("#passphrase", "correct horse");
  await page.fill("#again", "correct horse");
  await next();
  await page.waitForURL(`${url}/setup/network`);
  check((await role("eth0")) === "management", "people are where the way to everywhere is");
  const rack = [await role("eth1"), await mode("eth1"), await page.inputValue('[name="own.eth1"]')];
  check(rack.join() === "provisioning,reserved,10.99.0.1/24", `machines have ${rack.join()}`);
  check((await page.locator("script").count()) === 0, "no script is needed");
  await browser.look(page, "setup-network");

  await choose("role.eth0", "provisioning");
  await choose("mode.eth0", "pool");
  await choose("role.eth1", "management");
  await next();
  const why = await page.textContent("[role=alert]");
  check(why.includes("type the last four digits"), `a pool for the owner's network: ${why}`);
  check((await role("eth0")) === "provisioning", "what was chosen stays in the form");
  await browser.look(page, "setup-network-wrong");
  await choose("role.eth0", "management");
  await choose("role.eth1", "provisioning");
  await next();
  await page.waitForURL(`${url}/setup/time`);

  await page.fill("#zone", "Berlin");
  await next();
  check((await page.textContent("[role=alert]")).includes("not a time zone"), "Berlin is no zone");
  await page.fill("#zone", "Europe/Berlin");
  await page.fill("#from", "02:00");
  await page.fill("#to", "05:00");
  await page.check('[name="restart"][value="ask"]');
  await browser.look(page, "setup-time");
  await next();
  await page.waitForURL(`${url}/setup/done`);
  check((await page.textContent("main")).includes("Plug a machine into eth1"), "what comes next");
  await browser.look(page, "setup-done");
  await next();
  check((await page.textContent("h1")) === "Restarting", "the box restarts");

  await page.goto(`${url}/box`);
  check(/CES?T, clock/.test(await page.textContent("main")), "times are the owner's at once");
  await page.goto(`${url}/setup/time`);
  check((await page.inputValue("#from")) === "02:00", "what was set is shown again");
} finally {
  await browser.close();
}
end(browser.complaints);
