//! Model of the boot loader's choice of a slot, tested against `image/boot/grub.cfg`.

use std::io::Write as _;
use std::process::{Command, Stdio};

use platform::slots::{BYTES, Slot};

/// Boot script of GRUB in every image.
const SCRIPT: &str = include_str!("../../../../../image/boot/grub.cfg");
/// GRUB's commands in bash. A line of input is a case: the stored variables, with `-` for a
/// variable that is not stored. A line of output is the slot, and the stored counters.
const COMMANDS: &str = r#"
set() { printf -v "${1%%=*}" %s "${1#*=}"; }
load_env() {
  shift 2
  for variable in "$@"; do
    if [ "${kept[$variable]}" != - ]; then set "$variable=${kept[$variable]}"; fi
  done
}
save_env() { shift 2; for variable in "$@"; do kept[$variable]=${!variable}; done; }
source() { :; }
echo() { :; }
boot() { printf '%s %s %s\n' "$folder" "${kept[A_TRY]}" "${kept[B_TRY]}"; }
reboot() { :; }
while IFS='|' read -r order a_ok a_try b_ok b_try; do
  declare -A kept=([ORDER]=$order [A_OK]=$a_ok [A_TRY]=$a_try [B_OK]=$b_ok [B_TRY]=$b_try)
  unset ORDER
  start
done
"#;

/// Starts a slot as GRUB does, and counts the start in the block of variables.
pub fn start(block: &mut Vec<u8>) -> Slot {
    let text = String::from_utf8_lossy(block);
    let lines = text.lines().filter_map(|line| line.split_once('='));
    let mut kept: Vec<(String, String)> =
        lines.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let get = |name: &str| kept.iter().find(|(known, _)| known == name).map(|(_, it)| it.clone());
    let order = get("ORDER").unwrap_or_default();
    let is_whole = ["A_OK", "B_OK"].map(|name| get(name).as_deref() == Some("1"));
    let mut tries = ["A_TRY", "B_TRY"].map(|name| get(name).unwrap_or_else(|| "0".to_owned()));

    let order = order.split_whitespace().map(|name| usize::from(name != "A"));
    let whole: Vec<usize> = order.filter(|slot| is_whole[*slot]).collect();
    let left = whole.iter().find_map(|slot| Some((*slot, next(&tries[*slot])?)));
    let slot = match left {
        Some((slot, next)) => {
            next.clone_into(&mut tries[slot]);
            slot
        }
        None => {
            tries = ["0", "0"].map(str::to_owned);
            whole.first().copied().unwrap_or_default()
        }
    };
    for (name, value) in ["A_TRY", "B_TRY"].into_iter().zip(tries) {
        kept.retain(|(known, _)| known != name);
        kept.push((name.to_owned(), value));
    }
    *block = written(&kept);
    [Slot::A, Slot::B][slot]
}

/// Returns the counter after one more start, or `None` after three starts.
fn next(tries: &str) -> Option<&'static str> {
    match tries {
        "0" => Some("1"),
        "1" => Some("2"),
        "2" => Some("3"),
        _ => None,
    }
}

/// Returns a block with these variables.
fn written(variables: &[(String, String)]) -> Vec<u8> {
    let lines = variables.iter().map(|(name, value)| format!("{name}={value}\n"));
    let mut block = format!("# GRUB Environment Block\n{}", lines.collect::<String>()).into_bytes();
    block.resize(BYTES, b'#');
    block
}

/// Returns all states of the variables that the script can distinguish.
fn states() -> Vec<[&'static str; 5]> {
    let (oks, tries) = (["0", "1", "-"], ["0", "1", "2", "3", "9", "-"]);
    let mut states = Vec::new();
    for order in ["A B", "B A", "A", "B", "-"] {
        for (a_ok, b_ok) in oks.into_iter().flat_map(|a| oks.map(|b| (a, b))) {
            for (a_try, b_try) in tries.into_iter().flat_map(|a| tries.map(|b| (a, b))) {
                states.push([order, a_ok, a_try, b_ok, b_try]);
            }
        }
    }
    states
}

#[test]
fn the_script_chooses_so() {
    let begin = SCRIPT.find("function start {").unwrap();
    let end = begin + SCRIPT[begin..].find("\n}\n").unwrap() + 3;
    // `($root)` is GRUB's variable of the boot volume; bash would parse it as an array.
    let function = SCRIPT[begin..end].replace("($root)", "");
    let mut bash = Command::new("bash");
    bash.args(["--norc", "-c", &format!("{function}{COMMANDS}")]);
    bash.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut bash = bash.spawn().unwrap();
    let cases = states();
    let input: String = cases.iter().map(|case| case.join("|") + "\n").collect();
    let mut pipe = bash.stdin.take().unwrap();
    let feeding = std::thread::spawn(move || pipe.write_all(input.as_bytes()));
    let output = bash.wait_with_output().unwrap();
    feeding.join().unwrap().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let chosen: Vec<&str> = text.lines().collect();
    assert_eq!(chosen.len(), cases.len(), "bash ran the script: {}", output.status);
    for (case, chosen) in cases.into_iter().zip(chosen) {
        let names = ["ORDER", "A_OK", "A_TRY", "B_OK", "B_TRY"];
        let kept = names.into_iter().zip(case).filter(|(_, value)| *value != "-");
        let kept: Vec<_> = kept.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let mut block = written(&kept);
        let slot = start(&mut block).letter();
        let text = String::from_utf8(block).unwrap();
        let kept = |name| text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        let model = format!("{slot} {} {}", kept("A_TRY="), kept("B_TRY="));
        assert_eq!(model, chosen, "{case:?}");
    }
}
