// A real browser for these tests, which collects the errors of its pages.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

// Views of a page: name, color scheme, width and height. Each view gets a screenshot.
export const looks = [
  ["light", "light", 1280, 900],
  ["dark", "dark", 1280, 900],
  ["phone", "light", 390, 844],
  ["small", "dark", 360, 640],
];

// Maximum milliseconds of any operation on a busy machine.
export const PATIENCE = 120_000;

// Opens a browser for the box at `url`. `library` is the file of Playwright; screenshots go to
// `folder`.
export const open = async (url, library, folder) => {
  const { chromium } = await import(pathToFileURL(library).href);
  const contexts = [];
  const launch = async (more) => {
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
      ...more,
    });
    context.setDefaultTimeout(PATIENCE);
    contexts.push([context, profile]);
    return context;
  };
  const context = await launch({});
  const complaints = [];
  const newPage = async (session = context) => {
    const page = await session.newPage();
    page.on("console", (said) => {
      // The browser reports requests that the box refuses, and those that a test aborts, as
      // errors; the tests send some on purpose.
      const expected =
        /the server responded with a status of 4(03|22)|net::ERR_FAILED/.test(said.text());
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
  // Takes a screenshot of a page in each view. The page must not be wider than the screen.
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
  // Opens a page of a browser of its own, which has no session yet.
  const another = async () => newPage(await launch({}));
  // Opens a page without JavaScript, in the same session.
  const withoutScript = async () => {
    const plain = await launch({ javaScriptEnabled: false });
    await plain.addCookies(await context.cookies());
    return plain.newPage();
  };
  const close = async () => {
    for (const [opened, profile] of contexts) {
      await opened.close();
      rmSync(profile, { recursive: true, force: true });
    }
  };
  return { context, complaints, newPage, another, withoutScript, check, look, claim, close };
};

// Prints the collected errors, and exits with 1 if there are any.
export const end = (complaints) => {
  for (const complaint of complaints) console.error(complaint);
  process.exit(complaints.length > 0 ? 1 : 0);
};
