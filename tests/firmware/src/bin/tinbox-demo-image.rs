//! `make demo BOX=image`: a whole installation on a virtual rack, by a box that boots from its own
//! disk image, with live output.

use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context as _;
use firmware::Image;
use firmware::image_rack::{Claimed, ImageRack, output, readable};
use scenarios::{
    Credentials, DemoArguments, OWNER_KEY, RunningRack, USER_DATA, install_all, require_root, say,
    show, wait_for_enter,
};

fn main() -> ExitCode {
    let about = "Install Debian on a virtual NUC, by a box that boots from its own disk image";
    scenarios::exit(run(&DemoArguments::read(about)))
}

fn run(arguments: &DemoArguments) -> anyhow::Result<()> {
    require_root("sudo make demo BOX=image")?;
    say("the disk image of the box, from the programs of this checkout");
    let folder = qemu::out_dir().join("image");
    let image = Image::made(&folder).context("cannot make the disk image of the box")?;
    println!("{}", image.path.display());
    say(&format!("{}; the box has two NICs: office and rack", arguments.words()));
    let started = Instant::now();
    let rack = ImageRack::start(&image, arguments.rack("demo-image"))?;
    say("the box boots from its image; lines of its serial console:");
    rack.watch_console("claim this box at HTTPS://10.78.", |line| {
        if let Some(text) = readable(line) {
            println!("box : {text}");
        }
    })?;
    let (claimed, claim) = rack.claim()?;
    say(&format!("the box is claimed, {:.0} s after power-on", started.elapsed().as_secs_f32()));
    show(&claim);
    for number in 1..=usize::from(arguments.nucs) {
        show(&format!("tinbox hardware push --file nuc{number}.yaml"));
        rack.push_nuc(&claimed, number, (OWNER_KEY, USER_DATA))?;
    }
    show(&rack.push_debian(&claimed)?);
    show("tinbox hardware list");
    print!("{}", output(rack.tinbox(&claimed, &["hardware", "list"])?)?);

    let begun = Instant::now();
    install_all(arguments.nucs, |words| rack.tinbox(&claimed, words))?;
    let (install, all) = (begun.elapsed().as_secs_f32(), started.elapsed().as_secs_f32());
    say(&format!("done in {install:.0} s, {all:.0} s after the power-on of the box"));
    finish(rack, &claimed, arguments.keeps_rack())
}

fn finish(rack: ImageRack, claimed: &Claimed, keep: bool) -> anyhow::Result<()> {
    if keep {
        let programs = std::env::current_exe().context("cannot find the running program")?;
        let (passphrase, pin) = (claimed.passphrase.expose(), claimed.pin.as_str());
        let running = RunningRack {
            namespace: &rack.namespace(),
            address: &claimed.address,
            programs: programs.parent().context("the program is in a folder")?,
            kubeconfig: &claimed.kubeconfig,
            consoles: rack.rack.dir(),
            credentials: Credentials::Passphrase { passphrase, pin },
        };
        print!("\n{}", running.instructions());
        wait_for_enter()?;
    }
    rack.succeed();
    Ok(())
}
