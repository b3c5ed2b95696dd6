//! Laws of distributions, redistributions, runs and rotations.

use std::collections::BTreeSet;

use layout_core::devices::{Distribution, Movement, Redistribution, Rotation, Runs, Shard};
use proptest::prelude::*;

use super::random::{Choices, distribution};
use super::{inputs, pair};

fn derive(from: &Distribution, to: &Distribution) -> Redistribution {
    Redistribution::derive(from, to).expect("comparable")
}

fn sets() -> impl Strategy<Value = (BTreeSet<u64>, BTreeSet<u64>)> {
    let set = || prop::collection::btree_set(0..24_u64, 0..16);
    (set(), set())
}

fn runs(set: &BTreeSet<u64>) -> Runs {
    set.iter().map(|&i| i..i + 1).collect()
}

proptest! {
    #[test]
    fn a_device_that_has_what_it_needs_gets_nothing((extents, devices, bytes) in inputs()) {
        let of = distribution(extents, devices, &mut Choices(&bytes));
        prop_assert_eq!(derive(&of, &of).movement(), Movement::Nothing);
        let all = Distribution::replicas(extents, devices as usize).unwrap();
        prop_assert_eq!(derive(&all, &of).movement(), Movement::Nothing);
        let terms = of.summed();
        prop_assert_eq!(derive(&terms, &terms).total(), 0);
    }

    #[test]
    fn what_arrives_is_what_is_needed_and_not_held((extents, devices, bytes) in inputs()) {
        let (from, to) = pair(extents, devices, &bytes);
        let moved = derive(&from, &to);
        let terms = if from.is_sum() { from.copies() as u64 } else { 1 };
        let needed: u64 = (0..to.devices()).map(|d| to.shard(d).elements()).sum();
        let kept: u64 = moved.kept().iter().map(Shard::elements).sum();
        prop_assert_eq!(moved.total(), needed * terms - kept);
        prop_assert_eq!(needed, extents[0] * extents[1] * to.copies() as u64);
    }

    #[test]
    fn all_gather_is_the_way_to_replicas((extents, devices, bytes) in inputs()) {
        let of = distribution(extents, devices, &mut Choices(&bytes));
        let all = Distribution::replicas(extents, devices as usize).unwrap();
        let kind = derive(&of, &all).movement();
        let expected = if of.shard(0).elements() == extents[0] * extents[1]
            && (0..of.devices()).all(|d| of.shard(d) == of.shard(0))
        {
            Movement::Nothing
        } else {
            Movement::AllGather
        };
        prop_assert_eq!(kind, expected, "{}", of);
    }

    #[test]
    fn runs_are_sets((a, b) in sets()) {
        let (left, right) = (runs(&a), runs(&b));
        let both: BTreeSet<u64> = a.intersection(&b).copied().collect();
        prop_assert_eq!(left.intersection(&right), runs(&both));
        prop_assert_eq!(left.iter().flatten().collect::<BTreeSet<_>>(), a.clone());
        prop_assert_eq!(left.indices(), a.len() as u64);
        prop_assert_eq!(left.is_empty(), a.is_empty());
        prop_assert_eq!(left.is_within(&right), a.is_subset(&b));
        prop_assert_eq!(left.len(), left.iter().count());
        for i in 0..26 {
            prop_assert_eq!(left.contains(i), a.contains(&i));
        }
        let union: Runs = left.iter().chain(right.iter()).collect();
        prop_assert_eq!(union, runs(&a.union(&b).copied().collect()));
        for pair in left.iter().collect::<Vec<_>>().windows(2) {
            prop_assert!(pair[0].end < pair[1].start);
        }
    }
}

#[test]
fn a_rotation_is_a_latin_square_that_begins_at_home() {
    for p in 1..=64 {
        let order = Rotation::new(p).unwrap();
        for device in 0..p {
            let row: BTreeSet<_> = (0..p).map(|step| order.shard(device, step)).collect();
            let column: BTreeSet<_> = (0..p).map(|other| order.shard(other, device)).collect();
            assert_eq!((row.len(), column.len()), (p, p));
            assert_eq!(order.shard(device, 0), device);
            for shard in 0..p {
                assert_eq!(order.shard(device, order.step(device, shard)), shard);
                let at = order.layout().at(&[device as i64, shard as i64]);
                assert_eq!(at as usize % p, order.shard(device, shard));
            }
        }
        // Beyond the devices it counts on.
        assert_eq!(order.shard(usize::MAX, usize::MAX), {
            let rest = usize::MAX % p;
            (rest + rest) % p
        });
    }
}

#[test]
fn wrong_orders_are_refused() {
    for p in 2..=8 {
        let late = Rotation::prove(p, |d, s| (d + s + 1) % p).unwrap_err();
        assert!(late.to_string().contains("not the device's own"), "{late}");
        let still = Rotation::prove(p, |d, _| d).unwrap_err();
        assert!(still.to_string().contains("in step 0"), "{still}");
        let beyond = Rotation::prove(p, |d, s| d + s).unwrap_err();
        assert!(beyond.to_string().contains("no such shard"), "{beyond}");
        // Each row is a permutation, the columns are not.
        // Each device's shards are a permutation, those of a step are not.
        let own_first = |d, s| match s {
            0 => d,
            _ if s <= d => s - 1,
            _ => s,
        };
        match Rotation::prove(p, own_first) {
            Ok(()) => assert_eq!(p, 2),
            Err(error) => {
                assert!(error.to_string().contains("does so too"), "{error}");
            }
        }
    }
    assert_eq!(Rotation::new(65).unwrap_err().code(), "devices");
    assert_eq!(Rotation::prove(0, |_, _| 0).unwrap_err().code(), "devices");
}
