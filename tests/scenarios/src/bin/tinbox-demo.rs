//! `make demo`: a whole installation on a virtual rack, with live output.

use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context as _;
use scenarios::{
    Credentials, DemoArguments, Lab, LabConfig, OWNER_KEY, RunningRack, USER_DATA, install_all,
    page_pin, require_root, say, show, wait_for_enter,
};

fn main() -> ExitCode {
    let about = "Install Debian on a virtual NUC, from power-on to cloud-init";
    scenarios::exit(run(&DemoArguments::read(about)))
}

fn run(arguments: &DemoArguments) -> anyhow::Result<()> {
    require_root("sudo make demo")?;
    say(&arguments.words());
    let mut config = LabConfig::new(arguments.rack("demo"));
    config.pages = true;
    let started = Instant::now();
    let lab = Lab::start(config)?;
    say(&format!("tinboxd answers after {:.1} s", started.elapsed().as_secs_f32()));
    for number in 1..=usize::from(arguments.nucs) {
        show(&format!("tinbox hardware push --file nuc{number}.yaml"));
        lab.push_nuc(number, OWNER_KEY, USER_DATA)?;
    }
    show(&lab.push_debian()?);
    show("tinbox hardware list");
    print!("{}", lab.tinbox(&["hardware", "list"])?);

    let begun = Instant::now();
    install_all(arguments.nucs, |words| lab.command(words))?;
    say(&format!("done in {:.0} s", begun.elapsed().as_secs_f32()));
    finish(lab, arguments.keeps_rack())
}

fn finish(lab: Lab, keep: bool) -> anyhow::Result<()> {
    if keep {
        let programs = std::env::current_exe().context("cannot find the running program")?;
        let page = lab.claim_page()?;
        let rack = RunningRack {
            namespace: &format!("{}-box", lab.rack.name()),
            address: "10.77.0.1",
            programs: programs.parent().context("the program is in a folder")?,
            kubeconfig: &lab.kubeconfig(),
            consoles: lab.rack.dir(),
            credentials: Credentials::Unclaimed { code: &lab.claim_file(), pin: page_pin(&page) },
        };
        print!("\n{}", rack.instructions());
        wait_for_enter()?;
    }
    lab.rack.succeed();
    Ok(())
}
