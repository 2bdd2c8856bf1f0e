//! Status of a workflow in the API, as far as scenarios use it.

use serde_json::Value;

/// A Workflow object of the API.
#[derive(Debug, Clone)]
pub struct WorkflowView(pub Value);

impl WorkflowView {
    /// Value of `status.state`; empty when missing.
    pub fn state(&self) -> &str {
        self.0.pointer("/status/state").and_then(Value::as_str).unwrap_or_default()
    }

    /// True in a final state.
    pub fn ended(&self) -> bool {
        matches!(self.state(), "SUCCESS" | "FAILED" | "TIMEOUT")
    }

    /// Names, states and messages of the actions, in order.
    pub fn actions(&self) -> Vec<(String, String, String)> {
        let text = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
        let tasks = self.0.pointer("/status/tasks").and_then(Value::as_array);
        tasks
            .into_iter()
            .flatten()
            .flat_map(|task| task["actions"].as_array().cloned().unwrap_or_default())
            .map(|action| (text(&action, "name"), text(&action, "state"), text(&action, "message")))
            .collect()
    }

    /// State of one action; empty if the workflow has no such action.
    pub fn action(&self, name: &str) -> String {
        let found = self.actions().into_iter().find(|(known, _, _)| known == name);
        found.map_or_else(String::new, |(_, state, _)| state)
    }

    /// Message of one action; empty if the workflow has no such action.
    pub fn message(&self, name: &str) -> String {
        let found = self.actions().into_iter().find(|(known, _, _)| known == name);
        found.map_or_else(String::new, |(_, _, message)| message)
    }
}
