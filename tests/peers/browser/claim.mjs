// A real browser claims a running box and opens every page in all views. Any error of a page is a
// failure.
//   claim.mjs URL CODE FOLDER PLAYWRIGHT
import { end, open } from "./browser.mjs";

const [url, code, folder, library] = process.argv.slice(2);
const browser = await open(url, library, folder);
const page = await browser.newPage();
const check = (good, what) => browser.check(page, good, what);
const look = (name) => browser.look(page, name);
const fill = async (typed, one, other) => {
  await page.fill("#code", typed);
  await page.fill("#passphrase", one);
  await page.fill("#again", other);
  await page.click("main button");
};

try {
  await page.goto(`${url}/machines`);
  check(new URL(page.url()).pathname === "/S", "an unclaimed box shows its claim");
  await look("claim");
  const wrong = code === "000000" ? "000001" : "000000";
  await fill(wrong, "correct horse", "correct horse");
  const said = await page.textContent("[role=alert]");
  check(said.includes("this address: 19"), "a wrong code is counted");
  await look("claim-wrong");
  await page.goto(`${url}/S/${code.toLowerCase()}`);
  check((await page.inputValue("#code")) === code, "the link brings the code");
  await fill(code, "correct horse", "correct horse");
  await page.waitForURL(`${url}/`);
  await page.waitForFunction(() => document.getElementById("live").textContent === "live");
  const cookies = await browser.context.cookies();
  const [cookie] = cookies;
  check(cookies.length === 1 && cookie.httpOnly && cookie.secure, "the cookie is for no script");
  check(cookie.sameSite === "Strict", "the cookie is for this site");
  await look("now");
  for (const name of ["machines", "workflows", "network", "images", "cluster-api", "box", "help"]) {
    await page.goto(`${url}/${name}`);
    await look(name);
  }
  await page.goto(`${url}/machines`);
  const links = await page.locator("tbody a").count();
  if (links > 0) {
    await page.click("tbody a");
    await page.waitForURL(`${url}/machines/*`);
    await look("machine");
  }
  await page.click("header button");
  await page.waitForURL(`${url}/login`);
  await look("login");
  await page.fill("#passphrase", "wrong horse");
  await page.click("main button");
  check((await page.textContent("[role=alert]")).includes("Wrong passphrase"), "no other one");
  await page.fill("#passphrase", "correct horse");
  await page.click("main button");
  await page.waitForURL(`${url}/`);
} finally {
  await browser.close();
}
end(browser.complaints);
