// A page is open while the box restarts, and then shows the login without a click.
//   restart.mjs URL CODE FOLDER PLAYWRIGHT
// Prints `open` when the page is live, and expects the box to restart then.
import { end, open } from "./browser.mjs";

const [url, code, folder, library] = process.argv.slice(2);
const browser = await open(url, library, folder);
try {
  const page = await browser.newPage();
  await browser.claim(page, code, "correct horse");
  await page.waitForFunction(() => document.getElementById("live").textContent === "live");
  console.log("open");
  await page.waitForURL(`${url}/login`);
} catch (error) {
  browser.complaints.push(error.message);
} finally {
  await browser.close();
}
// Expected errors: the box is down for a time, and afterwards it does not know the session.
const expected = /net::ERR_|status of 401|EventSource/;
end(browser.complaints.filter((complaint) => !expected.test(complaint)));
