//! Tests of all methods on all types of disks, also with failures during an erase.

mod ata;
mod nvme;

use super::nvme::Abilities;
use super::nvme::Sanitize::{Block, Crypto, Overwrite};
use super::{Device, EraseOperation, Method, ata::Security, decide};

fn capable() -> Abilities {
    Abilities { format: true, sanitize: vec![Block, Crypto, Overwrite], ..Abilities::default() }
}

fn secure() -> Security {
    Security { supported: true, ..Security::default() }
}

#[test]
fn what_is_asked_for_is_done_or_refused() {
    let nvme = |abilities| Device::Nvme(abilities);
    let shared = Abilities { others: vec!["nvme0n2".to_owned()], ..capable() };
    let ata = Device::Ata(secure());
    let enhanced = Device::Ata(Security { enhanced: true, ..secure() });
    let crypto = Abilities { crypto_format: true, ..capable() };
    let other = Device::Other("a partition");
    for (method, device, expected) in [
        (Method::Zero, &other, Ok(EraseOperation::Zero)),
        (Method::Discard, &ata, Ok(EraseOperation::Discard)),
        (Method::NvmeFormat, &nvme(capable()), Ok(EraseOperation::Format { crypto: false })),
        (Method::NvmeFormat, &nvme(crypto), Ok(EraseOperation::Format { crypto: true })),
        (Method::NvmeFormat, &nvme(shared.clone()), Ok(EraseOperation::Format { crypto: false })),
        (
            Method::NvmeFormat,
            &nvme(Abilities { format_all: true, ..shared.clone() }),
            Err("Format NVM of its controller would erase nvme0n2 too"),
        ),
        (Method::NvmeFormat, &nvme(Abilities::default()), Err("its controller lacks Format NVM")),
        (Method::NvmeSanitize, &nvme(capable()), Ok(EraseOperation::Sanitize(Block))),
        (Method::NvmeSanitize, &nvme(shared), Err("Sanitize would erase nvme0n2 too")),
        (Method::NvmeSanitize, &nvme(Abilities::default()), Err("its controller lacks Sanitize")),
        (Method::NvmeSanitize, &ata, Err("it is an ATA disk, not an NVMe disk")),
        (Method::NvmeFormat, &other, Err("it is a partition, not an NVMe disk")),
        (Method::AtaSecureErase, &ata, Ok(EraseOperation::SecureErase { enhanced: false })),
        (Method::AtaSecureErase, &enhanced, Ok(EraseOperation::SecureErase { enhanced: true })),
        (Method::AtaSecureErase, &nvme(capable()), Err("it is an NVMe disk, not an ATA disk")),
        (Method::AtaSecureErase, &Device::Ata(Security::default()), Err("it has no ATA security")),
    ] {
        let decided = decide(method, device);
        let expected = expected.map(|way| (way, None)).map_err(str::to_owned);
        assert_eq!(decided, expected, "{method:?} {device:?}");
    }
}

#[test]
fn auto_takes_the_strongest_and_says_why_it_is_no_stronger() {
    let auto = |device| decide(Method::Auto, &device).unwrap();
    assert_eq!(auto(Device::Nvme(capable())), (EraseOperation::Sanitize(Block), None));
    let slow = Abilities { sanitize: vec![Overwrite], ..capable() };
    assert_eq!(auto(Device::Nvme(slow.clone())).0, EraseOperation::Format { crypto: false });
    let only = Abilities { format: false, ..slow };
    let (way, why) = auto(Device::Nvme(only));
    assert_eq!(way, EraseOperation::Sanitize(Overwrite));
    assert_eq!(why.unwrap(), "its controller lacks Format NVM");
    let (way, why) = auto(Device::Nvme(Abilities::default()));
    assert_eq!(way, EraseOperation::Zero);
    assert_eq!(why.unwrap(), "its controller lacks Sanitize; its controller lacks Format NVM");
    assert_eq!(
        auto(Device::Ata(secure())),
        (EraseOperation::SecureErase { enhanced: false }, None)
    );
    let (way, why) = auto(Device::Ata(Security { frozen: true, ..secure() }));
    assert_eq!(way, EraseOperation::Zero);
    assert!(why.unwrap().contains("switch the machine off and on"));
    let (way, why) = auto(Device::Other("a partition"));
    assert_eq!(way, EraseOperation::Zero);
    assert_eq!(why.unwrap(), "it is a partition, which has no erase command");
}
