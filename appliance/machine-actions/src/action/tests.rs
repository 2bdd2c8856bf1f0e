use std::collections::BTreeSet;

use super::{ACTIONS, Action, Confirmation};

#[test]
fn each_action_has_a_word_of_its_own_and_whole_sentences() {
    let words: BTreeSet<&str> = ACTIONS.iter().map(|it| it.description().word).collect();
    assert_eq!(words.len(), ACTIONS.len());
    for action in ACTIONS {
        let row = action.description();
        assert_eq!(Action::named(row.word), Some(action));
        for text in [row.effect, row.done] {
            assert!(text.ends_with('.') && text.starts_with(char::is_uppercase), "{text:?}");
        }
        assert!(row.loss.is_empty() || row.loss.ends_with('.'), "{:?}", row.loss);
        assert!(!row.needs.is_empty(), "{}: who may?", row.word);
    }
    assert_eq!(Action::named("explode"), None);
}

#[test]
fn an_action_with_a_loss_is_confirmed() {
    for action in ACTIONS {
        let row = action.description();
        let unconfirmed = row.confirmation == Confirmation::None;
        assert!(row.loss.is_empty() || !unconfirmed, "{} loses data without a question", row.word);
    }
}

#[test]
fn the_role_operator_has_the_rights_of_every_action_and_the_role_viewer_of_none() {
    let roles = rbac::bootstrap::cluster_roles();
    let may = |role: &str, verb: &str, plural: &str, group: &str| {
        let role = roles.iter().find(|it| it["metadata"]["name"] == role).unwrap();
        let has = |list: &serde_json::Value, want: &str| {
            let mut items = list.as_array().unwrap().iter().filter_map(|it| it.as_str());
            items.any(|it| it == "*" || it == want)
        };
        let rules = role["rules"].as_array().unwrap();
        let mut of_objects = rules.iter().filter(|it| it["resources"].is_array());
        of_objects.any(|rule| {
            has(&rule["verbs"], verb)
                && has(&rule["resources"], plural)
                && has(&rule["apiGroups"], group)
        })
    };
    for action in ACTIONS {
        for (verb, kind) in action.description().needs {
            assert!(may("tinbox:operator", verb, kind.plural, kind.group), "{action:?}: {verb}");
            assert!(!may("tinbox:viewer", verb, kind.plural, kind.group), "{action:?}: {verb}");
        }
    }
}
