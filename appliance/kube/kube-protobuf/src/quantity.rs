//! Syntax check of quantities (apimachinery, `pkg/api/resource/quantity.go`): a decimal number and
//! a suffix. Texts are not converted to the canonical form, which clients already write.

/// Maximum length of a quantity in bytes; a canonical quantity has about 20.
const MAX_BYTES: usize = 64;

/// Returns true if the text is a valid quantity, such as `500m` or `2Gi`.
pub(crate) fn is_quantity(text: &str) -> bool {
    if text.len() > MAX_BYTES {
        return false;
    }
    let rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    let end = rest.find(|sign: char| !sign.is_ascii_digit() && sign != '.').unwrap_or(rest.len());
    let (number, suffix) = rest.split_at(end);
    let dots = number.bytes().filter(|byte| *byte == b'.').count();
    number.len() > dots && dots <= 1 && is_suffix(suffix)
}

fn is_suffix(suffix: &str) -> bool {
    let units =
        ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    if units.contains(&suffix) {
        return true;
    }
    let Some(exponent) = suffix.strip_prefix(['e', 'E']) else { return false };
    let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::is_quantity;

    #[test]
    fn quantities() {
        for text in ["0", "1", "-1.5", "500m", "2Gi", "1e3", "1E-2", ".5", "5.", "+12E", "100k"] {
            assert!(is_quantity(text), "{text}");
        }
        for text in ["", "m", ".", "1.2.3", "1 Gi", "1GiB", "1e", "0x1", "e3", "--1", "1K"] {
            assert!(!is_quantity(text), "{text}");
        }
    }
}
