// Real browsers of an owner, an operator and a viewer: who may do what, and what each of them sees.
//   users.mjs URL CODE FOLDER PLAYWRIGHT KEY
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { end, open } from "./browser.mjs";

const [url, code, folder, library, key] = process.argv.slice(2);
const axe = join(dirname(createRequire(library).resolve("axe-core/package.json")), "axe.min.js");

const browser = await open(url, library, folder);
const owner = await browser.newPage();
const check = (good, what) => browser.check(owner, good, what);
// Takes screenshots, and checks the page with axe-core.
const look = async (page, name) => {
  await browser.look(page, `users-${name}`);
  await page.evaluate(await (await import("node:fs/promises")).readFile(axe, "utf8"));
  const found = await page.evaluate(() => window.axe.run(document));
  for (const fault of found.violations) {
    const where = fault.nodes.map((node) => node.target.join(" ")).join(", ");
    browser.check(page, false, `axe: ${fault.id}: ${fault.help}: ${where}`);
  }
};
const press = (page, name) =>
  page.locator("main").getByRole("button", { name, exact: true }).click();
const add = async (name, role, passphrase) => {
  await owner.goto(`${url}/users`);
  await owner.fill("#name", name);
  await owner.check(`input[value=${role}]`);
  await owner.fill("#passphrase", passphrase);
  await press(owner, "Add the user");
  await owner.getByRole("link", { name, exact: true }).waitFor();
};
const login = async (page, name, passphrase) => {
  await page.goto(`${url}/login`);
  await page.fill("#name", name);
  await page.fill("#passphrase", passphrase);
  await press(page, "Log in");
};
// Sends a form of the page's session, as a person who forges it would.
const forge = (page, path, fields) =>
  page.evaluate(async ([to, more]) => {
    const csrf = document.querySelector("input[name=csrf]").value;
    const body = new URLSearchParams({ csrf, ...more });
    return (await fetch(to, { method: "POST", body, redirect: "manual" })).status;
  }, [path, fields]);

try {
  await browser.claim(owner, code, "correct horse");
  await owner.goto(`${url}/box`);
  await owner.getByRole("link", { name: "Users and roles" }).click();
  await look(owner, "list");
  await add("jane", "operator", "jane's first words");
  await add("joe", "viewer", "joe's first words");

  // The viewer sees everything and can change nothing.
  const joe = await browser.another();
  await login(joe, "joe", "wrong words");
  await joe.getByText("Wrong name or passphrase.").waitFor();
  check((await joe.inputValue("#name")) === "joe", "the typed name was forgotten");
  await login(joe, "joe", "joe's first words");
  await joe.waitForURL(`${url}/`);
  await joe.goto(`${url}/machines/nuc-01`);
  check((await joe.locator("main button, main a.button").count()) === 0, "a viewer has a button");
  check((await forge(joe, "/machines/nuc-01/power-on", {})) === 403, "a viewer switches power");
  check((await forge(joe, "/users", { name: "x", role: "admin" })) === 403, "a viewer adds a user");
  for (const path of ["/users", "/audit", "/kubeconfig", "/machines/nuc-01/install"]) {
    await joe.goto(`${url}${path}`);
    await joe.getByRole("heading", { name: "Not allowed" }).waitFor();
  }
  await look(joe, "not-allowed");
  await joe.goto(`${url}/box`);
  check((await joe.locator("main form").count()) === 0, "the viewer's page of the box has forms");
  check((await joe.locator("#log").count()) === 0, "the viewer reads the log of the box");

  // The operator installs, and cannot touch users.
  const jane = await browser.another();
  await login(jane, "jane", "jane's first words");
  await jane.waitForURL(`${url}/`);
  await jane.goto(`${url}/machines/nuc-01`);
  await jane.locator("main").getByRole("link", { name: "Install…" }).waitFor();
  check((await forge(jane, "/users/joe/role", { role: "admin" })) === 403, "an operator promotes");
  await jane.locator("header").getByRole("link", { name: /jane/ }).click();
  await jane.fill("#keys", "not a key");
  await press(jane, "Save the keys");
  await jane.getByText('Line 1 is not a public key').waitFor();
  await jane.goto(`${url}/account`);
  await jane.fill("#keys", key);
  const saved = jane.waitForEvent("load");
  await press(jane, "Save the keys");
  await saved;
  check((await jane.inputValue("#keys")) === key, "the key is not there");
  await look(jane, "account");
  await jane.fill("#old", "jane's first words");
  await jane.fill("#new", "jane's second words");
  await jane.fill("#new-again", "jane's second words");
  await press(jane, "Change the passphrase");
  await jane.getByText("The passphrase is changed.").waitFor();
  await login(jane, "jane", "jane's second words");
  await jane.waitForURL(`${url}/`);

  // A new role counts in a page that is open.
  await joe.goto(`${url}/machines/nuc-01`);
  await owner.goto(`${url}/users`);
  await owner.getByRole("link", { name: "joe", exact: true }).click();
  await look(owner, "user");
  await owner.check("input[value=operator]");
  await press(owner, "Change the role");
  await joe.locator("main").getByRole("link", { name: "Install…" }).waitFor();

  // A user who was removed is out at once.
  await owner.fill("#typed", "joe");
  await press(owner, "Remove the user");
  await owner.waitForURL(`${url}/users`);
  await joe.waitForURL(`${url}/login`);
  await login(joe, "joe", "joe's first words");
  await joe.getByText("Wrong name or passphrase.").waitFor();

  // The audit log has everybody's changes.
  await owner.goto(`${url}/box`);
  await owner.getByRole("link", { name: /^Audit log/ }).click();
  const rows = (user) => owner.locator("tbody tr", { hasText: user });
  await rows("jane").filter({ hasText: "post /account/ssh-keys" }).first().waitFor();
  await rows("owner").filter({ hasText: "post /users/joe/remove" }).first().waitFor();
  await look(owner, "audit");
  await owner.fill("#filter", "joe");
  await press(owner, "Filter");
  await rows("joe").filter({ hasText: "post /machines/nuc-01/power-on" }).first().waitFor();
  const shown = await owner.locator("tbody tr").count();
  check((await rows("joe").count()) === shown, "the filter shows other records");

  // A token for a program: its download is the only copy.
  await owner.goto(`${url}/tokens`);
  await look(owner, "tokens");
  await owner.fill("#name", "ci");
  await owner.check("input[value=operator]");
  const [download] = await Promise.all([
    owner.waitForEvent("download"),
    press(owner, "Create, and download the kubeconfig"),
  ]);
  check(download.suggestedFilename() === "ci.kubeconfig", "the file has another name");
  await owner.goto(`${url}/tokens`);
  await rows("ci").filter({ hasText: "operator" }).waitFor();
  await owner.getByRole("button", { name: "Revoke the token of ci" }).click();
  await owner.waitForURL(`${url}/tokens`);
  check((await rows("operator").count()) === 0, "the token is still there");
} catch (error) {
  browser.complaints.push(error.message);
} finally {
  await browser.close();
}
end(browser.complaints);
