//! Distributions and redistributions against brute force: every element of small matrices on up to 8 devices.

mod laws;
mod random;
mod refused;
mod table;

use std::collections::{BTreeMap, BTreeSet};

use layout_core::devices::{Distribution, Movement, Redistribution, Shard};
use proptest::prelude::*;
use random::{Choices, distribution, held, places};

/// The elements of a shard, one by one.
fn elements(shard: &Shard) -> BTreeSet<(u64, u64)> {
    let columns = || shard.columns.iter().flatten();
    shard
        .rows
        .iter()
        .flatten()
        .flat_map(|row| columns().map(move |column| (row, column)))
        .collect()
}

/// Extents, devices and choices.
fn inputs() -> impl Strategy<Value = ([u64; 2], u64, Vec<u8>)> {
    let extents = [1..=13_u64, 1..=11_u64];
    (
        extents,
        1..=8_u64,
        prop::collection::vec(any::<u8>(), 0..48),
    )
}

/// Two distributions of one matrix; the first, now and then, of terms.
fn pair(extents: [u64; 2], devices: u64, bytes: &[u8]) -> (Distribution, Distribution) {
    let mut choices = Choices(bytes);
    let terms = choices.below(2) == 1;
    let from = distribution(extents, devices, &mut choices);
    let to = distribution(extents, devices, &mut choices);
    (if terms { from.summed() } else { from }, to)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn shards_and_holders_are_what_the_layout_says((extents, devices, bytes) in inputs()) {
        let of = distribution(extents, devices, &mut Choices(&bytes));
        let held = held(&of);
        prop_assert_eq!(of.devices() as u64, devices);
        for (device, expected) in held.iter().enumerate() {
            let shard = of.shard(device);
            prop_assert_eq!(&elements(&shard), expected, "{} device {}", of, device);
            prop_assert_eq!(shard.elements(), expected.len() as u64);
        }
        for row in 0..extents[0] {
            for column in 0..extents[1] {
                let holds = |d: &usize| held[*d].contains(&(row, column));
                let expected: Vec<usize> = (0..of.devices()).filter(holds).collect();
                prop_assert_eq!(expected.len(), of.copies());
                prop_assert_eq!(of.holders(row, column), expected, "{} at {},{}", of, row, column);
            }
        }
        prop_assert!(of.holders(extents[0], 0).is_empty());
        prop_assert!(of.shard(of.devices()).is_empty());
    }

    #[test]
    fn everything_arrives_exactly_once((extents, devices, bytes) in inputs()) {
        let (from, to) = pair(extents, devices, &bytes);
        let moved = Redistribution::derive(&from, &to).expect("comparable");
        let (before, after) = (held(&from), held(&to));
        // What arrives at each device: of each element, from which devices.
        let mut arrived = vec![BTreeMap::<(u64, u64), Vec<usize>>::new(); from.devices()];
        let mut links = BTreeMap::new();
        for (device, kept) in moved.kept().iter().enumerate() {
            for element in elements(kept) {
                arrived[device].entry(element).or_default().push(device);
            }
        }
        for piece in moved.pieces() {
            let moving = elements(&piece.shard);
            prop_assert!(piece.from != piece.to && !moving.is_empty());
            prop_assert_eq!(piece.adds, from.is_sum());
            prop_assert!(moving.is_subset(&before[piece.from]), "not held: {} -> {}", from, to);
            *links.entry((piece.from, piece.to)).or_insert(0) += moving.len() as u64;
            for element in moving {
                arrived[piece.to].entry(element).or_default().push(piece.from);
            }
        }
        for (device, needed) in after.iter().enumerate() {
            let got: BTreeSet<_> = arrived[device].keys().copied().collect();
            prop_assert_eq!(&got, needed, "{} -> {} device {}", from, to, device);
            for (&(row, column), sources) in &mut arrived[device] {
                sources.sort_unstable();
                let holders: Vec<usize> =
                    (0..from.devices()).filter(|&d| before[d].contains(&(row, column))).collect();
                let expected = if from.is_sum() {
                    holders
                } else {
                    // The first holder from the device itself on, in rotation.
                    let order = (0..from.devices()).map(|i| (device + i) % from.devices());
                    order.filter(|d| holders.contains(d)).take(1).collect()
                };
                prop_assert_eq!(&*sources, &expected, "{} -> {} at {},{}", from, to, row, column);
            }
        }
        for a in 0..from.devices() {
            for b in 0..from.devices() {
                let carried = links.get(&(a, b)).copied().unwrap_or(0);
                prop_assert_eq!(moved.link_elements(a, b), carried);
            }
        }
        prop_assert_eq!(moved.total(), links.values().sum::<u64>());
        prop_assert_eq!(moved.busiest_link(), links.values().copied().max().unwrap_or(0));
        for (found, (needed, device)) in
            moved.certificate().arrivals().iter().zip(after.iter().zip(0..))
        {
            let terms = if from.is_sum() { from.copies() } else { 1 };
            prop_assert_eq!(found.needed, (needed.len() * terms) as u64);
            prop_assert_eq!(found.kept + found.received, found.needed);
            let pieces = moved.pieces().iter().filter(|p| p.to == device).count();
            prop_assert_eq!(found.pieces, pieces);
        }
    }

    #[test]
    fn the_kind_is_what_the_pieces_are((extents, devices, bytes) in inputs()) {
        let (from, to) = pair(extents, devices, &bytes);
        let moved = Redistribution::derive(&from, &to).expect("comparable");
        let (before, after) = (held(&from), held(&to));
        let all = 0..from.devices();
        let sets: Vec<_> = moved.pieces().iter().map(|p| (p.from, p.to, elements(&p.shard))).collect();
        let keeps_all = all.clone().all(|d| before[d].is_subset(&after[d]));
        let gets_own = all.clone().all(|d| after[d].is_subset(&before[d]));
        match moved.movement() {
            Movement::Nothing => {
                prop_assert!(gets_own && sets.is_empty());
            }
            Movement::AllGather => {
                prop_assert!(!from.is_sum() && keeps_all && !gets_own);
                prop_assert!(sets.iter().all(|(f, _, set)| *set == before[*f]));
            }
            Movement::AllReduce => {
                prop_assert!(from.is_sum() && before == after);
            }
            Movement::ReduceScatter => {
                prop_assert!(from.is_sum() && gets_own && before != after);
                let owners: usize = after.iter().map(BTreeSet::len).sum();
                prop_assert_eq!(owners as u64, extents[0] * extents[1]);
            }
            Movement::AllToAll => {
                prop_assert!(!from.is_sum());
                // Nobody sends an element to two devices, or sends what it keeps.
                let mut sent = BTreeSet::new();
                for (f, _, set) in &sets {
                    for &element in set {
                        prop_assert!(sent.insert((*f, element)));
                        prop_assert!(!after[*f].contains(&element));
                    }
                }
                // Whoever exchanges with the same device exchanges with each other.
                let gives = |f: usize, t: usize| {
                    let set: BTreeSet<_> = before[f].intersection(&after[t]).collect();
                    f == t && !set.is_empty() || sets.iter().any(|(a, b, _)| (*a, *b) == (f, t))
                };
                for (f, t, _) in &sets {
                    for (g, u, _) in &sets {
                        if f == g || t == u {
                            prop_assert!(gives(*f, *u) && gives(*g, *t), "{} -> {}", from, to);
                        }
                    }
                }
            }
            Movement::PointToPoint => {
                let gathers = keeps_all && sets.iter().all(|(f, _, set)| *set == before[*f]);
                prop_assert!(!gathers || from.is_sum());
                prop_assert!(!sets.is_empty() && before != after);
            }
        }
    }
}
