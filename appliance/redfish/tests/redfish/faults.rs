//! Faults of services: no power action on an unconfirmed state, no loop, no repeated login, and a
//! sentence for each.

use redfish::{BootRequest, BootTarget, Error, PowerRequest, PowerState};
use serde_json::{Value, json};
use stdx::Hint as _;

use crate::server::{Received, Response, Service};

const ROOT: &str = "/redfish/v1/";
const SYSTEM: &str = "/redfish/v1/Systems/1";
const SESSIONS: &str = "/redfish/v1/SessionService/Sessions";
const RESET: &str = "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset";
const READ: &str = "GET /redfish/v1/Systems/1";
const CHANGE: &str = "PATCH /redfish/v1/Systems/1";
const LOGIN: &str = "POST /redfish/v1/SessionService/Sessions";
const POWER: &str = "POST /redfish/v1/Systems/1/Actions/ComputerSystem.Reset";

fn system() -> Value {
    json!({
        "@odata.id": SYSTEM,
        "Id": "1",
        "PowerState": "Off",
        "Boot": { "BootSourceOverrideEnabled": "Disabled", "BootSourceOverrideTarget": "None" },
        "Actions": { "#ComputerSystem.Reset": {
            "target": RESET,
            "ResetType@Redfish.AllowableValues": ["On", "ForceOff", "ForceRestart"],
        } },
    })
}

/// Response of a service without faults. The password is `right`.
fn honest(request: &Received) -> Response {
    let (method, path) = request.line.split_once(' ').unwrap_or_default();
    match (method, path) {
        ("GET", ROOT) => Response::new(
            200,
            json!({
                "Systems": { "@odata.id": "/redfish/v1/Systems" },
                "Links": { "Sessions": { "@odata.id": SESSIONS } },
            }),
        ),
        ("POST", SESSIONS) if request.body.contains("right") => {
            Response::new(201, "{}").with("X-Auth-Token: token")
        }
        ("POST", SESSIONS) => Response::new(401, "{}"),
        _ if request.header("x-auth-token").is_empty()
            && request.header("authorization").is_empty() =>
        {
            Response::new(401, "{}")
        }
        ("GET", "/redfish/v1/Systems") => {
            Response::new(200, json!({ "Members": [{ "@odata.id": SYSTEM }] }))
        }
        ("GET", SYSTEM) => Response::new(200, system()).with("ETag: W/\"7\""),
        ("POST" | "PATCH", _) => Response::new(204, ""),
        _ => Response::new(404, "{}"),
    }
}

fn message(id: &str) -> Value {
    json!({ "error": { "@Message.ExtendedInfo": [{ "MessageId": id, "Message": "a message" }] } })
}

fn pxe() -> BootRequest {
    BootRequest { target: BootTarget::Pxe, persistent: false, efi: true }
}

#[tokio::test]
async fn a_wrong_password_is_sent_once_and_the_right_one_is_taken() {
    let service = Service::start(honest);
    let error = service.client("wrong").power().await.unwrap_err();
    assert!(matches!(error, Error::WrongPassword { .. }), "{error}");
    assert_eq!(service.received(LOGIN).len(), 1, "a BMC may lock the account");
    assert_eq!(service.client("right").power().await.unwrap(), PowerState::Off);
}

#[tokio::test]
async fn a_service_without_a_free_session_gets_http_basic_once() {
    for takes_basic in [true, false] {
        let service = Service::start(move |request| match request.line.as_str() {
            LOGIN => Response::new(503, message("Base.1.0.SessionLimitExceeded")),
            _ if !takes_basic && !request.header("authorization").is_empty() => {
                Response::new(401, "{}")
            }
            _ => honest(request),
        });
        let read = service.client("right").power().await;
        match takes_basic {
            true => assert_eq!(read.unwrap(), PowerState::Off),
            false => {
                let error = read.unwrap_err();
                assert!(matches!(error, Error::SessionLimit { .. }), "{error}");
                assert!(error.to_string().contains("no free session"), "{error}");
            }
        }
        assert_eq!(service.received(LOGIN).len(), 1);
    }
}

#[tokio::test]
async fn a_session_that_ended_is_replaced_once() {
    let mut reads = 0;
    let service = Service::start(move |request| {
        reads += u32::from(request.line == READ);
        match (request.line.as_str(), reads) {
            (READ, 2) => Response::new(401, "{}"),
            _ => honest(request),
        }
    });
    let client = service.client("right");
    for _ in 0..3 {
        assert_eq!(client.power().await.unwrap(), PowerState::Off);
    }
    assert_eq!(service.received(LOGIN).len(), 2);
}

