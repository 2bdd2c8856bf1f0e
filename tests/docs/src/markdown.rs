//! Blocks, headings and links of a page.

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, OffsetIter, Options, Parser, Tag, TagEnd};

/// A fenced block of a page, with its language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The word after the opening fence.
    pub language: String,
    /// The number of the block's first line in the page, from 1.
    pub line: usize,
    /// The text, without the indentation of the fence.
    pub text: String,
}

/// Returns the fenced blocks of a page.
pub fn blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut is_open = false;
    for (event, range) in parser(text) {
        match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language))) => {
                let (language, line) = (language.to_string(), line(text, range.start) + 1);
                blocks.push(Block { language, line, text: String::new() });
                is_open = true;
            }
            Event::End(TagEnd::CodeBlock) => is_open = false,
            Event::Text(part) if is_open => {
                blocks.iter_mut().last().into_iter().for_each(|block| block.text.push_str(&part));
            }
            _ => {}
        }
    }
    blocks
}

fn parser(text: &str) -> OffsetIter<'_> {
    Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter()
}

/// Returns the number of the line at an offset, from 1.
fn line(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// Returns the anchors of a page's headings.
pub fn anchors(text: &str) -> Vec<String> {
    let mut titles: Vec<String> = Vec::new();
    let mut is_open = false;
    for (event, _) in parser(text) {
        match event {
            Event::Start(Tag::Heading { .. }) => {
                titles.push(String::new());
                is_open = true;
            }
            Event::End(TagEnd::Heading(_)) => is_open = false,
            Event::Text(part) | Event::Code(part) if is_open => {
                titles.iter_mut().last().into_iter().for_each(|title| title.push_str(&part));
            }
            _ => {}
        }
    }
    titles.iter().map(|title| help::anchor(title)).collect()
}

/// Returns the targets of a page's links and images, with the numbers of their lines.
pub fn links(text: &str) -> Vec<(usize, String)> {
    let target = |(event, range): (Event<'_>, Range<usize>)| match event {
        Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
            Some((line(text, range.start), dest_url.to_string()))
        }
        _ => None,
    };
    parser(text).filter_map(target).collect()
}

/// Returns the spans of code in a page's text, outside of blocks, with the numbers of their lines.
pub fn spans(text: &str) -> Vec<(usize, String)> {
    let code = |(event, range): (Event<'_>, Range<usize>)| match event {
        Event::Code(code) => Some((line(text, range.start), code.to_string())),
        _ => None,
    };
    parser(text).filter_map(code).collect()
}

#[cfg(test)]
mod tests {
    use super::{anchors, blocks, links, spans};

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
    fn spans_are_outside_of_blocks() {
        let text = "a\n`b c` d\n\n```sh\n`e`\n```\n";
        assert_eq!(spans(text), [(2, "b c".to_owned())]);
    }

    #[test]
    fn links_and_images_have_targets() {
        let text = "a [b](c.md#d) `[e](f)`\n![g](h.png)\n```\n[i](j)\n```\n";
        assert_eq!(links(text), [(1, "c.md#d".to_owned()), (2, "h.png".to_owned())]);
    }
}
