//! The proofs against brute force: an oracle that shares no code with them, from the definition of banks, phases and words.

use std::collections::{BTreeMap, BTreeSet};

use layout_core::banks::Access;
use layout_core::proof::{
    Method, Obligation, ProofError, Region, bijective, carry_free, covers_exactly_once, injective,
    prove_access,
};
use layout_core::{IntTuple, Layout, Swizzle, Swizzled};

/// A xorshift generator: enough to spread cases, the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: u64) -> i64 {
        (self.next() >> 16).rem_euclid(n) as i64
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

/// Wavefronts from the definition: sets of words for each bank.
fn oracle(name: &str, addresses: &[i64]) -> u32 {
    let parts: Vec<&str> = name.split('.').collect();
    let (width, mut phase, lanes) = match parts[0] {
        "ldmatrix" | "stmatrix" => (16, 8, 8 * parts[1][1..].parse::<usize>().unwrap()),
        "cp" => {
            let width: usize = parts[2].parse().unwrap();
            (width, 128 / width, 32)
        }
        _ => {
            let width = parts[1].parse::<usize>().unwrap() / 8;
            (width, (128 / width).min(32), 32)
        }
    };
    let pairs = |by: usize| (0..32).all(|l| addresses[l] == addresses[l ^ by]);
    if parts[0] == "ld" && width >= 8 && (pairs(1) || pairs(2)) {
        phase *= 2;
    }
    addresses[..lanes]
        .chunks(phase)
        .map(|chunk| {
            let mut banks: BTreeMap<i64, BTreeSet<i64>> = BTreeMap::new();
            for address in chunk {
                for byte in 0..width as i64 {
                    let word = (address + byte) / 4;
                    banks.entry(word % 32).or_default().insert(word);
                }
            }
            banks.values().map(BTreeSet::len).max().unwrap_or(0) as u32
        })
        .sum()
}

fn swizzle(random: &mut Random, low: u32) -> Swizzle {
    let b = random.below(4) as u32;
    if b == 0 {
        return Swizzle::IDENTITY;
    }
    let s = (b as i32) + random.below(3) as i32;
    Swizzle::new(
        b,
        low + random.below(3) as u32,
        if random.below(5) == 0 { -s } else { s },
    )
    .unwrap()
}

/// A map (lane, rest) to byte offsets: power-of-two or padded strides, swizzled or not.
fn random_map(random: &mut Random, bytes: i64) -> Swizzled {
    let low = bytes.trailing_zeros();
    let padded = random.below(2) == 0;
    let stride = |random: &mut Random| {
        if padded {
            bytes * random.below(40)
        } else if random.below(8) == 0 {
            0
        } else {
            bytes << random.below(9)
        }
    };
    let split = random.below(6) as u32;
    let (a, b) = (1_i64 << split, 32 >> split);
    let lane = Layout::new(
        IntTuple::flat(&[a, b]).unwrap(),
        IntTuple::flat(&[stride(random), stride(random)]).unwrap(),
    )
    .unwrap();
    let mut modes = vec![lane];
    for _ in 0..random.below(3) {
        let extent = random.pick(&[1, 2, 2, 3, 4, 5]);
        let step = match random.below(3) {
            0 => stride(random),
            1 => 8192 << random.below(3),
            _ => 1152 * bytes,
        };
        modes.push(Layout::mode(extent, step).unwrap());
    }
    let offset = if random.below(3) == 0 {
        bytes * random.below(16)
    } else {
        0
    };
    Swizzled::new(swizzle(random, low), offset, Layout::tuple(&modes).unwrap()).unwrap()
}