#[tokio::test]
async fn a_service_that_accepts_the_login_and_refuses_every_request_ends_no_loop() {
    let service = Service::start(|request| match request.line.as_str() {
        READ => Response::new(401, "{}"),
        _ => honest(request),
    });
    let error = service.client("right").power().await.unwrap_err();
    assert!(matches!(error, Error::WrongPassword { .. }), "{error}");
    assert!(service.received(LOGIN).len() <= 2 && service.all().len() < 12);
}

#[tokio::test]
async fn a_version_is_sent_in_the_form_that_the_service_wants() {
    for wanted in ["\"7\"", "*", ""] {
        let mut boot = "None";
        let service = Service::start(move |request| match request.line.as_str() {
            CHANGE if request.header("if-match") != wanted => Response::new(412, "{}"),
            CHANGE => {
                boot = "Pxe";
                Response::new(204, "")
            }
            READ => {
                let mut system = system();
                system["Boot"]["BootSourceOverrideTarget"] = boot.into();
                // A service that wants any version sends none.
                let response = Response::new(200, system);
                if wanted == "*" { response } else { response.with("ETag: W/\"7\"") }
            }
            _ => honest(request),
        });
        service.client("right").set_boot(&pxe()).await.unwrap();
        assert!(service.received(CHANGE).len() <= 4, "{wanted}");
    }
}

#[tokio::test]
async fn a_setting_that_is_acknowledged_and_not_applied_is_an_error() {
    let service = Service::start(honest);
    let error = service.client("right").set_boot(&pxe()).await.unwrap_err();
    assert!(matches!(error, Error::NotApplied { .. }), "{error}");
    assert_eq!(service.received(CHANGE).len(), 1);
}

#[tokio::test]
async fn a_change_of_the_system_is_read_back_from_the_system() {
    // The settings resource of Lenovo has the boot order, and no override.
    let service = Service::start(|request| match request.line.as_str() {
        READ => {
            let mut system = system();
            let settings = json!({ "@odata.id": "/redfish/v1/Systems/1/Pending" });
            system["@Redfish.Settings"] = json!({ "SettingsObject": settings });
            Response::new(200, system)
        }
        "GET /redfish/v1/Systems/1/Pending" => {
            Response::new(200, json!({ "Boot": { "BootOrder": [] } }))
        }
        _ => honest(request),
    });
    let error = service.client("right").set_boot(&pxe()).await.unwrap_err();
    assert!(matches!(error, Error::NotApplied { .. }), "{error}");
    assert_eq!(service.received(CHANGE).len(), 1);
}

#[tokio::test]
async fn a_busy_service_is_asked_again_a_few_times() {
    for (busy_times, expected) in [(2, 3), (100, 4)] {
        let mut left = busy_times;
        let service = Service::start(move |request| match request.line.as_str() {
            POWER if left > 0 => {
                left -= 1;
                Response::new(503, message("Base.1.0.ServiceTemporarilyUnavailable"))
                    .with("Retry-After: 0")
            }
            _ => honest(request),
        });
        let done = service.client("right").set_power(PowerRequest::On).await;
        assert_eq!(done.is_ok(), busy_times == 2, "{done:?}");
        assert_eq!(service.received(POWER).len(), expected);
    }
}

#[tokio::test]
async fn an_action_without_an_answer_is_not_repeated() {
    let service = Service::start(|request| match request.line.as_str() {
        POWER => Response::new(0, ""),
        _ => honest(request),
    });
    // A reset of a machine that is off switches the machine on.
    for (sent, request) in [(1, PowerRequest::On), (2, PowerRequest::Reset)] {
        let error = service.client("right").set_power(request).await.unwrap_err();
        assert!(matches!(error, Error::Unconfirmed { .. }), "{error}");
        assert_eq!(service.received(POWER).len(), sent);
    }
}

#[tokio::test]
async fn a_reading_on_a_connection_that_the_service_closed_is_repeated_on_a_new_one() {
    let mut reads = 0;
    let service = Service::start(move |request| {
        reads += u32::from(request.line == READ);
        match (request.line.as_str(), reads) {
            (READ, 2) => Response::new(0, ""),
            _ => honest(request),
        }
    });
    let client = service.client("right");
    for _ in 0..2 {
        assert_eq!(client.power().await.unwrap(), PowerState::Off);
    }
    assert_eq!(service.received(READ).len(), 3);
}

#[tokio::test]
async fn a_task_that_fails_is_an_error_with_the_reason_of_the_service() {
    let service = Service::start(|request| match request.line.as_str() {
        POWER => Response::new(202, "{}").with("Location: /redfish/v1/Tasks/3"),
        "GET /redfish/v1/Tasks/3" => Response::new(
            200,
            json!({ "TaskState": "Exception", "Messages": [{ "Message": "no power budget" }] }),
        ),
        _ => honest(request),
    });
    let error = service.client("right").set_power(PowerRequest::On).await.unwrap_err();
    assert!(matches!(error, Error::TaskFailed { .. }), "{error}");
    assert!(error.to_string().contains("Exception"), "{error}");
}

