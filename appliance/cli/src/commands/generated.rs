//! `completion` and `man`: files that follow from the definition of the commands.

pub mod complete;

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
    let script = String::from_utf8_lossy(&script);
    let script = match arguments.shell {
        Shell::Bash => script.replace("-F _tinbox ", "-F _tinbox_names ") + BASH,
        Shell::Zsh => {
            let first = "_tinbox() {\n";
            let words =
                format!("{first}    local -a tinbox_line=(\"${{(@)words[1,CURRENT-1]}}\")\n");
            let script = script.replacen(first, &words, 1);
            script.replace(":_default'", ":_tinbox_names'").replacen(
                first,
                &format!("{ZSH}{first}"),
                1,
            )
        }
        Shell::Fish => script.into_owned() + FISH,
        _ => script.into_owned(),
    };
    io::Write::write_all(&mut io::stdout().lock(), script.as_bytes()).map_err(Error::Output)
}

/// Addition to the script of bash: names from the box. Bash splits words at a colon, so names with
/// one, which are MAC addresses, are left out.
const BASH: &str = r#"
_tinbox_names() {
    _tinbox "$@"
    if [[ "$2" != -* ]]; then
        local names
        names=$("$1" __complete "${COMP_WORDS[@]:1:COMP_CWORD-1}" 2>/dev/null | grep -v :)
        if [[ -n "$names" ]]; then
            COMPREPLY=( $(compgen -W "$names" -- "$2") )
        fi
    fi
}
"#;

/// Addition to the script of zsh: names from the box, else files.
const ZSH: &str = r#"_tinbox_names() {
    local -a names
    names=("${(@f)$("${tinbox_line[1]}" __complete "${(@)tinbox_line[2,-1]}" 2>/dev/null)}")
    names=("${(@)names:#}")
    if (( ${#names} )); then
        compadd -a names
    else
        _default
    fi
}

"#;

/// Addition to the script of fish: names from the box.
const FISH: &str = r#"
function __tinbox_names
    set --local words (commandline --cut-at-cursor --current-process --tokenize)
    command --query $words[1]; or return
    $words[1] __complete $words[2..-1] 2>/dev/null
end
complete --command tinbox --arguments "(__tinbox_names)"
"#;

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
