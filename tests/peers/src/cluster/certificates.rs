//! The certificates of a cluster that lives as long as a test.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};

/// Writes `ca.crt`, the server's `server.{crt,key}` for `address`, an administrator's
/// `admin.{crt,key}`, and the key `accounts.{key,pub}` that service accounts' tokens are signed
/// with.
///
/// # Errors
/// A file cannot be written.
pub fn write(folder: &Path, address: Ipv4Addr) -> Result<()> {
    let key = KeyPair::generate()?;
    let mut params = named(vec![], "peer", None)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    put(folder, "ca.crt", &params.self_signed(&key)?.pem())?;
    let issuer = Issuer::new(params, key);

    let names = vec![address.to_string(), "localhost".to_owned(), "kubernetes".to_owned()];
    let mut server = named(names, "kube-apiserver", None)?;
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    issue(folder, "server", server, &issuer)?;
    let mut admin = named(vec![], "peer-admin", Some("system:masters"))?;
    admin.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    issue(folder, "admin", admin, &issuer)?;

    let accounts = KeyPair::generate()?;
    put(folder, "accounts.key", &accounts.serialize_pem())?;
    put(folder, "accounts.pub", &accounts.public_key_pem())
}

fn named(names: Vec<String>, user: &str, group: Option<&str>) -> Result<CertificateParams> {
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, user);
    if let Some(group) = group {
        params.distinguished_name.push(DnType::OrganizationName, group);
    }
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    Ok(params)
}

fn issue(
    folder: &Path,
    name: &str,
    params: CertificateParams,
    issuer: &Issuer<'_, KeyPair>,
) -> Result<()> {
    let key = KeyPair::generate()?;
    let made = params.signed_by(&key, issuer)?;
    put(folder, &format!("{name}.crt"), &made.pem())?;
    put(folder, &format!("{name}.key"), &key.serialize_pem())
}

fn put(folder: &Path, name: &str, text: &str) -> Result<()> {
    let path = folder.join(name);
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}
