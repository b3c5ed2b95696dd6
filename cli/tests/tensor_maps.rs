//! Tensor maps in the launch contract: what it says of them, and that `examples/launch.py`, which knows nothing else, encodes and launches what our host
//! does. A driver that writes down what it is asked for stands in for the real one (`stand_in/recorder.rs`).

mod common;

use std::path::Path;
use std::process::Command;

use common::{json, one_json, stand_in};
use serde_json::{Value, json};

/// Products of warpgroups: boxes of A and B, of transposed and of packed operands, of clusters, of layers, with partial sums.
const PRODUCTS: [&str; 7] = [
    "--plan wgmma-f16-128x256x64+persistent --m 1000 --n 520 --k 72",
    "--plan wgmma-f16-128x256x64 --m 300 --n 264 --k 200 --lda 208 --ldc 272",
    "--plan wgmma-f16-128x256x64+cluster2x1 --m 300 --n 200 --k 136 --trans tt",
    "--plan wgmma-f16-64x128x64 --m 200 --n 136 --k 72 --batch 3",
    "--plan wgmma-f16-64x128x128 --m 100 --n 100 --k 2001 --split 4",
    "--plan wgmma-tf32-128x128x32 --m 260 --n 200 --k 136",
    "--plan wgmma-s8-128x256x128+persistent --m 300 --n 256 --k 144 --trans nt",
];

/// The lines that the driver wrote: the launches in order, and the attributes of kernels, each once.
fn recorded(log: &Path) -> (Vec<String>, Vec<String>) {
    let text = std::fs::read_to_string(log).expect("the driver's log");
    let lines = text.lines().map(str::to_owned);
    let (mut attributes, launches): (Vec<_>, Vec<_>) =
        lines.partition(|line| line.starts_with("attribute "));
    attributes.sort();
    attributes.dedup();
    (launches, attributes)
}

/// Runs a product on our host, and then `launch.py` with what that printed and emitted; the launches of both, and of the contract.
fn both(folder: &Path, product: &str) -> Option<[(Vec<String>, Vec<String>); 2]> {
    let at = |name: &str| folder.join(name).display().to_string();
    let (ptx, contract) = (at("kernel.ptx"), at("gemm.json"));
    let fixed = [
        "gemm", "--on", "gpu", "--check", "false", "--json", "--emit", &ptx,
    ];
    let args: Vec<&str> = fixed
        .into_iter()
        .chain(product.split_whitespace())
        .collect();
    let output = Command::new(env!("CARGO_BIN_EXE_tilewright"))
        .args(&args)
        .env("LD_LIBRARY_PATH", folder)
        .env("STAND_IN_GPUS", "1")
        .env("STAND_IN_LOG", at("ours"))
        .env_remove("TILEWRIGHT_FINDINGS")
        .output()
        .expect("the command starts");
    std::fs::write(&contract, &output.stdout).expect("written");
    let (_, value) = one_json(output, &args);
    assert!(value["error"].is_null(), "{value}");
    let launch = &value["launch"];
    let around = ["before", "after"].map(|key| launch[key].as_array().expect(key).len());
    let count = 1 + around[0] + around[1];

    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/launch.py");
    let output = Command::new("python3")
        .args(["-B", script, &ptx, &contract])
        .env("LD_LIBRARY_PATH", folder)
        .env("STAND_IN_LOG", at("theirs"))
        .output();
    let errors = match &output {
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(error) => error.to_string(),
    };
    if output.is_err() || errors.contains("needs numpy") {
        eprintln!("{errors}: nothing was tested");
        return None;
    }
    assert!(Path::new(&at("theirs")).exists(), "{product}: {errors}");
    let (mut ours, our_attributes) = recorded(Path::new(&at("ours")));
    // Our host launches once, and then to take the time.
    ours.truncate(count);
    assert_eq!(ours.len(), count, "{product}");
    Some([(ours, our_attributes), recorded(Path::new(&at("theirs")))])
}

#[test]
fn other_hosts_encode_and_launch_what_ours_does() {
    if cfg!(not(target_os = "linux")) {
        eprintln!("not Linux: not run");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    stand_in(folder.path(), "recorder");
    let mut all = String::new();
    for product in PRODUCTS {
        let Some([ours, theirs]) = both(folder.path(), product) else {
            return;
        };
        assert_eq!(ours, theirs, "{product}");
        all.extend(ours.0);
    }
    // What the cases are there for was among them.
    for expected in [
        "map(type 1 sizes [72, 1000] strides [144] box [64, 128] steps [1, 1] interleave 0 swizzle 3 promotion 3 fill 0)",
        "map(type 11 ",
        "map(type 0 ",
        "sizes [72, 200, 3]",
        "attribute 6 [1, 0, 0]",
    ] {
        assert!(all.contains(expected), "{expected}: {all}");
    }
    // The text declares the clusters.
    assert!(!all.contains("attribute 4 "), "{all}");
}

#[test]
fn the_contract_says_what_the_driver_takes() {
    let args = "gemm --plan wgmma-f16-128x256x64 --m 320 --n 384 --k 200 --trans tn --on none";
    let (code, value) = json(&args.split_whitespace().collect::<Vec<_>>());
    assert_eq!(code, 0, "{value}");
    let launch = &value["launch"];
    let params = launch["params"].as_array().expect("parameters");
    let map = |name: &str| -> &Value {
        let found = params.iter().find(|p| p["name"] == name).expect(name);
        assert_eq!(found["type"], "tensor_map");
        &found["value"]
    };
    let expected = |of: Value, dimensions: [&str; 2], sizes: [u64; 2], tile: [u32; 2]| {
        json!({
            "tensor_map": of,
            "rank": 2,
            "dimensions": dimensions,
            "sizes": sizes,
            "strides_bytes": [2 * sizes[0]],
            "box": tile,
            "element_strides": [1, 1],
            "element_bytes": 2,
            "rounds_to_tf32": false,
            "swizzle_bytes": 128,
            "data_type": {"name": "CU_TENSOR_MAP_DATA_TYPE_UINT16", "value": 1},
            "interleave": {"name": "CU_TENSOR_MAP_INTERLEAVE_NONE", "value": 0},
            "swizzle": {"name": "CU_TENSOR_MAP_SWIZZLE_128B", "value": 3},
            "l2_promotion": {"name": "CU_TENSOR_MAP_L2_PROMOTION_L2_256B", "value": 3},
            "oob_fill": {"name": "CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE", "value": 0},
        })
    };
    // A lies transposed: rows of m.
    let a = json!({"matrix": "A", "rows": 200, "cols": 320, "ld": 320});
    assert_eq!(*map("A"), expected(a, ["m", "k"], [320, 200], [64, 64]));
    let b = json!({"matrix": "B", "rows": 200, "cols": 384, "ld": 384});
    assert_eq!(*map("B"), expected(b, ["n", "k"], [384, 200], [64, 64]));
    assert_eq!(launch["cluster_declared"], false);
    assert_eq!(launch["beside_previous"], true);
}
