//! Rings of any number of stages: their slots and phases are remainders and quotients by numbers that are not powers of two, and names say them.

use layout_codegen::Arch;
use tilewright_kernels::gemm::{Config, Mainloop, Operands, PlanError};

/// Every configuration with a number of stages is proven, or has no room for them.
fn prove(configs: impl Iterator<Item = Config>, numbers: &[u32]) -> usize {
    let mut proven = 0;
    for config in configs {
        for &stages in numbers {
            let config = Config { stages, ..config };
            let operands = if stages % 2 == 0 { "nn" } else { "tt" };
            let operands: Operands = operands.parse().expect("transposes");
            let arch = config.min_arch().max(Arch(80));
            match config.kernel().emit(operands, arch) {
                Ok(_) => proven += 1,
                Err(PlanError::SharedMemory { .. }) => {}
                Err(e) => panic!("{config}: {e}"),
            }
        }
    }
    proven
}

#[test]
fn stages_of_warpgroups_are_proven() {
    let proven = prove(Config::table().filter(Config::is_wgmma), &[3, 5, 6]);
    assert!(proven > 90, "{proven}");
}

#[test]
fn stages_of_warps_are_proven() {
    let of_warps = |config: &Config| {
        matches!(
            config.mainloop,
            Mainloop::Simt { .. } | Mainloop::MmaSync { .. }
        )
    };
    let proven = prove(Config::table().filter(of_warps), &[2, 5]);
    assert!(proven > 50, "{proven}");
}

#[test]
fn numbers_of_stages_are_in_names() {
    for name in [
        "wgmma-f16-128x128x64+stages5",
        "wgmma-bf16-128x256x64+persistent+cluster2x1+stages3",
        "mma-f16-128x128x32+sm75+stages3",
        "sgemm-128x128x16+stages4",
    ] {
        let config: Config = name.parse().expect("a configuration");
        assert_eq!(config.to_string(), name);
        let operands: Operands = "nn".parse().expect("transposes");
        // Both may be in one module.
        let entry = name.replace(['-', '+'], "_");
        let own = config.kernel().entry_name(operands);
        assert!(own.starts_with(&entry), "{name}");
    }
    let listed: Vec<String> = Config::table().map(|config| config.to_string()).collect();
    for config in Config::table() {
        // A number is named where the same tile is listed before with another one.
        let name = config.to_string();
        if let Some((other, _)) = name.split_once("+stages") {
            assert!(listed.iter().any(|listed| listed == other), "{name}");
        } else if let Ok(same) = format!("{name}+stages{}", config.stages).parse::<Config>() {
            // Its own number is no other configuration.
            assert_eq!(same, config);
        }
    }
    for number in ["0", "1", "33", "99999999999999999999"] {
        let refused = format!("wgmma-f16-128x128x64+stages{number}").parse::<Config>();
        let message = refused.err().map(|e| e.to_string()).unwrap_or_default();
        assert!(message.contains("take 2 to 32"), "{message}");
    }
    for name in [
        "wgmma-f16-128x128x64++stages3",
        "wgmma-f16-128x128x64+-stages3",
        "wgmma-f16-128x128x64+stages",
        "wgmma-f16-128x128x64+stages6+stages6",
        "sgemm-maxas-128+stages3+stages3",
        "+stages3",
        "stages3",
    ] {
        let code = name.parse::<Config>().err().map(|e| e.code());
        assert_eq!(code, Some("unknown_plan"), "{name}");
    }
}
