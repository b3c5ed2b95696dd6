//! Names of configurations: what is printed is read back as the same value, whether it is listed or not, and a name that no kernel has is one clear error.

use layout_codegen::Arch;
use proptest::prelude::*;
use tilewright_kernels::gemm::{
    Config, DataType, Gemm, Mainloop, Operands, Order, PlanError, Schedule, Scheduler, Wgmma,
};

#[test]
fn listed_names_are_read_back() {
    for config in Config::table() {
        config.validate().expect("a row of the table");
        assert_eq!(config.to_string().parse(), Ok(config));
        let deeper = Config {
            stages: config.stages + 1,
            ..config
        };
        if deeper.validate().is_ok() {
            assert_eq!(deeper.to_string().parse(), Ok(deeper));
        }
    }
}

/// Values in which each part is likely to be right.
fn config() -> impl Strategy<Value = Config> {
    let rows = prop_oneof![4 => (1u32..33).prop_map(|n| 8 * n), 4 => (1u32..5).prop_map(|n| 64 * n), 1 => any::<u32>()];
    let columns = prop_oneof![6 => (1u32..17).prop_map(|n| 16 * n), 4 => (1u32..4).prop_map(|n| 64 * n), 1 => any::<u32>()];
    let depth = prop::sample::select(vec![0u32, 16, 32, 64, 128, 256, u32::MAX]);
    let mainloop = prop_oneof![
        6 => prop::sample::select(vec![Wgmma::Cooperative, Wgmma::Promoted, Wgmma::PingPong]).prop_map(Mainloop::Wgmma),
        1 => prop::sample::select(Config::table().map(|c| c.mainloop).collect::<Vec<_>>()),
    ];
    let scheduler = prop::sample::select(vec![
        Scheduler::Grid,
        Scheduler::Persistent(Order::Rectangle),
        Scheduler::Persistent(Order::Linear),
    ]);
    let cluster = prop::sample::select(vec![
        [1, 1],
        [1, 1],
        [2, 1],
        [1, 4],
        [8, 1],
        [2, 2],
        [0, 1],
        [3, 1],
        [u32::MAX, 1],
    ]);
    let stages = prop_oneof![6 => 2u32..12, 1 => any::<u32>()];
    let data_type = prop::sample::select(DataType::ALL.to_vec());
    let all = (data_type, mainloop, (rows, columns, depth), stages);
    (all, scheduler, cluster, any::<bool>()).prop_map(|(all, scheduler, cluster, swap_ab)| {
        let (data_type, mainloop, (m, n, k), stages) = all;
        Config {
            data_type,
            mainloop,
            tile: [m, n, k],
            stages,
            scheduler,
            cluster,
            swap_ab,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    /// What is valid has a name that says it all; what is not is refused, under its name as well.
    #[test]
    fn values_have_names(config in config()) {
        match config.validate() {
            Ok(()) => prop_assert_eq!(config.to_string().parse(), Ok(config)),
            Err(error) => {
                prop_assert!(!error.to_string().is_empty());
                if let Ok(other) = config.to_string().parse::<Config>() {
                    // Warps, and what kernels of the sources have, are not in names.
                    prop_assert!(other.validate().is_ok());
                }
            }
        }
    }

    /// What is valid has a kernel for some operands, or no room for it; nothing panics.
    #[test]
    fn texts_are_names_or_errors(text in "\\PC{0,40}", name in "wgmma-(bf16|e4m3|tf32)-(64|128|300)x(64|0|16)x(64|128)([+](swapab|pingpong|linear|promoted|cluster2x1|stages3|sm75|warps)){0,4}") {
        for name in [text.clone(), format!("wgmma-{text}"), format!("wgmma-bf16-{text}"), format!("{name}{text}"), name] {
            match name.parse::<Config>() {
                Ok(config) => prop_assert_eq!(config.to_string().parse(), Ok(config)),
                Err(error) => prop_assert!(!error.to_string().is_empty()),
            }
        }
    }
}

/// What is named is proven, for a problem whose sizes no tile divides, or has no room: of all names of a grid, every so many.
#[test]
fn unlisted_configurations_are_proven() {
    let (mut proven, mut named) = (0, 0);
    let tiles = |swapped: bool| {
        let (rows, columns): (Vec<i64>, Vec<i64>) = if swapped {
            ((2..33).map(|n| 8 * n).collect(), vec![64, 128, 192])
        } else {
            (vec![64, 128, 192], (1..17).map(|n| 16 * n).collect())
        };
        itertools::iproduct!(rows, columns).collect::<Vec<_>>()
    };
    let ends = [
        "",
        "+persistent",
        "+cluster2x1",
        "+cluster1x2",
        "+persistent+cluster1x4",
        "+linear",
        "+pingpong",
    ];
    let types = [
        ("bf16", 64),
        ("e4m3", 256),
        ("tf32", 32),
        ("s8", 128),
        ("f16", 128),
    ];
    let mut at = 0;
    for swapped in [true, false] {
        for ((m, n), end, (of, k)) in itertools::iproduct!(tiles(swapped), ends, types) {
            at += 1;
            if at % 23 != 0 {
                continue;
            }
            let word = if swapped { "+swapab" } else { "" };
            let name = format!("wgmma-{of}-{m}x{n}x{k}{word}{end}");
            let config = match name.parse::<Config>() {
                Ok(config) => config,
                Err(PlanError::Unsupported { .. }) => continue,
                Err(e) => panic!("{name}: {e}"),
            };
            named += 1;
            let operands: Operands = if at % 2 == 0 { "nt" } else { "nn" }
                .parse()
                .expect("transposes");
            let problem = Gemm::packed(304, 648, 656, operands);
            let made = config
                .specialize(&problem, Schedule::default())
                .and_then(|plan| plan.emit(operands, Arch(90)));
            match made {
                Ok(_) => proven += 1,
                Err(
                    PlanError::SharedMemory { .. }
                    | PlanError::Unsupported { .. }
                    | PlanError::Refused(_),
                ) => {}
                Err(e) => panic!("{name}: {e}"),
            }
        }
    }
    assert!(named > 40 && proven > 3 * named / 4, "{proven} of {named}");
}

#[test]
fn impossible_names_say_what_would_work() {
    for (name, part) in [
        ("wgmma-bf16-128x300x64", "300 columns of its instructions"),
        ("wgmma-bf16-100x128x64", "take 64, 128 or 192"),
        ("wgmma-bf16-8x64x128+swapab", "take a multiple of 16"),
        ("wgmma-bf16-128x128x48", "take a k of 128 or 256 bytes"),
        (
            "wgmma-f16-128x128x65+stages6",
            "a stage of 130 bytes along k",
        ),
        (
            "wgmma-f64-128x128x16",
            "take f16, bf16, tf32, s8, e4m3 or e5m2",
        ),
        ("wgmma-bf16-192x256x64", "128 sums a thread"),
        ("wgmma-bf16-128x128x64+promoted", "take e4m3 or e5m2"),
        ("wgmma-bf16-128x128x64+cluster3x1", "take 2x1 or 1x2"),
        (
            "wgmma-bf16-128x128x64+linear+cluster2x1",
            "rectangles of them",
        ),
        (
            "wgmma-bf16-128x128x64+pingpong+swapab",
            "leave one of them out",
        ),
        (
            "wgmma-bf16-192x128x64+pingpong",
            "of a ping-pong schedule 128 or 256",
        ),
        (
            "wgmma-e4m3-128x128x128+promoted+persistent",
            "leave one of them out",
        ),
        ("mma-f16-96x128x32", "mma-f16-128x128x32"),
        ("mma-f16-128x128x32+cluster2x1", "2x1"),
        ("sgemm-128x128x16+persistent", "take a wgmma kernel"),
        ("wgmma-bf16-128x128x64+stages1", "take 2 to 32"),
    ] {
        let message = name
            .parse::<Config>()
            .map(Config::kernel)
            .err()
            .map(|e| e.to_string())
            .unwrap_or_default();
        assert!(message.contains(part), "{name}: {message}");
    }
    for name in [
        "wgmma-bf16-0x0x0",
        "wgmma-bf16-128x128",
        "wgmma-bf16-128x128x64+persistent+linear",
        "wgmma-bf16-128x128x64+pingpong+promoted",
        "wgmma-bf16-128x128x64+pingpong+pingpong",
        "mma-f16-128x128x32+pingpong",
        "wgmma-bf16-128x128x64+sm75",
        "wgmma-bf16-128x128x64+swapab2",
        "",
        "+",
        "wgmma--128x128x64",
        "wgmma-bf16-128x128x99999999999999999999",
        "wgmma-bf16-0128x128x64",
        "wgmma-bf16-128x128x64-tma",
        "wgmma-bf16-128x128x64-tma-store",
    ] {
        assert_eq!(
            name.parse::<Config>()
                .map(Config::kernel)
                .err()
                .map(|e| e.code()),
            Some("unknown_plan"),
            "{name}"
        );
    }
}
