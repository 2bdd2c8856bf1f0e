//! Table of the access tokens of a box.

use jiff::Timestamp;
use serde_json::Value;
use status::access::AccessToken;
use status::plain;

use crate::table::Table;

/// Makes the table of tokens, each an [`AccessToken`] as JSON. A field of another form is empty.
pub fn table(tokens: &[Value]) -> Table {
    let mut table = Table::new(&["ID", "USER", "ROLE", "ENDS", "LAST USED"]);
    for token in tokens {
        let token: AccessToken = serde_json::from_value(token.clone()).unwrap_or_default();
        let text = |at: Timestamp, form: &str| at.strftime(form).to_string();
        let ends = token.until.map_or_else(|| "never".to_owned(), |at| text(at, "%Y-%m-%d"));
        let used = token.used.map(|at| text(at, "%Y-%m-%d %H:%M")).unwrap_or_default();
        let cells = [plain(&token.id), plain(&token.user), plain(&token.role()), ends, used];
        table.row(cells.map(Into::into));
    }
    table
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn a_token_has_its_role_its_end_and_its_last_use() {
        let tokens = [
            json!({ "id": "9f86d081884c", "user": "admin", "groups": ["system:masters"] }),
            json!({
                "id": "60303ae22b99",
                "user": "ci",
                "groups": ["tinbox:operator"],
                "until": "2027-01-01T00:00:00Z",
                "used": "2026-11-29T12:00:00Z",
            }),
        ];
        assert_eq!(
            super::table(&tokens).render(false),
            "ID             USER    ROLE       ENDS         LAST USED\n\
             9f86d081884c   admin   admin      never\n\
             60303ae22b99   ci      operator   2027-01-01   2026-11-29 12:00\n"
        );
    }
}
