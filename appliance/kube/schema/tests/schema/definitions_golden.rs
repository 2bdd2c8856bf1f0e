//! Comparison with the answers of a real kube-apiserver v1.35 to CustomResourceDefinitions
//! (tests/golden/definitions.json). `tests/golden/record.py` records new answers.

use schema::{FieldError, crd};
use serde_json::{Value, json};

/// Cases whose answer differs from Kubernetes' intentionally, with the reason.
const OTHERWISE: [(&str, &str); 0] = [];

fn cases() -> Vec<Value> {
    let text = include_str!("../golden/definitions.json");
    serde_json::from_str(text).expect("the recorded cases are JSON")
}

fn answer(object: &Value, errors: &[FieldError], code: u16) -> Value {
    if errors.is_empty() {
        let stored = &object["status"]["storedVersions"];
        return json!({"code": code, "spec": object["spec"], "stored": stored});
    }
    let mut causes: Vec<[String; 3]> = errors
        .iter()
        .map(|error| [error.field.clone(), error.reason().to_owned(), error.body()])
        .collect();
    causes.sort();
    json!({"code": 422, "causes": causes})
}

fn create(definition: &Value) -> (Value, Vec<FieldError>, Vec<String>) {
    let mut object = definition.clone();
    let mut warnings = crd::prune(&mut object);
    crd::default(&mut object);
    crd::remember_storage_version(&mut object);
    let errors = crd::check(&object);
    if errors.is_empty() {
        warnings.extend(crd::warnings(&object, None));
        warnings.sort();
    }
    (object, errors, warnings)
}

fn with_warnings(mut answer: Value, warnings: Vec<String>) -> Value {
    if !warnings.is_empty() {
        answer["warnings"] = json!(warnings);
    }
    answer
}

fn update(old: &Value, new: &Value) -> Value {
    let (mut old, ..) = create(old);
    old["status"]["conditions"] = json!([{"type": "Established", "status": "True"}]);
    let mut new = new.clone();
    new["status"] = old["status"].clone();
    crd::default(&mut new);
    crd::remember_storage_version(&mut new);
    let errors = crd::check_update(&new, &old);
    answer(&new, &errors, 200)
}

fn recorded(case: &Value) -> Value {
    let answer = &case["answer"];
    if let Some(object) = answer.get("object") {
        let stored = &object["status"]["storedVersions"];
        let mut outcome = json!({"code": answer["code"], "spec": object["spec"], "stored": stored});
        if let Some(warnings) = answer.get("warnings") {
            outcome["warnings"] = warnings.clone();
        }
        return outcome;
    }
    answer.clone()
}

#[test]
fn definitions_are_answered_as_by_a_real_server() {
    let mut wrong = Vec::new();
    let cases = cases();
    for case in &cases {
        let name = case["name"].as_str().unwrap_or_default();
        let ours = match case.get("update") {
            Some(new) => update(&case["crd"], new),
            None => {
                let (object, errors, warnings) = create(&case["crd"]);
                if errors.is_empty() {
                    crd::CustomResourceDefinition::parse(&object).expect("what is right parses");
                }
                with_warnings(answer(&object, &errors, 201), warnings)
            }
        };
        let real = recorded(case);
        let listed = OTHERWISE.iter().any(|(listed, _)| *listed == name);
        if (ours != real) != listed {
            wrong.push(name);
            println!("{name}\n    real {real}\n    ours {ours}");
        }
    }
    assert!(wrong.is_empty(), "{} of {} answers differ", wrong.len(), cases.len());
    assert!(cases.len() > 120, "only {} cases were compared", cases.len());
}
