//! A NUC's webhook at `10.77.0.(100+N)` port 8090: an HTTP server that takes the requests of
//! Tinkerbell's Rufio (provider `rpc`) and controls the chassis. It shares no code with the box and
//! refuses a request without the right signature.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;
use stdx::testing::PATIENCE;

use crate::namespace::Namespace;
use crate::{BmcAccess, BootDevice, Error, Nuc};

/// Maximum bytes of a request.
const REQUEST_MAX: u64 = 64 << 10;

/// A running server, ended when dropped.
#[derive(Debug)]
pub struct Webhook {
    address: SocketAddr,
    rack: Namespace,
    stop: Arc<AtomicBool>,
}

impl Webhook {
    /// Starts the server of a NUC inside the rack's namespace. The secret of the signatures is the
    /// password of the NUC's BMC.
    pub fn start(nuc: &Arc<Nuc>, rack: &Namespace) -> Result<Self, Error> {
        let address = SocketAddr::from((nuc.bmc().address, BmcAccess::WEBHOOK_PORT));
        let listener = rack.enter(|| TcpListener::bind(address))?;
        let listener = listener.map_err(Error::io(format!("listen on {address}")))?;
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, nuc) = (Arc::clone(&stop), Arc::clone(nuc));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                let nuc = Arc::clone(&nuc);
                // A client that went away ends its own connection only.
                std::thread::spawn(move || serve(stream, &nuc));
            }
        });
        Ok(Self { address, rack: rack.clone(), stop })
    }
}

impl Drop for Webhook {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // This connection wakes the thread, which then ends.
        let _ = self.rack.enter(|| TcpStream::connect(self.address).map(drop));
    }
}

/// Request with the headers that the signature needs.
struct Request {
    body: Vec<u8>,
    timestamp: String,
    signature: String,
}

fn serve(mut stream: TcpStream, nuc: &Nuc) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let request = read(&stream)?;
    let (status, answer) = if is_signed(&request, nuc.bmc().password.expose().as_bytes()) {
        ("200 OK", answer(&request.body, nuc))
    } else {
        ("401 Unauthorized", json!({ "error": { "code": 401, "message": "wrong signature" } }))
    };
    let body = answer.to_string();
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}

fn read(stream: &TcpStream) -> io::Result<Request> {
    let mut reader = BufReader::new(stream.take(REQUEST_MAX));
    let mut request =
        Request { body: Vec::new(), timestamp: String::new(), signature: String::new() };
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        let Some((name, value)) = line.split_once(':') else { continue };
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().map_err(io::Error::other)?,
            "x-rufio-timestamp" => value.clone_into(&mut request.timestamp),
            "x-rufio-signature-256" => value.clone_into(&mut request.signature),
            _ => {}
        }
    }
    reader.take(length).read_to_end(&mut request.body)?;
    Ok(request)
}

/// Checks the HMAC of the body followed by the timestamp, with SHA-256.
fn is_signed(request: &Request, secret: &[u8]) -> bool {
    let Ok(mut hmac) = Hmac::<Sha256>::new_from_slice(secret) else { return false };
    hmac.update(&request.body);
    hmac.update(request.timestamp.as_bytes());
    let expected = hmac.finalize().into_bytes();
    let expected = format!("sha256={}", stdx::hex(&expected));
    !request.timestamp.is_empty() && request.signature.split(',').any(|it| it == expected)
}

fn answer(body: &[u8], nuc: &Nuc) -> Value {
    let request: Value = serde_json::from_slice(body).unwrap_or_default();
    let mut answer = json!({ "id": request["id"], "host": request["host"] });
    match perform(&request, nuc) {
        Ok(result) => answer["result"] = result,
        Err(message) => answer["error"] = json!({ "code": 500, "message": message }),
    }
    answer
}

fn perform(request: &Value, nuc: &Nuc) -> Result<Value, String> {
    let text = |pointer: &str| request.pointer(pointer).and_then(Value::as_str);
    let done = match (text("/method"), text("/params/state"), text("/params/device")) {
        (Some("ping"), ..) => Ok(()),
        (Some("getPowerState"), ..) => return Ok(if nuc.bmc_power() { "on" } else { "off" }.into()),
        (Some("setPowerState"), Some("on"), _) => nuc.bmc_power_on(),
        (Some("setPowerState"), Some("off"), _) => nuc.bmc_power_off(),
        (Some("setPowerState"), Some("soft"), _) => nuc.bmc_soft_off(),
        (Some("setPowerState"), Some("reset"), _) => nuc.bmc_reset(),
        (Some("setPowerState"), Some("cycle"), _) => {
            nuc.bmc_power_off().and_then(|()| nuc.bmc_power_on())
        }
        (Some("setBootDevice"), _, Some("pxe")) => nuc.bmc_boot(BootDevice::Network),
        (Some("setBootDevice"), _, Some("disk")) => nuc.bmc_boot(BootDevice::Disk),
        _ => return Err("the request is not supported".to_owned()),
    };
    done.map(|()| Value::from("done")).map_err(|error| stdx::chain(&error))
}
