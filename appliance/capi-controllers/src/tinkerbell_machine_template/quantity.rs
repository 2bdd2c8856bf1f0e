//! Kubernetes quantities with a binary suffix (apimachinery `api/resource`), as far as the box
//! writes them.

/// Suffixes with their values, largest first.
const SUFFIXES: [(&str, u64); 4] =
    [("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)];

/// Returns the quantity for a number: the largest suffix that needs no fraction.
pub fn quantity(number: u64) -> String {
    let exact = SUFFIXES.iter().find(|(_, unit)| number >= *unit && number.is_multiple_of(*unit));
    match exact {
        Some((suffix, unit)) => format!("{}{suffix}", number / unit),
        None => number.to_string(),
    }
}

/// Returns the number of a quantity; `None` for a form that [`quantity`] does not return.
pub fn number(quantity: &str) -> Option<u64> {
    let digits = quantity.trim_end_matches(char::is_alphabetic);
    let (_, suffix) = quantity.split_at(digits.len());
    let unit = match suffix {
        "" => 1,
        _ => SUFFIXES.iter().find(|(name, _)| *name == suffix)?.1,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::{number, quantity};

    #[test]
    fn a_quantity_is_read_as_written() {
        let rows = [
            (0, "0"),
            (1023, "1023"),
            (1024, "1Ki"),
            (1536 << 10, "1536Ki"),
            (512 << 20, "512Mi"),
            (16 << 30, "16Gi"),
            (3 << 40, "3Ti"),
            (u64::MAX, "18446744073709551615"),
        ];
        for (value, text) in rows {
            assert_eq!(quantity(value), text);
            assert_eq!(number(text), Some(value));
        }
        for other in ["", "Gi", "1.5Gi", "4G", "100m", "-1", "18446744073709551615Ki", "1 Gi"] {
            assert_eq!(number(other), None, "{other}");
        }
    }
}
