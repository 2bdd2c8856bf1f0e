//! Tests origins that send almost nothing, their abandoned parts, and their effect on other
//! downloads.

use std::fs::{self, File};
use std::path::Path;
use std::sync::mpsc;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::*;

const WAIT: Duration = Duration::from_secs(59);

async fn refused(does: &[Behavior]) -> (String, usize) {
    let folder = tempfile::tempdir().unwrap();
    let origin = ScriptedOrigin::new(&file(), does);
    let cache = fake::cache(folder.path(), origin.clone()).unwrap();
    let error = get(&cache, &remote(right())).await.unwrap_err();
    (error.to_string(), origin.firsts().len())
}

#[tokio::test(start_paused = true)]
async fn an_origin_that_sends_single_bytes_holds_no_turn_for_ever() {
    let (error, attempts) = refused(&[Behavior::Trickles(WAIT)]).await;
    assert!(error.ends_with("it sent 1 B in 60 s, less than 1.0 MiB"), "{error}");
    assert_eq!(attempts, 6);
    // An origin that sends its few bytes at once, over a new connection each time, also fails.
    let (error, attempts) = refused(&[Behavior::Sends(1)]).await;
    assert!(error.ends_with("the connection broke"), "{error}");
    assert_eq!(attempts, 6);
}

#[tokio::test(start_paused = true)]
async fn a_slow_origin_is_not_given_up_while_it_brings_enough() {
    let folder = tempfile::tempdir().unwrap();
    let cut = [
        Behavior::Sends(20_000),
        Behavior::Later,
        Behavior::Later,
        Behavior::Later,
        Behavior::Later,
    ];
    let mut does = cut.to_vec();
    // Each attempt brings enough bytes, so the attempts after it are counted from the start again.
    does.extend([
        Behavior::Sends(19_000),
        Behavior::Later,
        Behavior::Later,
        Behavior::Later,
        Behavior::All,
    ]);
    let origin = ScriptedOrigin::new(&file(), &does);
    let cache = fake::cache(folder.path(), origin.clone()).unwrap();
    get(&cache, &remote(right())).await.unwrap();
    assert_eq!(origin.firsts().len(), 10);
}

fn parts(root: &Path) -> Vec<String> {
    let names = fs::read_dir(root.join("partial")).unwrap();
    names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn what_a_failed_download_left_makes_room_for_another() {
    let folder = tempfile::tempdir().unwrap();
    let does = [Behavior::Sends(7000), Behavior::Never, Behavior::All];
    let origin = ScriptedOrigin::new(&file(), &does);
    // With a budget of 0 percent, every new file evicts all files that may go.
    let cache = Cache::open(folder.path(), origin, 0, Arc::new(fake::LARGE)).unwrap();
    let lost = remote(None);
    get(&cache, &lost).await.unwrap_err();
    assert!(parts(folder.path()).contains(&lost.key()));
    let other = RemoteFile { url: "http://origin.example/other".to_owned(), checksum: None };
    let blob = get(&cache, &other).await.unwrap();
    assert_eq!(fs::read(blob.path).unwrap(), file());
    assert_eq!(parts(folder.path()), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_part_that_a_download_goes_on_with_stays() {
    let folder = tempfile::tempdir().unwrap();
    let origin =
        ScriptedOrigin::new(&file(), &[Behavior::Sends(7000), Behavior::Later, Behavior::All]);
    let cache = Cache::open(folder.path(), origin.clone(), 0, Arc::new(fake::LARGE)).unwrap();
    let running = cache.fetch(&remote(right())).await;
    let mut progress = running.clone();
    progress.state.wait_for(|state| state.progress.received == 7000).await.unwrap();
    cache.admit(1).unwrap();
    running.ended().await.unwrap();
    assert_eq!(origin.firsts(), [0, 7000, 7000]);
}

/// A folder that is slow to read must not block other tasks of the runtime. In this test the folder
/// has a pipe without a writer, whose reader blocks.
#[tokio::test]
async fn no_folder_is_read_where_others_wait() {
    let folder = tempfile::tempdir().unwrap();
    let cache = fake::cache(folder.path(), ScriptedOrigin::new(&file(), &[Behavior::All])).unwrap();
    let pipe = folder.path().join("origins").join(Digest::of(b"").hex());
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let (ask, mut asked) = tokio::sync::mpsc::channel::<()>(1);
    let (answer, answered) = mpsc::sync_channel(1);
    let other = tokio::spawn(async move {
        asked.recv().await;
        answer.send(()).unwrap();
    });
    let reader = std::thread::spawn(move || {
        // Opening succeeds as soon as the other end is read.
        let _writer = File::options().write(true).open(pipe).unwrap();
        ask.blocking_send(()).unwrap();
        answered.recv_timeout(PATIENCE)
    });
    get(&cache, &remote(right())).await.unwrap();
    other.await.unwrap();
    reader.join().unwrap().expect("the runtime waits for the folder");
}
