//! Blocks, headings and links of a page.

/// A fenced block of a page, with its language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The word behind the fence.
    pub language: String,
    /// The number of its first line in the page, from 1.
    pub line: usize,
    /// The text, without the indentation of the fence.
    pub text: String,
}

/// Returns the fenced blocks of a page.
pub fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<(usize, Block)> = None;
    for (number, line) in text.lines().enumerate() {
        let indent = line.len() - line.trim_start().len();
        let fence = line.trim_start().strip_prefix("```");
        match (open.take(), fence) {
            (Some((_, block)), Some("")) => blocks.push(block),
            (Some((indent, mut block)), _) => {
                block.text.push_str(line.get(indent..).unwrap_or_default());
                block.text.push('\n');
                open = Some((indent, block));
            }
            (None, Some(language)) => {
                let language = language.to_owned();
                open = Some((indent, Block { language, line: number + 2, text: String::new() }));
            }
            (None, None) => {}
        }
    }
    blocks
}

/// Returns the lines of a page outside of blocks, with their numbers from 1.
fn prose(text: &str) -> Vec<(usize, &str)> {
    let mut inside = false;
    let mut lines = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            inside = !inside;
        } else if !inside {
            lines.push((number + 1, line));
        }
    }
    lines
}

/// Returns the anchors of a page's headings, as GitHub makes them.
pub fn anchors(text: &str) -> Vec<String> {
    let headings = prose(text).into_iter().filter_map(|(_, line)| {
        let title = line.trim_start_matches('#');
        (title.len() < line.len()).then(|| title.trim().to_owned())
    });
    headings.map(|title| anchor(&title)).collect()
}

fn anchor(title: &str) -> String {
    let kept = title.chars().filter(|char| char.is_alphanumeric() || "-_ ".contains(*char));
    kept.flat_map(char::to_lowercase).map(|char| if char == ' ' { '-' } else { char }).collect()
}

/// Returns the targets of a page's links and images, with the numbers of their lines.
pub fn links(text: &str) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    for (number, line) in prose(text) {
        // Text in backquotes is code.
        let plain: String = line.split('`').step_by(2).collect::<Vec<_>>().join("code");
        for rest in plain.split("](").skip(1) {
            let target = rest.split(')').next().unwrap_or_default();
            links.push((number, target.to_owned()));
        }
    }
    links
}

#[cfg(test)]
mod tests {
    use super::{anchors, blocks, links};

    #[test]
    fn a_block_in_a_list_loses_its_indentation() {
        let found = blocks("1. a\n\n   ```sh\n   make b\n   ```\n\n```toml\nc = 1\n```\n");
        let found: Vec<_> =
            found.iter().map(|it| (it.language.as_str(), it.line, it.text.as_str())).collect();
        assert_eq!(found, [("sh", 4, "make b\n"), ("toml", 8, "c = 1\n")]);
    }

    #[test]
    fn headings_have_anchors_and_blocks_have_none() {
        let text = "# A `b`, c\n```sh\n# d\n```\n## 4. Describe the machine\n";
        assert_eq!(anchors(text), ["a-b-c", "4-describe-the-machine"]);
    }

    #[test]
    fn links_and_images_have_targets() {
        let text = "a [b](c.md#d) `[e](f)`\n![g](h.png)\n```\n[i](j)\n```\n";
        assert_eq!(links(text), [(1, "c.md#d".to_owned()), (2, "h.png".to_owned())]);
    }
}
