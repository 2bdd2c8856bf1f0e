use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::Bytes;
use axum::http::HeaderMap;
use futures_util::{StreamExt as _, stream};
use tokio::sync::mpsc;

use super::{FIELD_BYTES_MAX, Form, FormError, HEADER_BYTES_MAX, file_channel};

const FORM: &str = "--xyz\r\nContent-Disposition: form-data; name=\"code\"\r\n\r\n7KQ4M2\r\n\
    --xyz\r\nContent-Disposition: form-data; name=\"passphrase\"\r\n\r\n\r\n\
    --xyz\r\ncontent-disposition: form-data; name=\"file\"; filename=\"a.boxbak\"\r\n\
    Content-Type: application/octet-stream\r\n\r\nTINBOX\r\n--xy\r\n\r\n--xyz--\r\n";

fn headers(kind: &str) -> HeaderMap {
    [(axum::http::header::CONTENT_TYPE, kind.parse().unwrap())].into_iter().collect()
}

type Read = Result<(String, String, Vec<u8>), FormError>;

async fn read(kind: &str, body: &[u8], piece: usize) -> Read {
    let pieces: Vec<_> =
        body.chunks(piece).map(|it| Ok::<_, Infallible>(Bytes::copy_from_slice(it))).collect();
    let mut form = Form::of(&headers(kind), stream::iter(pieces))?;
    let code = form.field("code").await?;
    let passphrase = form.field("passphrase").await?;
    let (send, mut pieces) = mpsc::channel(1);
    let collecting = async {
        let mut file = Vec::new();
        while let Some(piece) = pieces.recv().await {
            file.extend(piece);
        }
        file
    };
    let (passed, file) = tokio::join!(form.pass("file", send), collecting);
    passed.map(|()| (code, passphrase, file))
}

#[tokio::test(start_paused = true)]
async fn a_form_that_stalls_is_cut() {
    let begin = Bytes::from(&FORM.as_bytes()[..100]);
    let pieces = stream::iter([Ok::<_, Infallible>(begin)]).chain(stream::pending());
    let kind = "multipart/form-data; boundary=xyz";
    let mut form = Form::of(&headers(kind), Box::pin(pieces)).unwrap();
    assert_eq!(form.field("code").await.unwrap(), "7KQ4M2");
    assert_eq!(form.field("passphrase").await, Err(FormError::Cut));
}

#[tokio::test]
async fn a_body_is_read_no_faster_than_its_file_is_taken() {
    let read = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&read);
    let begin = Bytes::from(FORM.split("TINBOX").next().unwrap());
    let endless = stream::repeat(Bytes::from_static(&[0; 1000]));
    let pieces = stream::iter([begin]).chain(endless).map(move |piece| {
        counted.fetch_add(1, Ordering::Relaxed);
        Ok::<_, Infallible>(piece)
    });
    let mut form = Form::of(&headers("multipart/form-data; boundary=xyz"), pieces).unwrap();
    for name in ["code", "passphrase"] {
        form.field(name).await.unwrap();
    }
    let (send, mut taken) = mpsc::channel(1);
    let taking = async {
        for _ in 0..10 {
            taken.recv().await.unwrap();
        }
    };
    tokio::select! {
        passed = form.pass("file", send) => panic!("{passed:?}"),
        () = taking => {}
    }
    let count = read.load(Ordering::Relaxed);
    assert!(count < 20, "{count} pieces were read, 10 were taken");
}

#[tokio::test]
async fn a_form_is_read_however_it_is_cut_into_pieces() {
    let want = ("7KQ4M2".to_owned(), String::new(), b"TINBOX\r\n--xy\r\n".to_vec());
    for piece in 1..=FORM.len() {
        for kind in ["multipart/form-data; boundary=xyz", "multipart/form-data; boundary=\"xyz\""] {
            assert_eq!(read(kind, FORM.as_bytes(), piece).await.unwrap(), want, "{piece}");
        }
    }
}

#[tokio::test]
async fn a_piece_may_be_longer_than_a_header() {
    let file = "x".repeat(5 * HEADER_BYTES_MAX);
    let form = FORM.replace("TINBOX\r\n--xy\r\n", &file);
    for piece in [1000, HEADER_BYTES_MAX, HEADER_BYTES_MAX + 1, 2 * HEADER_BYTES_MAX, form.len()] {
        let read = read("multipart/form-data; boundary=xyz", form.as_bytes(), piece).await;
        assert_eq!(read.unwrap().2.len(), file.len(), "pieces of {piece}");
    }
}

#[tokio::test]
async fn what_is_no_form_is_refused() {
    let kind = "multipart/form-data; boundary=xyz";
    let long = "x".repeat(71);
    for bad in [
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=",
        "multipart/form-data; boundary=a b",
        &format!("multipart/form-data; boundary={long}"),
        "multipart/form-data; boundary=other",
    ] {
        let refused = read(bad, FORM.as_bytes(), 100).await;
        assert_eq!(refused, Err(FormError::Shape), "{bad}");
    }
    for end in 0..FORM.len() - 10 {
        let refused = read(kind, &FORM.as_bytes()[..end], 100).await;
        assert!(refused.is_err(), "cut at {end}");
    }
    let swapped = FORM.replace("\"code\"", "\"passphrase\"");
    assert_eq!(read(kind, swapped.as_bytes(), 100).await, Err(FormError::Shape));
    let field = FORM.replace("7KQ4M2", &"7".repeat(FIELD_BYTES_MAX + 1));
    assert_eq!(read(kind, field.as_bytes(), 100).await, Err(FormError::Long));
    let head = FORM.replace("\r\n\r\n7", &"x".repeat(2 * HEADER_BYTES_MAX));
    assert_eq!(read(kind, head.as_bytes(), 100).await, Err(FormError::Long));
}

#[tokio::test]
async fn the_receiver_of_a_file_notices_a_cut() {
    for (body, whole) in [(FORM, true), (&FORM[..FORM.len() - 12], false)] {
        let body = stream::iter([Ok::<_, Infallible>(Bytes::from_static(body.as_bytes()))]);
        let kind = "multipart/form-data; boundary=xyz";
        let mut form = Form::of(&headers(kind), Box::pin(body)).unwrap();
        for name in ["code", "passphrase"] {
            form.field(name).await.unwrap();
        }
        let (sender, file) = file_channel();
        let file = file.collect::<Vec<_>>();
        let (passed, mut file) = tokio::join!(form.pass_whole("file", sender), file);
        assert_eq!(passed.is_ok(), whole);
        let last = file.pop().unwrap();
        assert_eq!(last.is_ok(), whole, "{last:?}");
    }
}
