//! Identification LED of one machine: a property of the system, else of its chassis.

use serde_json::{Value, json};

use crate::line::Turn;
use crate::{Document, Error, Quirks};

/// Property of newer services, true or false.
const LOCATION: &str = "/LocationIndicatorActive";
/// Property of older services: `Off`, `Lit` or `Blinking`.
const INDICATOR: &str = "/IndicatorLED";

/// Returns true if the resource has an identification LED.
pub fn is_in(resource: &Document) -> bool {
    resource.flag(LOCATION).is_some() || resource.text(INDICATOR).is_some()
}

/// Returns the properties to change; `None` if the resource has no LED.
fn change(resource: &Document, is_on: bool, quirks: &Quirks) -> Option<Value> {
    let state = match (is_on, quirks.steady_led) {
        (true, _) => "Blinking",
        (false, true) => "Lit",
        (false, false) => "Off",
    };
    match (resource.flag(LOCATION), resource.text(INDICATOR)) {
        (Some(_), _) => Some(json!({ "LocationIndicatorActive": is_on })),
        (None, Some(_)) => Some(json!({ "IndicatorLED": state })),
        (None, None) => None,
    }
}

/// Switches the LED on or off.
pub async fn set(
    turn: &mut Turn<'_>,
    name: &str,
    system: Document,
    is_on: bool,
) -> Result<(), Error> {
    let chassis = turn.state.places.get(name).and_then(|places| places.chassis.clone());
    let chassis = if is_in(&system) { None } else { turn.find(chassis).await? };
    let resource = chassis.filter(is_in).unwrap_or(system);
    match change(&resource, is_on, &turn.state.quirks) {
        Some(body) => turn.patch(&resource, &body).await,
        None => Err(Error::Missing { path: resource.path, what: "identification LED" }),
    }
}
