//! Manual: the pages of `docs/` for people who run a box, rendered to HTML at build time.
//!
//! Never: a request to another host, a script, a page for people who change the code.
//!
//! Enter at [`page`]; `build.rs` renders the pages.

mod anchor;

pub use anchor::anchor;

/// Page of the manual.
#[derive(Debug, PartialEq, Eq)]
pub struct Page {
    /// Path below `/help/`: `how-to/networks`.
    pub path: &'static str,
    /// Text of the first heading.
    pub title: &'static str,
    /// Content as HTML, with the first heading.
    pub html: &'static str,
}

include!(concat!(env!("OUT_DIR"), "/pages.rs"));

/// Path of the page that links to all other pages.
pub const MAP: &str = "map";

/// Returns the page at a path below `/help/`; `None` if there is none.
pub fn page(path: &str) -> Option<&'static Page> {
    PAGES.iter().find(|page| page.path == path)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::{MAP, PAGES, page};

    /// Limit of all pages together, compressed, in bytes.
    const BUDGET: usize = 150 << 10;

    #[test]
    fn the_manual_fits_its_budget() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        PAGES.iter().for_each(|page| encoder.write_all(page.html.as_bytes()).unwrap());
        let bytes = encoder.finish().unwrap().len();
        assert!(bytes <= BUDGET, "{bytes} bytes are more than {BUDGET}");
    }

    #[test]
    fn links_lead_to_pages_of_the_manual() {
        for from in PAGES {
            for link in from.html.split("href=\"").skip(1) {
                let link = link.split('"').next().unwrap_or_default();
                if link.starts_with("https://") {
                    continue;
                }
                let (path, heading) = link.split_once('#').unwrap_or((link, ""));
                let name = path.strip_prefix("/help/").unwrap_or(from.path);
                let to = page(name).unwrap_or_else(|| panic!("{}: {link}", from.path));
                let id = format!("id=\"{heading}\"");
                assert!(heading.is_empty() || to.html.contains(&id), "{}: {link}", from.path);
            }
        }
        let map = page(MAP).unwrap();
        let unlinked = |path: &str| !map.html.contains(&format!("href=\"/help/{path}\""));
        assert!(!PAGES.iter().any(|it| it.path != MAP && unlinked(it.path)));
    }

    #[test]
    fn pages_have_titles_and_neither_scripts_nor_images() {
        assert!(PAGES.len() > 30, "{} pages", PAGES.len());
        for page in PAGES {
            assert!(!page.title.is_empty(), "{}", page.path);
            assert!(!page.html.contains("<script") && !page.html.contains("<img"), "{}", page.path);
        }
    }
}
