//! Names of the provider. Under the two names of Cluster API Provider Tinkerbell (CAPT),
//! `clusterctl upgrade apply` replaces CAPT by the box.
//!
//! clusterctl merges definitions, and cannot remove the conversion webhook of CAPT: it drops the
//! `null` that would do so. The API server never calls that webhook, because the kinds have one
//! version.

/// First minor version of the box under the names of CAPT: later than each version of CAPT, because
/// clusterctl does not offer an earlier version.
const CAPT_MINOR: u64 = 100;
/// Release series of CAPT that the box can replace: `(major, minor, contract)`, as in the
/// `metadata.yaml` of v0.7.0. Their kinds have the only version v1beta1. The API server refuses the
/// box's definitions if a kind was stored in another version.
const CAPT_SERIES: [(u64, u64, &str); 3] =
    [(0, 5, "v1beta1"), (0, 6, "v1beta1"), (0, 7, "v1beta2")];

/// Infrastructure provider in the configuration of clusterctl.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provider {
    /// Provider of the box: `clusterctl init --infrastructure tinbox`.
    Tinbox,
    /// Replacement of CAPT under its name in clusterctl's own list of providers.
    CaptOfClusterctl,
    /// Replacement of CAPT under its name in CAPT's documentation.
    CaptOfDocumentation,
}

impl Provider {
    pub const ALL: [Self; 3] = [Self::Tinbox, Self::CaptOfClusterctl, Self::CaptOfDocumentation];

    /// Name in the configuration of clusterctl.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tinbox => "tinbox",
            Self::CaptOfClusterctl => "tinkerbell-tinkerbell",
            Self::CaptOfDocumentation => "tinkerbell",
        }
    }

    /// Value of the label of the provider's objects, and name of its package.
    pub fn label(self) -> String {
        format!("infrastructure-{}", self.name())
    }

    /// Namespace of the components.
    pub fn namespace(self) -> &'static str {
        if self.is_capt() { "capt-system" } else { "tinbox-system" }
    }

    /// Returns true for a replacement of CAPT.
    pub fn is_capt(self) -> bool {
        self != Self::Tinbox
    }

    /// Returns the version of the provider with its `v`, for a version of the box. The box 0.1.2
    /// is v0.101.2 as a replacement of CAPT.
    pub fn version(self, version: &str) -> String {
        let raised = || {
            let (minor, patch) = version.strip_prefix("0.")?.split_once('.')?;
            Some(format!("v0.{}.{patch}", minor.parse::<u64>().ok()?.checked_add(CAPT_MINOR)?))
        };
        let raised = if self.is_capt() { raised() } else { None };
        raised.unwrap_or_else(|| format!("v{version}"))
    }

    /// Returns the release series of the provider, for the series of the box. clusterctl looks up
    /// the installed version too, which may be CAPT's.
    pub fn series<'a>(self, boxes: &[(u64, u64, &'a str)]) -> Vec<(u64, u64, &'a str)> {
        let raised = |major| if self.is_capt() && major == 0 { CAPT_MINOR } else { 0 };
        let own = boxes.iter().map(|(major, minor, it)| (*major, minor + raised(*major), *it));
        CAPT_SERIES.into_iter().filter(|_| self.is_capt()).chain(own).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Provider;

    #[test]
    fn a_replacement_has_a_later_version_than_each_release_of_capt() {
        assert_eq!(Provider::Tinbox.version("0.1.2"), "v0.1.2");
        assert_eq!(Provider::CaptOfClusterctl.version("0.1.2"), "v0.101.2");
        assert_eq!(Provider::CaptOfClusterctl.version("1.4.0"), "v1.4.0");
    }

    #[test]
    fn the_series_of_a_replacement_are_those_of_capt_and_of_the_box() {
        let boxes = [(0, 1, "v1beta1"), (1, 0, "v1beta2")];
        assert_eq!(Provider::Tinbox.series(&boxes), boxes);
        let expected = [
            (0, 5, "v1beta1"),
            (0, 6, "v1beta1"),
            (0, 7, "v1beta2"),
            (0, 101, "v1beta1"),
            (1, 0, "v1beta2"),
        ];
        assert_eq!(Provider::CaptOfDocumentation.series(&boxes), expected);
    }
}
