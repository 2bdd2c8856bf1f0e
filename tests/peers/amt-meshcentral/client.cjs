// client.cjs LIBRARY CLIENT ADDRESS SCHEME USER PASSWORD COMMAND...
//
// Clients of Intel AMT in MeshCentral, whose scripts are in LIBRARY. `wsman` is the part of its
// server for WS-Management, `serial` the part of its page for serial-over-LAN. Prints one line of
// JSON for each command: {"value": ...} or {"error": ...}.

const crypto = require("crypto");
const fs = require("fs");
const net = require("net");
const path = require("path");
const tls = require("tls");
const vm = require("vm");

const [library, kind, address, scheme, user, password, ...commands] = process.argv.slice(2);
const isSecure = scheme === "https";
const ADDRESSING = "http://schemas.xmlsoap.org/ws/2004/08/addressing";
const WSMAN = "http://schemas.dmtf.org/wbem/wsman/1/wsman.xsd";
// Fields that firmware refuses in a Put, as in MeshCentral's server.
const READ_ONLY = [
  "BIOSLastStatus",
  "BootguardStatus",
  "OptionsCleared",
  "SecureBootControlEnabled",
  "UEFIHTTPSBootEnabled",
];

// The scripts log to standard output.
console.log = console.error;

function wsman() {
  const script = (name) => require(path.join(library, "amt", name));
  const port = isSecure ? 16993 : 16992;
  const options = [address, port, user, password, isSecure ? 1 : 0, null, null];
  const comm = script("amt-wsman-comm.js")(...options);
  // The certificate of the engine is self-signed and new for each test.
  comm.xtlsFingerprint = 0;
  const amt = script("amt.js")(script("amt-wsman.js")(comm));
  // Calls a function of the stack, whose last argument is the callback.
  const call = (name, ...given) =>
    new Promise((resolve, reject) => {
      const done = (_stack, _name, response, status) => {
        if (status === 200) resolve(response);
        else reject(new Error(`${name}: status ${status}`));
      };
      amt[name](...given, done);
    });
  const invoke = async (name, ...given) => (await call(name, ...given)).Body.ReturnValue;
  const boot = async (source) => {
    const settings = (await call("Get", "AMT_BootSettingData")).Body;
    READ_ONLY.forEach((name) => delete settings[name]);
    Object.assign(settings, { UseIDER: false, UserPasswordBypass: false, BIOSSetup: !source });
    const cleared = await invoke("CIM_BootConfigSetting_ChangeBootOrder", null);
    await call("Put", "AMT_BootSettingData", settings);
    const values = [cleared, await invoke("SetBootConfigRole", 1)];
    if (source) {
      const reference =
        `<Address xmlns="${ADDRESSING}">${ADDRESSING}</Address>` +
        `<ReferenceParameters xmlns="${ADDRESSING}"><ResourceURI xmlns="${WSMAN}">` +
        "http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/CIM_BootSourceSetting</ResourceURI>" +
        `<SelectorSet xmlns="${WSMAN}"><Selector Name="InstanceID">Intel(r) AMT: ${source}` +
        "</Selector></SelectorSet></ReferenceParameters>";
      values.push(await invoke("CIM_BootConfigSetting_ChangeBootOrder", reference));
    }
    return values;
  };
  const events = () =>
    new Promise((resolve) => {
      amt.GetMessageLog((_stack, records) => {
        resolve((records ?? []).map((it) => [it.Time.getTime() / 1000, it.Desc]));
      });
    });
  return {
    state: async () => (await call("Get", "CIM_AssociatedPowerManagementService")).Body.PowerState,
    power: (state) => invoke("RequestPowerStateChange", Number(state)),
    redirection: (state) => invoke("AMT_RedirectionService_RequestStateChange", Number(state)),
    boot,
    events,
    list: async (name) => {
      const items = await new Promise((resolve, reject) => {
        const done = (_stack, _name, found, status) =>
          status === 200 ? resolve(found) : reject(new Error(`${name}: status ${status}`));
        amt.Enum(name, done);
      });
      return items;
    },
    version: async () => comm.amtVersion,
    realm: async () => comm.digestRealm,
    end: () => comm.socket?.destroy(),
  };
}

// The relay of MeshCentral's server passes each message of a WebSocket to a TCP connection.
class Relay {
  static OPEN = 1;

  constructor(url) {
    const query = new URL(url).searchParams;
    const target = { host: query.get("host"), port: Number(query.get("port")) };
    const opened = () => {
      this.readyState = Relay.OPEN;
      this.onopen();
    };
    this.stream =
      query.get("tls") === "1"
        ? tls.connect({ ...target, rejectUnauthorized: false }, opened)
        : net.connect(target, opened);
    this.stream.on("data", (data) => this.onmessage({ data: new Uint8Array(data).buffer }));
    this.stream.on("error", (error) => console.error(error));
    this.stream.on("close", () => this.onclose());
  }

  send(buffer) {
    this.stream.write(Buffer.from(buffer));
  }

  close() {
    this.stream.end();
  }
}

function serial() {
  const hexMd5 = (text) => crypto.createHash("md5").update(text, "latin1").digest("hex");
  const location = { protocol: "http:", host: "relay", pathname: "/" };
  const page = { WebSocket: Relay, window: { location }, hex_md5: hexMd5 };
  const language = { Uint8Array, DataView, console, setInterval, clearInterval };
  const context = vm.createContext({ ...page, ...language });
  const run = (name) =>
    vm.runInContext(fs.readFileSync(path.join(library, "public/scripts", name), "utf8"), context);
  ["common-0.0.1.js", "amt-redir-ws-0.1.0.js"].forEach(run);
  let [shown, state, woken] = ["", 0, () => {}];
  const terminal = {
    protocol: 1,
    ProcessData: (text) => {
      shown += text;
      woken();
    },
    xxStateChange: (next) => {
      state = next;
      woken();
    },
  };
  const session = context.CreateAmtRedirect(terminal, "");
  // Waits until the terminal is in the state; the test ends a program that waits too long.
  const until = async (holds) => {
    while (!holds()) {
      await new Promise((resolve) => (woken = resolve));
    }
  };
  return {
    open: async () => {
      const port = isSecure ? 16995 : 16994;
      session.Start(address, port, user, password, isSecure ? 1 : 0);
      await until(() => state === 3 || state === 0);
      return state;
    },
    shown: async (end) => {
      await until(() => shown.endsWith(end) || state === 0);
      return shown;
    },
    type: async (text) => session.Send(`${text}\r`),
    end: () => session.Stop(),
  };
}

async function main() {
  const client = { wsman, serial }[kind]();
  for (const command of commands) {
    const [name, ...rest] = command.split("=");
    let answer;
    try {
      answer = { value: (await client[name](rest.join("="))) ?? null };
    } catch (error) {
      answer = { error: String(error) };
    }
    process.stdout.write(`${JSON.stringify(answer)}\n`);
  }
  client.end();
}

main();
