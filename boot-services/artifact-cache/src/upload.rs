//! Files that a person sends to the box, instead of an origin on the network.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures_util::Stream;

use super::in_progress::{Download, State};
use super::origin::{Origin, Part, Refusal};
use super::remote_file::UPLOAD_SCHEME;
use super::{Blob, Cache, RemoteFile, download};
use crate::Error;

/// Host in the URL of an uploaded file.
const HOST: &str = "box";

/// Content of an upload. The last item of an upload that was cut off is an error, with the reason.
pub type UploadBody = Pin<Box<dyn Stream<Item = Result<Bytes, String>> + Send>>;

/// Returns the URL of the uploaded file `name`.
pub fn upload_url(name: &str) -> String {
    format!("{UPLOAD_SCHEME}{HOST}/{name}")
}

/// Origin with one body, for one attempt.
struct UploadOrigin(Mutex<Option<UploadBody>>);

impl Origin for UploadOrigin {
    fn part<'a>(
        &'a self,
        _url: &'a str,
        _first: u64,
        _tag: Option<&'a str>,
    ) -> Pin<Box<dyn Future<Output = Result<Part, Refusal>> + Send + 'a>> {
        let body = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let cut = || Refusal::Never("the upload was interrupted: repeat it".to_owned());
        let part = |body| Part { first: 0, total: None, tag: None, digest: None, body };
        Box::pin(async move { body.map(part).ok_or_else(cut) })
    }
}

impl Cache {
    /// Stores the file that a person sends, as if it had been downloaded from `remote`. The upload
    /// is among the downloads while it runs.
    ///
    /// # Errors
    /// The body ends with an error, is too slow, or does not match the checksum; another upload or
    /// download of the same file runs; or the cache has no space.
    pub async fn store(&self, remote: &RemoteFile, body: UploadBody) -> Result<Blob, Arc<Error>> {
        let (sender, state) = tokio::sync::watch::channel(State::default());
        let key = remote.key();
        let running = Download::new(state, self.0.layout.part_path(&key));
        let is_new = self.table(|table| {
            let is_new = !table.running.contains_key(&key);
            if is_new {
                table.failed.remove(&key);
                table.running.insert(key.clone(), (remote.clone(), running.clone()));
            }
            is_new
        });
        if !is_new {
            let reason = "it is being uploaded already".to_owned();
            return Err(Arc::new(remote.failed(reason, true)));
        }
        let (cache, remote) = (self.clone(), remote.clone());
        // A task, so that the entry of the upload ends even if the caller goes.
        tokio::spawn(async move {
            let origin = UploadOrigin(Mutex::new(Some(body)));
            let result = download::run(&cache, &origin, &remote, &sender).await.map_err(Arc::new);
            if result.is_err() {
                // Another upload begins again at the first byte.
                let _ = tokio::fs::remove_file(cache.0.layout.part_path(&key)).await;
            }
            // A failure is not remembered, because the caller reports it.
            cache.table(|table| table.running.remove(&key));
            sender.send_modify(|state| state.end(result));
        });
        running.ended().await
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use futures_util::stream;

    use super::{UploadBody, upload_url};
    use crate::{Cache, Checksum, Digest, RemoteFile, fake};

    const URL: &str = "upload://box/debian.qcow2";

    fn body(pieces: &[Result<&'static str, &str>]) -> UploadBody {
        let piece = |it: &Result<&'static str, &str>| {
            it.map(|text| Bytes::from_static(text.as_bytes())).map_err(str::to_owned)
        };
        Box::pin(stream::iter(pieces.iter().map(piece).collect::<Vec<_>>()))
    }

    fn cache(folder: &std::path::Path) -> Cache {
        let connector = hyper_util::client::legacy::connect::HttpConnector::new();
        fake::cache(folder, std::sync::Arc::new(crate::HttpOrigin::new(connector))).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn an_upload_is_stored_as_a_download_would_be() {
        let folder = tempfile::tempdir().unwrap();
        let cache = cache(folder.path());
        assert_eq!(upload_url("debian.qcow2"), URL);
        let wanted = RemoteFile { url: URL.to_owned(), checksum: None };
        let blob = cache.store(&wanted, body(&[Ok("disk "), Ok("image")])).await.unwrap();
        assert_eq!((blob.size, blob.digest), (10, Digest::of(b"disk image")));
        let checksum = Some(Checksum::Sha256(blob.digest));
        let known = RemoteFile { url: URL.to_owned(), checksum };
        assert_eq!(cache.digest(&known), Some(blob.digest));
        assert_eq!(cache.list()[0].origin, URL);
        assert!(cache.downloads().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_cut_or_wrong_upload_is_refused_and_a_lost_one_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let cache = cache(folder.path());
        let wanted = RemoteFile { url: URL.to_owned(), checksum: None };
        let error = cache.store(&wanted, body(&[Ok("disk"), Err("cut")])).await.unwrap_err();
        assert!(error.to_string().ends_with("the upload was interrupted: repeat it"), "{error}");
        let checksum = Some(Checksum::Sha256(Digest::of(b"another")));
        let other = RemoteFile { url: URL.to_owned(), checksum };
        let error = cache.store(&other, body(&[Ok("disk")])).await.unwrap_err();
        assert!(error.to_string().contains("not the expected checksum"), "{error}");
        let cut = RemoteFile { url: URL.to_owned(), ..other };
        cache.store(&cut, body(&[Ok("disk"), Err("cut")])).await.unwrap_err();
        assert!(cache.list().is_empty());
        for key in [wanted.key(), cut.key()] {
            assert!(!cache.0.layout.part_path(&key).exists(), "a part of it is on the disk");
        }
        let error = cache.fetch(&wanted).await.ended().await.unwrap_err();
        assert!(error.to_string().ends_with("upload it again"), "{error}");
        // The next upload succeeds, whatever the failed ones left.
        cache.store(&wanted, body(&[Ok("disk image")])).await.unwrap();
    }
}
