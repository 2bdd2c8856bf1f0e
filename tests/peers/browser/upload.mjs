// A real browser uploads an OS image and installs a machine with it, with nothing but the page.
// Prints a line when the machine must be switched on again.
//   upload.mjs URL CODE FOLDER PLAYWRIGHT MAC IMAGE SHA256 DISK PATIENCE
// IMAGE is the path of the image. PATIENCE is the time limit of the boot and the installation, in
// milliseconds.
import { end, open } from "./browser.mjs";

const [url, code, folder, library, mac, image, sha256, disk, patience] = process.argv.slice(2);
const USER_DATA = `#cloud-config
phone_home:
  url: http://10.77.0.1:7080/phone-home
  post: [instance_id, hostname]
  tries: 10
`;
const browser = await open(url, library, folder);
const page = await browser.newPage();
const main = page.locator("main");
const shows = (part, words) => page.waitForFunction(
  ([id, text]) => document.getElementById(id)?.textContent.includes(text),
  [part, words],
  { timeout: Number(patience) },
);
const upload = async (checksum) => {
  await page.fill("#name", "debian-12");
  await page.fill("#distro", "debian");
  await page.fill("#version", "12");
  await page.fill("#checksum", checksum);
  await page.setInputFiles("#file", image);
  await main.getByRole("button", { name: "Upload", exact: true }).click();
};

try {
  await browser.claim(page, code, "correct horse");
  await page.goto(`${url}/images`);
  await main.getByRole("link", { name: "OS images that machines can install" }).click();
  await browser.look(page, "os-images-empty");
  await page.route("**/os-images/upload", (route) => route.abort());
  await upload(sha256);
  await main.getByText("The connection was lost, and nothing was stored.").waitFor();
  await page.unroute("**/os-images/upload");
  await page.evaluate(() => {
    window.bars = 0;
    new MutationObserver(() => { window.bars += document.querySelectorAll("progress").length; })
      .observe(document.documentElement, { childList: true, subtree: true });
  });
  await upload("0".repeat(64));
  await main.getByText("is not the expected checksum").waitFor();
  browser.check(page, await page.inputValue("#version") === "12", "the typed form is lost");
  browser.check(page, await page.evaluate(() => window.bars > 0), "an upload without progress");
  await upload(sha256);
  await main.getByText("on this box").waitFor();
  await main.getByRole("button", { name: "Add Ubuntu 24.04 LTS" }).click();
  await main.getByText("noble-server-cloudimg-amd64.img").waitFor();
  await main.getByRole("button", { name: "Delete ubuntu-24.04" }).click();
  await main.getByRole("button", { name: "Add Ubuntu 24.04 LTS" }).waitFor();
  await browser.look(page, "os-images");

  await page.goto(url);
  await shows("new", mac);
  await main.getByRole("link", { name: "Install…", exact: true }).first().click();
  await page.check('input[name="system"][value="image/debian-12"]');
  await page.fill("#name", "nuc1");
  await page.fill("#disk", disk);
  await main.getByText("User data", { exact: true }).click();
  await page.fill("#user_data", USER_DATA);
  await browser.look(page, "os-image-form");
  await main.getByRole("button", { name: "Erase the disk and install" }).click();
  await page.getByText("The installation is requested.").waitFor();
  console.log("requested");
  await shows("machine", "In service");
} catch (error) {
  browser.complaints.push(`${error.message}: ${page.url()}: ${await page.textContent("main")}`);
} finally {
  await browser.close();
}
end(browser.complaints);
