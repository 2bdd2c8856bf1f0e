// A real browser at a running box: claims it, looks at every page in light, dark and phone size, and
// fails on whatever it complains about.
//   claim.mjs URL CODE FOLDER PLAYWRIGHT
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [url, code, folder, library] = process.argv.slice(2);
const { chromium } = await import(pathToFileURL(library).href);
const profile = mkdtempSync(join(tmpdir(), "browser-"));
const context = await chromium.launchPersistentContext(profile, {
  executablePath: "/usr/bin/chromium",
  headless: true,
  ignoreHTTPSErrors: true,
  args: [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
  ],
});
const complaints = [];
const page = await context.newPage();
page.on("console", (said) => {
  // What the browser itself says of our refusals is what we want of it.
  const expected = /the server responded with a status of 4(03|22)/.test(said.text());
  if (said.type() === "error" && !expected) complaints.push(`${page.url()}: ${said.text()}`);
});
page.on("pageerror", (error) => complaints.push(`${page.url()}: ${error.message}`));
page.on("request", (request) => {
  if (!request.url().startsWith(url) && !request.url().startsWith("data:")) {
    complaints.push(`asked elsewhere: ${request.url()}`);
  }
});

const check = (good, what) => {
  if (!good) complaints.push(`${page.url()}: ${what}`);
};
const looks = [
  ["light", "light", 1280, 900],
  ["dark", "dark", 1280, 900],
  ["phone", "light", 360, 640],
];
const look = async (name) => {
  for (const [suffix, colorScheme, width, height] of looks) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height });
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    check(wide <= width, `it is ${wide} wide on a screen of ${width}`);
    await page.screenshot({ path: join(folder, `${name}-${suffix}.png`), fullPage: true });
  }
};
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
  check((await page.textContent("[role=alert]")).includes("19 more"), "a wrong code is counted");
  await look("claim-wrong");
  await page.goto(`${url}/S/${code.toLowerCase()}`);
  check((await page.inputValue("#code")) === code, "the link brings the code");
  await fill(code, "correct horse", "correct horse");
  await page.waitForURL(`${url}/`);
  await page.waitForFunction(() => document.getElementById("live").textContent === "live");
  const cookies = await context.cookies();
  const [cookie] = cookies;
  check(cookies.length === 1 && cookie.httpOnly && cookie.secure, "the cookie is for no script");
  check(cookie.sameSite === "Strict", "the cookie is for this site");
  await look("now");
  for (const name of ["machines", "network", "box", "help"]) {
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
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.click("header button");
  await page.waitForURL(`${url}/login`);
  await look("login");
  await page.fill("#passphrase", "wrong horse");
  await page.click("main button");
  check((await page.textContent("[role=alert]")).includes("not the passphrase"), "no other one");
  await page.fill("#passphrase", "correct horse");
  await page.click("main button");
  await page.waitForURL(`${url}/`);
} finally {
  await context.close();
  rmSync(profile, { recursive: true, force: true });
}
for (const complaint of complaints) console.error(complaint);
process.exit(complaints.length > 0 ? 1 : 0);