#[test]
fn prove_access_agrees_with_brute_force_on_20_000_cases() {
    let accesses: Vec<Access> = Access::all().filter(|&a| a != Access::Ffma).collect();
    let mut random = Random(0x5eed);
    let (mut ranks, mut translations, mut enumerations) = (0, 0, 0);
    for case in 0..20_000 {
        let access = random.pick(&accesses);
        let map = random_map(&mut random, i64::from(access.bytes()));
        let proof = prove_access(access, &map)
            .unwrap_or_else(|e| panic!("case {case}: {access} {map}: {e}"));
        let counts: Vec<u32> = (0..map.size() / 32)
            .map(|rest| {
                let addresses: Vec<i64> = (0..32).map(|lane| map.index(32 * rest + lane)).collect();
                oracle(access.name(), &addresses)
            })
            .collect();
        let (most, least) = (*counts.iter().max().unwrap(), *counts.iter().min().unwrap());
        assert_eq!(
            (proof.wavefronts, proof.least),
            (most, least),
            "case {case}: {access} {map} {proof:?}"
        );
        assert!(
            proof.ideal <= least,
            "case {case}: {access} {map} {proof:?}"
        );
        assert_eq!(
            counts[proof.worst_at as usize], most,
            "case {case}: {access} {map} {proof:?}"
        );
        match proof.method {
            Method::Rank => ranks += 1,
            Method::Translation => translations += 1,
            Method::Enumeration { .. } => enumerations += 1,
        }
    }
    assert!(
        ranks > 1000 && translations > 1000 && enumerations > 1000,
        "{ranks} {translations} {enumerations}"
    );
}

#[test]
fn a_refused_claim_names_two_lanes_that_collide() {
    let mut random = Random(77);
    let mut refused = 0;
    for _ in 0..3000 {
        let access: Access = random
            .pick(&["ld.32", "st.64", "ld.128", "ldmatrix.x4"])
            .parse()
            .unwrap();
        let map = random_map(&mut random, i64::from(access.bytes()));
        let proof = prove_access(access, &map).unwrap();
        let at_most = |claimed| {
            Obligation::Wavefronts {
                access,
                map,
                claimed,
            }
            .discharge()
        };
        assert_eq!(at_most(proof.wavefronts).unwrap().proof, Some(proof));
        if proof.wavefronts > proof.ideal {
            let error = at_most(proof.wavefronts - 1).unwrap_err();
            let ProofError::TooManyWavefronts {
                lanes, bank, rest, ..
            } = error
            else {
                panic!("{error:?}");
            };
            let unit = i64::from(access.bytes().max(4));
            let address = |lane: u32| map.index(32 * rest + i64::from(lane));
            let banks = |lane| (0..unit / 4).map(move |w| (address(lane) / 4 + w) % 32);
            assert_ne!(
                address(lanes.0) / unit,
                address(lanes.1) / unit,
                "{map} {error}"
            );
            assert!(
                [lanes.0, lanes.1]
                    .into_iter()
                    .all(|l| banks(l).any(|b| b == i64::from(bank))),
                "{map} {error}"
            );
            refused += 1;
        }
    }
    assert!(refused > 500);
}

fn random_layout(random: &mut Random) -> Layout {
    let rank = 1 + random.below(3) as usize;
    let mut shape: Vec<i64> = (0..rank)
        .map(|_| random.pick(&[1, 2, 3, 4, 6, 8]))
        .collect();
    let mut stride = vec![0; rank];
    // Often compact in some order, sometimes off.
    let mut order: Vec<usize> = (0..rank).collect();
    for i in (1..rank).rev() {
        order.swap(i, random.below(i as u64 + 1) as usize);
    }
    let mut running = 1;
    for &i in &order {
        stride[i] = running;
        running *= shape[i];
    }
    match random.below(4) {
        0 => stride[0] = random.below(12),
        1 => shape[0] += 1,
        _ => {}
    }
    Layout::flat(&shape, &stride).unwrap()
}

#[test]
fn bijections_and_injections_agree_with_sets() {
    let mut random = Random(3);
    let mut found = [0; 4];
    for _ in 0..10_000 {
        let layout = random_layout(&mut random);
        let map = Swizzled::new(swizzle(&mut random, 0), 0, layout).unwrap();
        let image: BTreeSet<i64> = (0..map.size()).map(|i| map.index(i)).collect();
        let is_injective = image.len() as i64 == map.size();
        let is_bijective = is_injective && image.iter().copied().eq(0..map.size());
        assert_eq!(bijective(&map).is_ok(), is_bijective, "{map}");
        assert_eq!(injective(&map).is_ok(), is_injective, "{map}");
        if let Err(ProofError::Collision {
            first,
            second,
            offset,
        }) = injective(&map)
        {
            assert!(first != second && map.index(first) == offset && map.index(second) == offset);
        }
        let covers = layout.size() == 24
            && (0..24).eq((0..24).map(|i| layout.index(i)).collect::<BTreeSet<_>>());
        assert_eq!(covers_exactly_once(24, &layout).is_ok(), covers, "{layout}");
        found[usize::from(is_injective) + 2 * usize::from(is_bijective)] += 1;
    }
    assert!(
        found[0] > 100 && found[1] > 100 && found[3] > 100,
        "{found:?}"
    );
}

