use std::net::Ipv4Addr;

use super::*;

const NONCE: Timestamp = Timestamp(0xfeed);
const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));

fn at(millis: u64) -> Timestamp {
    Timestamp((millis << 32) / 1000)
}

/// Returns the answer of a server that is 500 ms ahead, has a delay of 10 ms in each direction, and
/// needs 4 ms to answer.
fn answer() -> Packet {
    Packet {
        mode: Mode::Server,
        stratum: 2,
        root_delay: 3,
        root_dispersion: 5,
        origin: NONCE,
        receive: at(1510),
        transmit: at(1514),
        ..Packet::request(Timestamp::default())
    }
}

fn evaluated(packet: &Packet) -> Option<Result<Sample, Refusal>> {
    evaluate(&packet.encode(), NONCE, RequestTimes { sent: at(1000), received: at(1024) }, SERVER)
}

#[test]
fn offset_and_delay_are_the_four_times() {
    let sample = evaluated(&answer()).expect("an answer").expect("trusted");
    assert_eq!(sample.offset.to_string(), "+0.500 s");
    // Of 2^-32 s each, four times are not a whole number of nanoseconds.
    assert!((19_999..=20_001).contains(&sample.delay.as_micros()), "{:?}", sample.delay);
    assert_eq!((sample.report.stratum, sample.report.id), (2, [10, 0, 0, 1]));
    // 20 ms are 1,310 of 65,536 parts.
    assert!((1311..=1314).contains(&sample.report.root_delay), "{}", sample.report.root_delay);
}

#[test]
fn another_question_s_answer_is_none() {
    assert!(evaluated(&Packet { origin: Timestamp(1), ..answer() }).is_none());
    assert!(evaluated(&Packet { mode: Mode::Client, ..answer() }).is_none());
    assert!(
        evaluate(b"short", NONCE, RequestTimes { sent: at(0), received: at(0) }, SERVER).is_none()
    );
}

#[test]
fn who_does_not_know_is_not_believed() {
    let why = |packet: Packet| evaluated(&packet).expect("an answer").expect_err("a refusal");
    let kiss = why(Packet { stratum: 0, reference_id: *b"RATE", ..answer() });
    assert!(matches!(kiss, Refusal::Kiss(word) if word == "RATE"));
    let real = Packet { leap: Leap::Unsynchronized, stratum: 0, ..answer() };
    let kiss = why(Packet { reference_id: *b"DENY", ..real.clone() });
    assert!(matches!(kiss, Refusal::Kiss(word) if word == "DENY"), "as chrony sends it");
    for packet in [
        real,
        Packet { leap: Leap::Unsynchronized, ..answer() },
        Packet { stratum: 15, ..answer() },
        Packet { stratum: 16, ..answer() },
        Packet { root_dispersion: 17 << 16, ..answer() },
        Packet { transmit: Timestamp::default(), ..answer() },
    ] {
        assert!(matches!(why(packet), Refusal::Unsynchronized(_)));
    }
}

#[test]
fn one_liar_among_three_leads_nobody() {
    let sample = |offset: i64, delay: u64| Sample {
        offset: Offset(offset),
        delay: Duration::from_millis(delay),
        report: ServerReport { stratum: 1, at: at(0), ..ServerReport::default() },
    };
    let honest = [vec![sample(10, 5), sample(900, 80)], vec![sample(12, 4)]];
    let liar = vec![sample(1_000_000_000_000, 1)];
    let [first, second] = honest;
    let chosen = choose(&[first.clone(), liar, second]).expect("a sample");
    assert_eq!(chosen.offset, Offset(12));
    assert_eq!(choose(&[first]).expect("a sample").offset, Offset(10), "the shortest way");
    assert_eq!(choose(&[Vec::new()]), None);
}

#[tokio::test]
async fn nobody_s_silence_has_an_end() {
    let deaf = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = deaf.local_addr().unwrap();
    tokio::time::pause();
    let refusal = query(address).await.unwrap_err();
    assert!(matches!(refusal, Refusal::Silent(_)), "{refusal}");
}
