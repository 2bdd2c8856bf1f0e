//! Parses the forms of the first setup. Settings that a form does not contain keep their values.

use std::collections::HashMap;

use status::view::Role;

use super::{NicSetup, UpdateTimes};

/// Maximum length of a field in characters; a pool may have many ranges.
const FIELD_CHARS_MAX: usize = 4096;

type Fields = HashMap<String, String>;

/// Returns the trimmed text of a field; `None` if the form does not contain the field.
fn field(fields: &Fields, name: &str) -> Result<Option<String>, String> {
    let Some(text) = fields.get(name) else { return Ok(None) };
    let text = text.trim();
    let length = text.chars().count();
    if length > FIELD_CHARS_MAX {
        return Err(format!(
            "{name} has {length} characters, the limit is {FIELD_CHARS_MAX}; nothing was changed."
        ));
    }
    if text.chars().any(char::is_control) {
        return Err(format!("{name} has a character that is not text; nothing was changed."));
    }
    Ok(Some(text.to_owned()))
}

/// Returns the role with this name.
pub fn role(word: &str) -> Option<Role> {
    let all = [Role::Management, Role::Provisioning, Role::Both, Role::Unused];
    all.into_iter().find(|role| role.word() == word)
}

/// Returns the NICs with the changes of a form.
///
/// # Errors
/// A field is too long or has a control character. The error is a sentence for people.
pub fn nics(nics: &[NicSetup], fields: &Fields) -> Result<Vec<NicSetup>, String> {
    let read = |nic: &NicSetup| {
        let value_of = |what: &str| field(fields, &format!("{what}.{}", nic.name));
        // The page never shows digits that were typed before.
        let keeps = |what: &str, text: &String| what != "confirm" || !text.is_empty();
        let or = |what: &str, now: &str| {
            let text = value_of(what)?.filter(|text| keeps(what, text));
            Ok::<_, String>(text.unwrap_or_else(|| now.to_owned()))
        };
        let wanted = value_of("role")?.and_then(|word| role(&word));
        Ok(NicSetup {
            role: wanted.unwrap_or(nic.role),
            mode: or("mode", &nic.mode)?,
            own: or("own", &nic.own)?,
            pool: or("pool", &nic.pool)?,
            confirm: or("confirm", &nic.confirm)?.to_ascii_lowercase(),
            ..nic.clone()
        })
    };
    nics.iter().map(read).collect()
}

/// Returns the time zone and the hours of a form.
///
/// # Errors
/// A field is too long or has a control character. The error is a sentence for people.
pub fn times(fields: &Fields) -> Result<UpdateTimes, String> {
    let value_of = |name: &str| Ok::<_, String>(field(fields, name)?.unwrap_or_default());
    let (zone, from, to) = (value_of("zone")?, value_of("from")?, value_of("to")?);
    Ok(UpdateTimes { zone, from, to, ask: value_of("restart")? == "ask" })
}

#[cfg(test)]
mod tests {
    use super::{FIELD_CHARS_MAX, Fields, NicSetup, nics, times};

    fn fields(pairs: &[(&str, &str)]) -> Fields {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_field_that_is_too_long_is_refused_and_nothing_is_cut() {
        let pool: Vec<String> =
            (0..8).map(|net| format!("10.77.10{net}.100-10.77.10{net}.199")).collect();
        let pool = pool.join(", ");
        let nic = NicSetup { name: "eth1".into(), confirm: "ab01".into(), ..NicSetup::default() };
        let form =
            fields(&[("pool.eth1", &pool), ("confirm.eth1", ""), ("own.eth1", " 10.9.0.1 ")]);
        let read = nics(std::slice::from_ref(&nic), &form).unwrap();
        assert_eq!((read[0].pool.as_str(), read[0].own.as_str()), (pool.as_str(), "10.9.0.1"));
        assert_eq!(read[0].confirm, "ab01", "digits that were typed before stay");
        let long = "1".repeat(FIELD_CHARS_MAX + 1);
        for value in [long.as_str(), "10.0.0.1\n10.0.0.2"] {
            let error = nics(std::slice::from_ref(&nic), &fields(&[("pool.eth1", value)]));
            assert!(error.unwrap_err().starts_with("pool.eth1 has"));
            assert!(times(&fields(&[("zone", value)])).is_err());
        }
    }
}