#[tokio::test]
async fn no_login_goes_to_another_host() {
    let service = Service::start(|request| match request.line.as_str() {
        READ => Response::new(307, "").with("Location: http://203.0.113.9/redfish/v1/Systems/1"),
        _ => honest(request),
    });
    let error = service.client("right").power().await.unwrap_err();
    assert!(matches!(error, Error::Redirect { .. }), "{error}");
    assert!(error.to_string().contains("203.0.113.9"), "{error}");
}

#[tokio::test]
async fn resources_that_the_service_cannot_read_prevent_no_change_of_power() {
    let mut system = system();
    for name in ["VirtualMedia", "Storage", "Processors", "EthernetInterfaces"] {
        system[name] = json!({ "@odata.id": format!("{SYSTEM}/{name}") });
    }
    let broken = json!({ "@odata.id": "/redfish/v1/Broken" });
    system["Links"] = json!({ "ManagedBy": [broken], "Chassis": [broken] });
    system["@Redfish.Settings"] = json!({ "SettingsObject": broken });
    system["UUID"] = "A0".into();
    let service = Service::start(move |request| match request.line.as_str() {
        READ => Response::new(200, &system),
        line if line.starts_with("GET ") && honest(request).status == 404 => {
            Response::new(500, "{}")
        }
        _ => honest(request),
    });
    let client = service.client("right");
    client.set_power(PowerRequest::On).await.unwrap();
    assert_eq!(service.received(POWER).len(), 1);
    assert_eq!(client.inventory().await.unwrap().uuid, "a0");
    let learned = client.learned().unwrap();
    assert!(!learned.media && !learned.identify, "{learned:?}");
}

#[tokio::test]
async fn documents_that_are_none_are_errors_and_missing_keys_are_unknown() {
    for body in ["[]", "", "<html>busy</html>", &"[".repeat(5000), "{\"PowerState\": 7"] {
        let body = body.to_owned();
        let service = Service::start(move |request| match request.line.as_str() {
            READ => Response::new(200, &body),
            _ => honest(request),
        });
        let error = service.client("right").power().await.unwrap_err();
        assert!(matches!(error, Error::NotJson { .. }), "{error}");
        assert_eq!(service.received(READ).len(), 1);
    }
    let service = Service::start(|request| match request.line.as_str() {
        READ => Response::new(200, json!({ "PowerState": 7, "Actions": [], "Boot": null })),
        _ => honest(request),
    });
    let client = service.client("right");
    assert_eq!(client.power().await.unwrap(), PowerState::Unknown);
    let error = client.set_power(PowerRequest::Cycle).await.unwrap_err();
    assert!(matches!(error, Error::Changing { .. }), "{error}");
    assert_eq!(service.received(POWER).len(), 0, "no power action on an unknown state");
}

#[tokio::test]
async fn the_machine_is_the_only_physical_system_with_a_reset() {
    let reset = json!({ "#ComputerSystem.Reset": { "target": RESET } });
    let physical = json!({ "SystemType": "Physical", "PowerState": "On" });
    let mut switchable = physical.clone();
    switchable["Actions"] = reset.clone();
    let composed = json!({ "SystemType": "Composed", "PowerState": "Off", "Actions": reset });
    for (systems, expected) in [
        (vec![&composed], Some(PowerState::Off)),
        (vec![&composed, &physical], Some(PowerState::On)),
        (vec![&physical, &switchable, &composed], Some(PowerState::On)),
        (vec![&physical, &physical], None),
        (vec![&switchable, &switchable], None),
        (vec![&composed, &composed], None),
    ] {
        let path = |number: usize| format!("/redfish/v1/Systems/{number}");
        let members: Vec<Value> =
            (1..=systems.len()).map(|number| json!({ "@odata.id": path(number) })).collect();
        let systems: Vec<Value> = systems.into_iter().cloned().collect();
        let service = Service::start(move |request| {
            let number = request.line.strip_prefix("GET /redfish/v1/Systems/");
            match number.and_then(|text| text.parse::<usize>().ok()) {
                Some(number) => Response::new(200, &systems[number - 1]),
                None if request.line == "GET /redfish/v1/Systems" => {
                    Response::new(200, json!({ "Members": members }))
                }
                None => honest(request),
            }
        });
        let client = service.client("right");
        match expected {
            Some(state) => assert_eq!(client.power().await.unwrap(), state),
            None => {
                let error = client.set_power(PowerRequest::Off).await.unwrap_err();
                assert!(matches!(error, Error::SeveralSystems { .. }), "{error}");
                assert_eq!(error.to_string(), "the BMC has several systems: 1, 2");
                assert!(error.hint().is_some_and(|hint| hint.contains("systemName")));
            }
        }
    }
}
