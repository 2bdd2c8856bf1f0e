//! Report of the image cache for the status view.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use api::meta::ObjectKey;
use artifact_cache::eviction::{self, CachedFile, Space};
use artifact_cache::{Cache, Checksum, Digest, Progress, RemoteFile, shown};
use jiff::Timestamp;
use status::image::{Image, ImageState, Images};

use super::Mention;
use super::pins::Pin;

/// Returns all images: running downloads, missing files, and files in the cache.
pub fn report(cache: &Cache, mentions: &BTreeMap<ObjectKey, Mention>, pins: &[Pin]) -> Images {
    let users = Users::of(mentions);
    let (held, downloads) = (cache.list(), cache.downloads());
    let space = cache.space().unwrap_or(Space { capacity: 0, used: 0 });
    let mut items: Vec<Image> =
        downloads.iter().map(|(wanted, progress)| arriving(wanted, progress, cache)).collect();
    let running: BTreeSet<String> = downloads.iter().map(|(wanted, _)| wanted.key()).collect();
    let waiting = mentions.values().filter(|mention| !mention.ended);
    let mentioned = waiting.flat_map(|mention| mention.files.iter().cloned());
    let mut seen = running;
    for wanted in mentioned.chain(pins.iter().filter_map(Pin::wanted)) {
        if cache.digest(&wanted).is_none() && seen.insert(wanted.key()) {
            items.push(missing(&wanted, cache));
        }
    }
    for item in &mut items {
        item.pinned = pins.iter().any(|pin| pin.wanted().is_some_and(|it| is_of(item, &it)));
        item.workflows = users.of_item(|wanted| is_of(item, wanted));
        item.needed = users.need(|wanted| is_of(item, wanted));
    }
    let digests = users.digests(cache);
    let mut place = 0;
    for file in &held {
        let mut item = whole(file, &mut place);
        let is_it = |wanted: &RemoteFile| digests.get(&wanted.key()) == Some(&file.digest);
        item.workflows = users.of_item(is_it);
        items.push(item);
    }
    let warning = warning(space, &held);
    Images { capacity: space.capacity, used: space.used, warning, items }
}

/// Workflows with the files that they mention. The flag is true if the workflow is unfinished.
struct Users<'a>(Vec<(String, bool, &'a [RemoteFile])>);

impl<'a> Users<'a> {
    fn of(mentions: &'a BTreeMap<ObjectKey, Mention>) -> Self {
        let one = |(key, mention): (&ObjectKey, &'a Mention)| {
            (key.to_string(), !mention.ended, &*mention.files)
        };
        Self(mentions.iter().map(one).collect())
    }

    fn of_item(&self, is_it: impl Fn(&RemoteFile) -> bool) -> Vec<String> {
        let users = self.0.iter().filter(|(_, _, files)| files.iter().any(&is_it));
        users.map(|(name, ..)| name.clone()).collect()
    }

    /// Returns the digests of mentioned files in the cache, by key. Each file is looked up once.
    fn digests(&self, cache: &Cache) -> BTreeMap<String, Digest> {
        let mut digests = BTreeMap::new();
        for wanted in self.0.iter().flat_map(|(_, _, files)| *files) {
            if let Entry::Vacant(unknown) = digests.entry(wanted.key())
                && let Some(digest) = cache.digest(wanted)
            {
                unknown.insert(digest);
            }
        }
        digests
    }

    fn need(&self, is_it: impl Fn(&RemoteFile) -> bool) -> bool {
        self.0.iter().any(|(_, waits, files)| *waits && files.iter().any(&is_it))
    }
}

fn is_of(item: &Image, wanted: &RemoteFile) -> bool {
    item.origin == wanted.shown()
}

fn named(wanted: &RemoteFile) -> Image {
    let digest = match wanted.checksum {
        Some(Checksum::Sha256(digest)) => digest.to_string(),
        _ => String::new(),
    };
    Image { digest, origin: wanted.shown(), ..Image::default() }
}

fn arriving(wanted: &RemoteFile, progress: &Progress, cache: &Cache) -> Image {
    let state = if progress.received > 0 { ImageState::Fetching } else { ImageState::Waiting };
    // A failure counts until bytes arrive: a new attempt alone proves nothing.
    let failure = cache.failure(wanted).filter(|_| state == ImageState::Waiting);
    Image {
        state,
        message: failure.map(|error| stdx::chain(&error)).unwrap_or_default(),
        size: progress.total.unwrap_or(0),
        received: progress.received,
        bytes_per_second: progress.rate.unwrap_or(0),
        ..named(wanted)
    }
}

fn missing(wanted: &RemoteFile, cache: &Cache) -> Image {
    match cache.failure(wanted) {
        Some(error) => {
            let message = stdx::chain(&error);
            Image { state: ImageState::Failed, message, ..named(wanted) }
        }
        None => named(wanted),
    }
}

/// Returns the image of a complete file. `place` is the number of evictable files so far.
fn whole(file: &CachedFile, place: &mut u32) -> Image {
    let goes = if file.may_go() {
        *place += 1;
        *place
    } else {
        0
    };
    Image {
        digest: file.digest.to_string(),
        origin: shown(&file.origin),
        size: file.size,
        last_used: Timestamp::try_from(file.last_used).ok(),
        state: ImageState::Ready,
        received: file.size,
        pinned: file.pinned,
        needed: file.needed,
        in_use: file.in_use,
        goes,
        ..Image::default()
    }
}

/// Returns a warning if the cache's partition is nearly full, otherwise an empty text.
fn warning(space: Space, held: &[CachedFile]) -> String {
    let (percent, line) = (space.percent(), eviction::REFUSE_PERCENT);
    if percent >= line {
        let largest = eviction::largest(held);
        return format!(
            "the cache's partition is {percent} % full: no new file is fetched above {line} %; \
             the largest files: {largest}"
        );
    }
    if percent >= eviction::NOTICE_PERCENT {
        return format!(
            "the cache's partition is {percent} % full: above {line} % no new file is fetched"
        );
    }
    String::new()
}
