// A real browser for the tests here, which notes whatever it complains about.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

// How the pages are looked at: on a desk by day and by night, and on a phone. Each has a picture.
export const looks = [
  ["light", "light", 1280, 900],
  ["dark", "dark", 1280, 900],
  ["phone", "light", 390, 844],
  ["small", "dark", 360, 640],
];

// Milliseconds that anything may take on a busy machine.
export const PATIENCE = 120_000;

// A browser for the box at URL, driven by the library in the file LIBRARY, with pictures in FOLDER.
export const open = async (url, library, folder) => {
  const { chromium } = await import(pathToFileURL(library).href);
  const profile = mkdtempSync(join(tmpdir(), "browser-"));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: "/usr/bin/chromium",
    headless: true,
    timeout: PATIENCE,
    ignoreHTTPSErrors: true,
    args: [
      "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
      "--disable-background-networking", "--disable-component-update", "--disable-sync",
    ],
  });
  context.setDefaultTimeout(PATIENCE);
  const complaints = [];
  const newPage = async () => {
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
    return page;
  };
  const check = (page, good, what) => {
    if (!good) complaints.push(`${page.url()}: ${what}`);
  };
  // Pictures of a page, which must not be wider than its screen.
  const look = async (page, name) => {
    for (const [suffix, colorScheme, width, height] of looks) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height });
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      check(page, wide <= width, `it is ${wide} wide on a screen of ${width}`);
      await page.screenshot({ path: join(folder, `${name}-${suffix}.png`), fullPage: true });
    }
    await page.setViewportSize({ width: 1280, height: 900 });
  };
  const claim = async (page, code, passphrase) => {
    await page.goto(`${url}/S/${code}`);
    await page.fill("#passphrase", passphrase);
    await page.fill("#again", passphrase);
    await page.click("main button");
    await page.waitForURL(`${url}/`);
  };
  const close = async () => {
    await context.close();
    rmSync(profile, { recursive: true, force: true });
  };
  return { context, complaints, newPage, check, look, claim, close };
};

// Says what was complained about, and ends accordingly.
export const end = (complaints) => {
  for (const complaint of complaints) console.error(complaint);
  process.exit(complaints.length > 0 ? 1 : 0);
};
