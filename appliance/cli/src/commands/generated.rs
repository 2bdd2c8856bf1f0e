//! `completion` and `man`: files that follow from the definition of the commands.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::Command;
use clap_complete::Shell;

use crate::error::Error;

#[derive(Debug, clap::Args)]
pub struct Completion {
    /// Shell to complete for
    #[arg(value_enum)]
    shell: Shell,
}

#[derive(Debug, clap::Args)]
pub struct Man {
    /// Folder for the pages, one for each command; created if it does not exist
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

/// Prints the completion script of a shell.
///
/// # Errors
/// Standard output cannot be written.
pub fn completion(mut command: Command, arguments: &Completion) -> Result<(), Error> {
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, name, &mut script);
    io::Write::write_all(&mut io::stdout().lock(), &script).map_err(Error::Output)
}

/// Writes the manual pages of all commands, such as `tinbox-machine-install.1`. Returns their
/// number.
///
/// # Errors
/// The folder or a page cannot be written.
pub fn man(command: Command, arguments: &Man) -> Result<usize, Error> {
    let write = |file: &Path, source| Error::Write { file: file.display().to_string(), source };
    fs::create_dir_all(&arguments.folder).map_err(|source| write(&arguments.folder, source))?;
    let mut written = 0;
    // Names of the pages: full names of the commands, joined by hyphens.
    let mut waiting = vec![(command.get_name().to_owned(), command)];
    while let Some((name, command)) = waiting.pop() {
        let below = command.get_subcommands().filter(|it| it.get_name() != "help").cloned();
        waiting.extend(below.map(|it| (format!("{name}-{}", it.get_name()), it)));
        let file = arguments.folder.join(format!("{name}.1"));
        let mut page = Vec::new();
        // Page names are texts of clap, which live as long as the program.
        let title: &'static str = Box::leak(name.into_boxed_str());
        clap_mangen::Man::new(command.name(title))
            .render(&mut page)
            .map_err(|source| write(&file, source))?;
        fs::write(&file, page).map_err(|source| write(&file, source))?;
        written += 1;
    }
    Ok(written)
}
