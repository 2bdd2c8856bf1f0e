//! `tinbox-image box`: builds the files to flash and to publish, from programs, kernel and
//! artifacts.

use std::fs;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use image::disk::{self, Inputs, Loader, RootTree};
use image::release::Release;
use image::{Arch, Budget, Error, box_image_budget, sbom};
use release::SecretKey;

/// Default time of the build: 2026-01-01, in seconds since 1970.
const EPOCH: u64 = 1_767_225_600;

#[derive(Debug, Args)]
pub struct Arguments {
    /// Processor of the box
    #[arg(long, value_enum, default_value = "x86_64")]
    arch: Processor,
    /// Version of the release
    #[arg(long, default_value = env!("CARGO_PKG_VERSION"))]
    release: String,
    /// Time of every file in the image, in seconds since 1970
    #[arg(long, env = "SOURCE_DATE_EPOCH", default_value_t = EPOCH)]
    epoch: u64,
    /// Kernel of the box, which the agent OS boots too
    #[arg(long)]
    kernel: PathBuf,
    /// GRUB as an EFI program [default: build it from --grub-modules]
    #[arg(long)]
    grub: Option<PathBuf>,
    /// Folder of GRUB's modules for the processor of --arch; not used with --grub
    #[arg(long, default_value = "/usr/lib/grub/x86_64-efi")]
    grub_modules: PathBuf,
    /// The tinboxd program
    #[arg(long)]
    tinboxd: PathBuf,
    /// Program to place beside tinboxd, for tests of updates
    #[arg(long)]
    beside: Option<PathBuf>,
    /// Folder of the files that the box serves to machines, made by artifacts.sh
    #[arg(long)]
    artifacts: PathBuf,
    /// Folder whose files are copied unchanged into the root file system of the box
    #[arg(long)]
    overlay: PathBuf,
    /// File with the secret key for signatures, made by `minisign -G -W`
    #[arg(long)]
    key: PathBuf,
    /// File of the public keys that the box accepts for updates [default: the public key of --key]
    #[arg(long)]
    update_keys: Option<PathBuf>,
    /// Build an image for emulated machines, in seconds: less compressed, outside the size budget,
    /// and with a kernel that skips its timer check
    #[arg(long)]
    quick: bool,
    /// Write the files to publish: compressed, with SBOM, checksums and signature. COMPONENTS is
    /// the list from components.sh
    #[arg(long, value_name = "COMPONENTS")]
    publish: Option<PathBuf>,
    /// Folder to write to
    #[arg(long)]
    out: PathBuf,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Processor {
    #[value(name = "x86_64")]
    X86_64,
    #[value(name = "aarch64")]
    Aarch64,
}

impl From<Processor> for Arch {
    fn from(processor: Processor) -> Self {
        match processor {
            Processor::X86_64 => Self::X86_64,
            Processor::Aarch64 => Self::Aarch64,
        }
    }
}

pub fn run(arguments: &Arguments) -> Result<(), Error> {
    let key = SecretKey::read(&arguments.key)?;
    let inputs = inputs(arguments, &key)?;
    let name = format!("tinbox-{}-{}", arguments.release, inputs.arch);
    let disk = disk::assemble(&inputs, &arguments.out, &name)?;
    let release =
        Release { inputs: &inputs, disk: &disk, folder: &arguments.out, name: &name, key: &key };
    let bundle = release.bundle()?;
    let mut made = vec![bundle, disk.image.with_added_extension("bmap")];
    if let Some(components) = &arguments.publish {
        let listed = fs::read_to_string(components)
            .map_err(|source| Error::Read { path: components.clone(), source })?;
        let document = sbom::document(&arguments.release, inputs.arch, &listed, components)?;
        made.push(release.sbom(&document)?);
        made.insert(0, release.compressed()?);
        release.sums(&made)?;
    } else {
        made.insert(0, disk.image.clone());
    }
    let wrong = |source| Error::Write { path: disk.root.clone(), source };
    fs::remove_file(&disk.root).map_err(wrong)?;
    let is_published = arguments.publish.is_some() && !arguments.quick;
    report(&made, is_published.then(|| box_image_budget(inputs.arch)))
}

/// Prints the sizes. A compressed image that is larger than `budget` bytes is an error.
fn report(made: &[PathBuf], budget: Option<u64>) -> Result<(), Error> {
    for path in made {
        let size =
            fs::metadata(path).map_err(|source| Error::Read { path: path.clone(), source })?.len();
        println!("{:>10}  {}", stdx::bytes(size), path.display());
    }
    match (made.first(), budget) {
        (Some(image), Some(budget)) => {
            Budget::measure("the box's image", &[image.as_path()], budget)?.check()
        }
        _ => Ok(()),
    }
}

fn inputs(arguments: &Arguments, key: &SecretKey) -> Result<Inputs, Error> {
    let arch = arguments.arch.into();
    let update_keys = match &arguments.update_keys {
        None => key.public().to_text(),
        Some(path) => {
            fs::read_to_string(path).map_err(|source| Error::Read { path: path.clone(), source })?
        }
    };
    let loader = match &arguments.grub {
        Some(made) => Loader::Made(made.clone()),
        None => Loader::Modules(arguments.grub_modules.clone()),
    };
    let root = RootTree {
        arch,
        version: arguments.release.clone(),
        tinboxd: arguments.tinboxd.clone(),
        beside: arguments.beside.clone(),
        artifacts: arguments.artifacts.clone(),
        overlay: arguments.overlay.clone(),
        update_keys,
        quick: arguments.quick,
    };
    Ok(Inputs { arch, epoch: arguments.epoch, kernel: arguments.kernel.clone(), loader, root })
}
