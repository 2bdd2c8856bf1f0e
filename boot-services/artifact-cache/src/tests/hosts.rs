//! Tests servers that never answer, beside a server that does.

use std::pin::Pin;

use futures_util::stream;
use stdx::testing::PATIENCE;

use super::*;

/// Origin in which one server has every file, and the others never answer.
struct Tarpits;

impl Origin for Tarpits {
    fn part<'a>(
        &'a self,
        url: &'a str,
        _: u64,
        _: Option<&'a str>,
    ) -> Pin<Box<dyn Future<Output = Result<Part, Refusal>> + Send + 'a>> {
        Box::pin(async move {
            if url.starts_with("http://tarpit.example") {
                std::future::pending::<()>().await;
            }
            let body = Box::pin(stream::iter([Ok(b"image".to_vec().into())]));
            Ok(Part { first: 0, total: Some(5), tag: None, digest: None, body })
        })
    }
}

#[tokio::test]
async fn a_server_that_never_answers_leaves_downloads_to_others() {
    let folder = tempfile::tempdir().unwrap();
    let cache = fake::cache(folder.path(), Arc::new(Tarpits)).unwrap();
    let of = |url: String| RemoteFile { url, checksum: None };
    for number in 1..=8 {
        let port = 80 + number;
        cache.fetch(&of(format!("http://tarpit.example:{port}/{number}"))).await;
    }
    let good = of("http://good.example/a".to_owned());
    let got = tokio::time::timeout(PATIENCE, get(&cache, &good)).await;
    assert_eq!(got.expect("another server gets a slot").unwrap().size, 5);
}
