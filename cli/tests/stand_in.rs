//! What the command says on machines that a test does not have: several GPUs that do not reach each other, or have no NCCL. A driver that stands in for the
//! real one (`stand_in/libcuda.rs`) is compiled for it.

mod common;

use std::path::Path;
use std::process::Command;

use common::{one_json, stand_in};

/// The error of a command on a machine with so many GPUs.
fn error(folder: &Path, gpus: u32, peers: u32, line: &str) -> (String, String) {
    let args: Vec<&str> = line.split_whitespace().chain(["--json"]).collect();
    let output = Command::new(env!("CARGO_BIN_EXE_tilewright"))
        .args(&args)
        .env("LD_LIBRARY_PATH", folder)
        .env("STAND_IN_GPUS", gpus.to_string())
        .env("STAND_IN_PEERS", peers.to_string())
        .env_remove("TILEWRIGHT_FINDINGS")
        .output()
        .expect("the command starts");
    let (code, value) = one_json(output, &args);
    assert_eq!(code, 1, "{value}");
    let text = |key: &str| {
        let found = value["error"][key].as_str();
        found.unwrap_or_else(|| panic!("{value}")).to_owned()
    };
    (text("code"), text("message"))
}

#[test]
fn gpus_that_lack_something_are_one_error_each() {
    if cfg!(not(target_os = "linux")) {
        eprintln!("not Linux: not run");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    stand_in(folder.path(), "libcuda");
    let error = |gpus, peers, line: &str| error(folder.path(), gpus, peers, line);
    let product = "gemm --on gpu --m 64 --n 64 --k 64 --dtype bf16";

    let (code, message) = error(0, 0, product);
    assert_eq!(code, "no_gpu", "{message}");

    let (code, message) = error(2, 1, &format!("{product} --devices 5"));
    assert_eq!(code, "no_such_gpu", "{message}");
    assert!(
        message.contains("there is no GPU 2: this machine has 2"),
        "{message}"
    );

    let (code, message) = error(2, 0, &format!("{product} --devices 2"));
    assert_eq!(code, "no_peer_access", "{message}");
    assert!(
        message.contains("GPU 0 can't read the memory of GPU 1"),
        "{message}"
    );
    assert!(
        message.contains("`--on emulator` runs any number of devices"),
        "{message}"
    );

    // Without NCCL, or with one that finds no GPU behind the stand-in.
    let (code, message) = error(
        2,
        1,
        &format!("{product} --devices 2 --movement collective"),
    );
    assert!(
        ["no_nccl", "nccl_error"].contains(&code.as_str()),
        "{message}"
    );
    assert!(
        code != "no_nccl" || message.contains("use `--movement copies`"),
        "{message}"
    );

    // Copies need no NCCL; this driver has no memory either.
    for movement in ["auto", "copies"] {
        let line = format!("{product} --devices 2 --movement {movement}");
        let (code, message) = error(2, 1, &line);
        assert_eq!(code, "cuda_error", "{message}");
        assert!(message.contains("cuMemAlloc"), "{message}");
    }
}
