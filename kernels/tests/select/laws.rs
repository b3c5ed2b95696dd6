//! What holds of any model of time.

use layout_codegen::Arch;
use proptest::prelude::*;
use tilewright_kernels::gemm::{Batch, Config, DataType, Gemm, Mainloop, Operands, Schedule};
use tilewright_kernels::select::{Bound, Machine, estimate};

use crate::{close, cube, h200, named, split};

#[test]
fn a_machine_with_fewer_multiprocessors_is_slower() {
    let small = Machine {
        multiprocessors: 66,
        ..h200()
    };
    for plan in Config::table() {
        let of = |machine| estimate(&plan, Schedule::default(), &cube(8192), machine);
        let (half, whole) = (of(&small), of(&h200()));
        // What reads so much for each product waits for memory, whatever multiplies.
        let least = if plan.is_wgmma() { 64 } else { 32 };
        let narrow = plan.tile[0].min(plan.tile[1]) <= least;
        if narrow && matches!(whole.bound, Bound::Memory | Bound::L2) {
            continue;
        }
        assert!(half.seconds > 1.5 * whole.seconds, "{plan}");
    }
}

fn any_plan() -> impl Strategy<Value = usize> {
    0..Config::table().count()
}

fn any_arch() -> impl Strategy<Value = Arch> {
    proptest::sample::select(&Arch::ALL[..])
}

proptest! {
    #[test]
    fn a_longer_sum_never_takes_less_time(
        which in any_plan(),
        arch in any_arch(),
        (m, n) in (1u64..9000, 1u64..9000),
        (k, more) in (1u64..20_000, 1u64..5_000),
        trans in 0usize..4,
    ) {
        let plan = &Config::table().nth(which).expect("a row");
        let machine = Machine::for_arch(arch);
        let of = |k| {
            // The same leading dimensions, so that the copies are as wide.
            let problem = Gemm {
                k,
                ..Gemm::packed(m, n, 25_000, Operands::ALL[trans])
            };
            estimate(plan, Schedule::default(), &problem, &machine).seconds
        };
        prop_assert!(of(k) <= of(k + more) * (1.0 + 1e-12));
    }

    #[test]
    fn no_estimate_beats_the_hardware(
        which in any_plan(),
        arch in any_arch(),
        (m, n, k) in (1u64..5000, 1u64..5000, 1u64..5000),
        parts in 1u32..40,
        pack in any::<bool>(),
    ) {
        let plan = &Config::table().nth(which).expect("a row");
        let machine = Machine::for_arch(arch);
        let problem = Gemm::packed(m, n, k, Operands::ALL[0]);
        let schedule = Schedule { split: parts, pack };
        let e = estimate(plan, schedule, &problem, &machine);
        // Products of warpgroups multiply as many bytes of every type, 1.6 times those of f16 by warps.
        let rate = match plan.mainloop {
            Mainloop::Wgmma(_) => {
                3.2 * machine.rate(DataType::F16) / f64::from(plan.data_type.bytes())
            }
            _ => machine.rate(plan.data_type),
        };
        let rate = rate * f64::from(machine.multiprocessors) * machine.clock;
        prop_assert!(e.seconds.is_finite());
        prop_assert!(e.seconds >= machine.launch);
        prop_assert!(e.seconds >= 2.0 * (m * n * k) as f64 / rate);
        let bytes = (m + n) * k * u64::from(plan.data_type.bytes());
        prop_assert!(e.seconds >= bytes as f64 / machine.memory_bandwidth);
    }

    #[test]
    fn batches_and_splits_multiply_blocks(
        (m, n) in (1u64..3000, 1u64..3000),
        count in 1u64..20,
        parts in proptest::sample::select(&[1u32, 2, 4, 8][..]),
    ) {
        let plan = named("mma-f16-64x64x32");
        let problem = Gemm {
            batch: Batch { count, strides: [0, 0, m * n] },
            ..Gemm::packed(m, n, 4096, Operands::ALL[0])
        };
        let e = estimate(&plan, split(parts), &problem, &h200());
        let tiles = m.div_ceil(64) * n.div_ceil(64);
        prop_assert_eq!(e.blocks, tiles * count * u64::from(parts));
        prop_assert!(close(e.waves, e.blocks as f64 / (132.0 * f64::from(e.resident)), 1e9));
    }
}