#[test]
fn carry_free_layouts_add_by_xor() {
    let mut random = Random(9);
    let (mut free, mut carrying) = (0, 0);
    for _ in 0..5000 {
        let modes: Vec<(i64, i64)> = (0..3)
            .map(|_| {
                (
                    random.pick(&[1, 2, 3, 4]),
                    random.pick(&[1, 2, 3, 4, 6, 8, 16, 32]),
                )
            })
            .collect();
        let base = random.pick(&[0, 0, 1, 64]);
        let layout = Layout::flat(
            &modes.iter().map(|m| m.0).collect::<Vec<_>>(),
            &modes.iter().map(|m| m.1).collect::<Vec<_>>(),
        )
        .unwrap();
        let by_xor = (0..layout.size()).all(|i| {
            let (a, b, c) = (
                i % modes[0].0,
                i / modes[0].0 % modes[1].0,
                i / modes[0].0 / modes[1].0,
            );
            base + layout.index(i) == base ^ (a * modes[0].1) ^ (b * modes[1].1) ^ (c * modes[2].1)
        });
        if carry_free(base, &layout).is_ok() {
            assert!(by_xor, "{layout}");
            free += 1;
        } else {
            carrying += 1;
        }
    }
    assert!(free > 100 && carrying > 100);
}

#[test]
fn obligations_are_discharged_or_refused_with_their_values() {
    let region = |base, bytes| Region { base, bytes };
    assert!(
        Obligation::Disjoint {
            a: region(0, 1024),
            b: region(1024, 1024)
        }
        .discharge()
        .is_ok()
    );
    assert_eq!(
        Obligation::Disjoint {
            a: region(0, 1025),
            b: region(1024, 1024)
        }
        .discharge(),
        Err(ProofError::Overlap { byte: 1024 })
    );
    assert_eq!(
        Obligation::Multiple {
            value: 1536,
            of: 1024
        }
        .discharge(),
        Err(ProofError::NotMultiple {
            value: 1536,
            of: 1024
        })
    );
    let rows = Swizzled::parse("(32,4):(8,2)").unwrap();
    assert_eq!(
        Obligation::Aligned {
            access: Access::Ld64,
            map: rows
        }
        .discharge(),
        Err(ProofError::NotMultiple { value: 2, of: 8 })
    );
    assert!(matches!(
        Obligation::CarryFree {
            base: 0,
            parts: Layout::parse("(32,4):(16,256)").unwrap()
        }
        .discharge(),
        Err(ProofError::Carry { leaf: 1, bit: 8 })
    ));
    let cover = Layout::parse("((4,8),2):((2,8),1)").unwrap();
    assert!(
        Obligation::Coverage {
            tile: 64,
            map: cover
        }
        .discharge()
        .is_ok()
    );
    assert_eq!(
        Obligation::Coverage {
            tile: 128,
            map: cover
        }
        .discharge(),
        Err(ProofError::SizeMismatch {
            size: 64,
            tile: 128
        })
    );
    assert_eq!(
        prove_access(Access::Ld32, &Swizzled::parse("(16,2):(4,64)").unwrap()),
        Err(ProofError::LaneMode {
            access: Access::Ld32,
            size: 16
        })
    );
}

#[test]
fn proofs_run_in_const() {
    const PROOF: u32 = match Swizzled::parse("Sw<3,4,3> o ((16,2),(4,4)):((128,16),(2048,32))") {
        Ok(map) => match prove_access(
            Access::LdMatrix {
                matrices: layout_core::banks::Matrices::X4,
                trans: false,
            },
            &map,
        ) {
            Ok(proof) => proof.wavefronts,
            Err(_) => 0,
        },
        Err(_) => 0,
    };
    assert_eq!(PROOF, 4);
}
