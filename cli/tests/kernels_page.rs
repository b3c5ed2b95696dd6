//! The commands of `docs/kernels.md` and `docs/hosts.md` work, and print what the pages show.

mod common;

use common::{check_page, tilewright_in};

const PAGE: &str = include_str!("../../docs/kernels.md");
const HOSTS: &str = include_str!("../../docs/hosts.md");

#[test]
fn the_documented_commands_print_what_the_page_shows() {
    check_page(PAGE, &[], 4);
}

/// Those of the experiment loop that need neither a device nor an assembler; that of C's section writes what the program launches.
#[test]
fn the_other_commands_work() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut run = 0;
    let lines = PAGE.lines().chain(HOSTS.lines());
    for line in lines.filter(|line| line.starts_with("tilewright ")) {
        let command = line.split("  ").next().expect("a command");
        let command = command.split(" > ").next().expect("a command");
        let arguments: Vec<&str> = command.split_whitespace().skip(1).collect();
        if arguments[0] == "bench" || arguments.ends_with(&["--on", "opencl"]) {
            continue;
        }
        let output = tilewright_in(folder.path(), &arguments);
        let log = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command}: {log}");
        run += 1;
    }
    assert_eq!(run, 6, "commands on the pages");
}

/// What the command refuses has the names that the page gives it.
#[test]
fn refusals_have_the_codes_of_the_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let f16 = ["gemm", "--on", "emulator", "--dtype", "f16"];
    for (code, more) in [
        ("unknown_plan", "--plan mma-f16"),
        ("unknown_arch", "--arch sm_70"),
        ("unknown_trans", "--trans xy"),
        ("unknown_name", "--activation tanh"),
        ("arch_too_old", "--arch sm_75 --plan mma-f16-128x128x32"),
        ("shared_memory", "--arch sm_86 --plan mma-f16-128x256x64"),
        ("wrong_type", "--plan sgemm-maxas-64"),
        (
            "unsupported",
            "--k 255 --pack=false --plan mma-f16-128x128x32",
        ),
        ("unsupported", "--batch 2 --split 2 --plan mma-f16-64x64x32"),
        ("leading_dimension", "--lda 10"),
        ("alignment", "--align 1"),
        ("batch_overlap", "--batch 3 --stride-c 5"),
        ("not_finite", "--alpha nan"),
        ("too_large", "--m 20000000000"),
    ] {
        assert!(PAGE.contains(&format!("`{code}`")), "{code}");
        let more: Vec<&str> = more.split_whitespace().collect();
        let output = tilewright_in(folder.path(), &[&f16[..], &more, &["--json"]].concat());
        let printed = String::from_utf8_lossy(&output.stdout);
        let value: serde_json::Value = serde_json::from_str(&printed).expect("JSON");
        assert_eq!(value["error"]["code"], code, "{more:?}: {printed}");
        assert!(!output.status.success());
    }
}
