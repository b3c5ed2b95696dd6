//! Derived layouts against brute force on random patterns: the counts, their survival under translation, bijectivity, and optimality against
//! every swizzle and padding tried out by the oracle itself.

use std::collections::{BTreeMap, BTreeSet};

use layout_core::banks::Access;
use layout_core::derive::{Derivation, Family, Pattern, Status, Tile, derive};

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: u64) -> i64 {
        ((self.next() >> 16) % n) as i64
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

/// Wavefronts from the definition: sets of words for each bank; -1 is an inactive lane.
fn oracle(access: Access, addresses: &[i64; 32]) -> u32 {
    let name = access.name();
    let matrix = name.contains("matrix");
    let width = access.bytes() as usize;
    let lanes = if matrix {
        8 * name.as_bytes()[name.find(".x").unwrap() + 2..][..1]
            .iter()
            .map(|c| usize::from(c - b'0'))
            .sum::<usize>()
    } else {
        32
    };
    let mut phase = if matrix { 8 } else { (128 / width).min(32) };
    let agree = |by: usize| {
        (0..32)
            .all(|l| addresses[l] < 0 || addresses[l ^ by] < 0 || addresses[l] == addresses[l ^ by])
    };
    if name.starts_with("ld.") && width >= 8 && (agree(1) || agree(2)) {
        phase *= 2;
    }
    addresses[..lanes]
        .chunks(phase)
        .map(|chunk| {
            let mut banks: BTreeMap<i64, BTreeSet<i64>> = BTreeMap::new();
            for address in chunk.iter().filter(|&&a| a >= 0) {
                assert_eq!(address % width as i64, 0, "misaligned");
                for byte in 0..width as i64 {
                    banks
                        .entry((address + byte) / 4 % 32)
                        .or_default()
                        .insert((address + byte) / 4);
                }
            }
            banks.values().map(BTreeSet::len).max().unwrap_or(0) as u32
        })
        .sum()
}

fn count(
    tile: Tile,
    pattern: &Pattern,
    at: &dyn Fn(i64, i64) -> i64,
    by: &dyn Fn(i64, i64) -> (i64, i64),
) -> u32 {
    let addresses = pattern.elements.map(|e| {
        if e < 0 {
            return -1;
        }
        let (row, col) = by(e / tile.cols, e % tile.cols);
        tile.elem_bytes * at(row, col)
    });
    oracle(pattern.access, &addresses)
}

/// A random pattern: linear over the index bits, or a strided box, or anything.
fn random_pattern(random: &mut Random, tile: Tile) -> Pattern {
    let accesses = [
        "ld.32",
        "ld.64",
        "ld.128",
        "st.32",
        "st.64",
        "st.128",
        "ldmatrix.x4",
        "ldmatrix.x2",
        "stmatrix.x4",
        "cp.async.16",
        "cp.async.4",
        "ld.16",
        "st.16",
    ];
    loop {
        let access: Access = random.pick(&accesses).parse().unwrap();
        let bytes = i64::from(access.bytes());
        let unit = (bytes / tile.elem_bytes).max(1);
        let units = tile.rows * tile.cols / unit;
        if (tile.cols * tile.elem_bytes) % bytes != 0 || units < 32 {
            continue;
        }
        let mut elements = [-1_i64; 32];
        match random.below(4) {
            // Distinct index bits for the lane bits.
            0 | 1 if units.count_ones() == 1 => {
                let bits = i64::from(units.trailing_zeros());
                let mut chosen = Vec::new();
                while chosen.len() < 5 {
                    let bit = random.below(bits as u64);
                    if !chosen.contains(&bit) {
                        chosen.push(bit);
                    }
                }
                for (lane, e) in elements.iter_mut().enumerate() {
                    *e = unit
                        * (0..5)
                            .map(|i| ((lane as i64 >> i) & 1) << chosen[i])
                            .sum::<i64>();
                }
            }
            // A box with strides.
            0..=2 => {
                let (a, b) = random.pick(&[(4, 8), (8, 4), (16, 2), (2, 16), (32, 1)]);
                let (s, d) = (
                    random.below(units as u64 / a as u64 + 1),
                    random.below(units as u64 / b as u64 + 1),
                );
                for (lane, e) in elements.iter_mut().enumerate() {
                    let lane = lane as i64;
                    *e = unit * (((lane % a) * s + (lane / a) * d) % units);
                }
            }
            // Anything, some lanes inactive.
            _ => {
                for e in &mut elements {
                    if access.matrices().is_some() || random.below(6) > 0 {
                        *e = unit * random.below(units as u64);
                    }
                }
            }
        }
        let active: Vec<i64> = elements[..access.lanes() as usize]
            .iter()
            .copied()
            .filter(|&e| e >= 0)
            .collect();
        let distinct: BTreeSet<i64> = active.iter().copied().collect();
        if active.is_empty() || (!access.is_load() && distinct.len() < active.len()) {
            continue;
        }
        return Pattern { access, elements };
    }
}

fn check(tile: Tile, patterns: &[Pattern], found: &Derivation, random: &mut Random) {
    let context = || {
        format!(
            "{tile:?} {patterns:?} {:?} {:?} {}",
            found.layout, found.matrix, found.certificate
        )
    };
    let at = |row: i64, col: i64| found.at(tile, row, col);
    // Every element its own offset, all below the size it says.
    let mut taken = vec![false; found.cosize as usize];
    for row in 0..tile.rows {
        for col in 0..tile.cols {
            assert!(
                !std::mem::replace(&mut taken[at(row, col) as usize], true),
                "{}",
                context()
            );
        }
    }
    assert_eq!(taken.last(), Some(&true), "{}", context());
    assert_eq!(
        found.bijective,
        found.cosize == tile.rows * tile.cols,
        "{}",
        context()
    );
    let mut total = 0;
    for (pattern, said) in patterns.iter().zip(found.accesses()) {
        assert_eq!(
            count(tile, pattern, &at, &|r, c| (r, c)),
            said.wavefronts,
            "{}",
            context()
        );
        assert!(said.ideal <= said.wavefronts);
        total += said.wavefronts;
        let active: Vec<(i64, i64)> = pattern.elements[..pattern.access.lanes() as usize]
            .iter()
            .filter(|&&e| e >= 0)
            .map(|e| (e / tile.cols, e % tile.cols))
            .collect();
        let aligned = tile.elem_bytes & -tile.elem_bytes;
        let unit = (i64::from(pattern.access.bytes()) / aligned).max(1);
        let most = (
            active.iter().map(|a| a.0).max().unwrap(),
            active.iter().map(|a| a.1).max().unwrap(),
        );
        let all_bits = active.iter().fold((0, 0), |b, a| (b.0 | a.0, b.1 | a.1));
        for _ in 0..12 {
            let (dr, dc) = (
                random.below((tile.rows - most.0) as u64),
                unit * random.below((tile.cols - most.1) as u64) / unit,
            );
            let dc = dc / unit * unit;
            let carries = dr & all_bits.0 != 0 || dc & all_bits.1 != 0;
            let holds = !carries && !found.certificate.only_as_given;
            if found.certificate.every_translation || holds {
                // Inactive lanes stay inactive; unread ones of ldmatrix.x2 may lie anywhere.
                let moved = |r: i64, c: i64| ((r + dr) % tile.rows, (c + dc) % tile.cols);
                assert_eq!(
                    count(tile, pattern, &at, &moved),
                    said.wavefronts,
                    "({dr},{dc}) {}",
                    context()
                );
            }
        }
    }
    let ideal: u32 = found.accesses().iter().map(|a| a.ideal).sum();
    assert_eq!(
        found.status == Status::Optimal,
        total == ideal,
        "{}",
        context()
    );
    assert!(
        found.least <= found.lower_bound && found.lower_bound <= total && found.least >= ideal,
        "{}",
        context()
    );
    let all = |of: &dyn Fn(i64, i64) -> i64| {
        (0..tile.rows).all(|r| (0..tile.cols).all(|c| at(r, c) == of(r, c)))
    };
    let plain = all(&|r, c| r * tile.cols + c) || all(&|r, c| c * tile.rows + r);
    let named = found.layout.is_some() && found.family != Family::Tma;
    assert_eq!(
        found.family == Family::Plain,
        plain && named,
        "{}",
        context()
    );
    if let Some(rotation) = &found.rotation {
        let (outer, inner) = rotation.layouts(tile.rows, tile.cols).expect("two layouts");
        for row in 0..tile.rows {
            for col in 0..tile.cols {
                assert_eq!(outer.index(inner.at(&[row, col])), at(row, col));
            }
        }
    }
    if let Some(worst) = found.certificate.worst_translated {
        assert!(worst > total, "{}", context());
    }
}

/// Tiles of which at least one extent is odd, or whose rows are no power of two of chunks.
const ODD_TILES: [(i64, i64); 10] = [
    (24, 112),
    (48, 40),
    (33, 40),
    (20, 24),
    (36, 48),
    (17, 72),
    (60, 28),
    (40, 56),
    (9, 104),
    (50, 20),
];

#[test]
fn no_rotation_beats_the_derived_layout() {
    let mut random = Random(0x0dd);
    let (mut rotated, mut impossible) = (0, 0);
    for _ in 0..80 {
        let (rows, cols) = random.pick(&ODD_TILES);
        let tile = Tile {
            rows,
            cols,
            elem_bytes: random.pick(&[2, 4, 4, 8]),
        };
        let k = 1 + random.below(3) as usize;
        let patterns: Vec<Pattern> = (0..k).map(|_| random_pattern(&mut random, tile)).collect();
        let found = derive(tile, &patterns, Family::Any).unwrap();
        check(tile, &patterns, &found, &mut random);
        rotated += u32::from(found.family == Family::Rotated);
        impossible += u32::from(found.status == Status::Impossible);
        // Every step of a chunk, by the definition.
        let widest = patterns.iter().map(|p| i64::from(p.access.bytes())).max();
        let chunk = (widest.unwrap().max(4) / tile.elem_bytes).max(1);
        for pad in (0..128 / tile.elem_bytes).step_by(chunk as usize) {
            for width in [cols, cols + pad] {
                for (every, shift) in [1, 2, 3, 4, 8].into_iter().flat_map(|every| {
                    (chunk..width)
                        .step_by(chunk as usize)
                        .map(move |shift| (every, shift))
                }) {
                    let at = |r: i64, c: i64| r * (cols + pad) + (c + r / every * shift) % width;
                    let mut total = 0;
                    for pattern in &patterns {
                        total += count(tile, pattern, &at, &|r, c| (r, c));
                        if total >= found.wavefronts() {
                            break;
                        }
                    }
                    assert!(
                        found.wavefronts() <= total || !found.certificate.finished(),
                        "{tile:?} {patterns:?}: pad {pad}, {shift} each {every}; {}",
                        found.certificate
                    );
                    if found.status == Status::Optimal {
                        break;
                    }
                }
            }
        }
    }
    assert!(rotated > 5 && impossible > 5, "{rotated} {impossible}");
}

#[test]
fn the_bound_for_every_layout_holds_for_random_permutations_of_vectors() {
    let mut random = Random(77);
    let mut above = 0;
    for _ in 0..200 {
        let (rows, cols) = random.pick(&ODD_TILES);
        let tile = Tile {
            rows,
            cols,
            elem_bytes: random.pick(&[1, 2, 4, 8, 16]),
        };
        let k = 1 + random.below(3) as usize;
        let patterns: Vec<Pattern> = (0..k).map(|_| random_pattern(&mut random, tile)).collect();
        let found = derive(tile, &patterns, Family::Any).unwrap();
        let ideal: u32 = found.accesses().iter().map(|a| a.ideal).sum();
        above += u32::from(found.least > ideal);
        let widest = patterns.iter().map(|p| i64::from(p.access.bytes())).max();
        let vector = (widest.unwrap() / tile.elem_bytes).max(1);
        // Vectors to groups of banks, those that a phase asks for by turns and the others at random.
        for _ in 0..50 {
            let mut place = BTreeMap::new();
            let mut next = random.below(8);
            let mut at = BTreeMap::new();
            for pattern in &patterns {
                for &element in pattern.elements.iter().filter(|&&e| e >= 0) {
                    let slot = place.len() as i64;
                    let slot = *place.entry(element / vector).or_insert_with(|| {
                        next += 1;
                        8 * slot * 32 + next
                    });
                    at.insert(element, slot * vector + element % vector);
                }
            }
            let of = |r: i64, c: i64| at[&(r * cols + c)];
            let total: u32 = patterns
                .iter()
                .map(|p| count(tile, p, &of, &|r, c| (r, c)))
                .sum();
            assert!(found.least <= total, "{tile:?} {patterns:?}");
        }
    }
    assert!(above > 10, "{above}");
}

/// The two tiles of which an outside check said that rotations do better than all other families.
#[test]
fn known_rotations_are_found() {
    let pattern = |access: &str, lanes: &str| {
        Pattern::from_layout(
            access.parse().unwrap(),
            &layout_core::Layout::parse(lanes).unwrap(),
        )
        .unwrap()
    };
    let mut random = Random(1);
    let wide = Tile::new(24, 112, 4);
    let store = [pattern("st.128", "(8,4):(224,4)")];
    let found = derive(wide, &store, Family::Any).unwrap();
    check(wide, &store, &found, &mut random);
    assert_eq!(
        (found.status, found.family, found.wavefronts()),
        (Status::Optimal, Family::Rotated, 4)
    );
    let tall = Tile::new(48, 40, 4);
    let both = [
        pattern("ld.32", "32:40"),
        pattern("st.128", "(10,3):(4,40)"),
    ];
    let found = derive(tall, &both, Family::Any).unwrap();
    check(tall, &both, &found, &mut random);
    assert_eq!(
        (found.family, found.wavefronts(), found.least, found.cosize),
        (Family::Rotated, 8, 8, 48 * 40)
    );
    // A bound of the other families is no bound of rotations.
    let padded = derive(tall, &both, Family::Padded).unwrap();
    assert_eq!(
        (padded.status, padded.lower_bound, padded.least),
        (Status::Impossible, 10, 8)
    );
}

const TILES: [(i64, i64); 12] = [
    (16, 32),
    (32, 32),
    (64, 64),
    (8, 128),
    (128, 32),
    (64, 16),
    (32, 64),
    (256, 256),
    (48, 64),
    (64, 96),
    (24, 40),
    (12, 20),
];

#[test]
fn a_thousand_random_derivations_survive_brute_force() {
    let mut random = Random(0xdead_beef);
    let mut statuses = [0; 3];
    for case in 0..1000 {
        let (rows, cols) = random.pick(&TILES);
        let tile = Tile {
            rows,
            cols,
            elem_bytes: random.pick(&[1, 2, 2, 4, 4, 8, 16]),
        };
        let tile = if rows * cols > 20_000 && case % 10 != 0 {
            Tile { rows: 64, ..tile }
        } else {
            tile
        };
        let k = 1 + random.below(4) as usize;
        let patterns: Vec<Pattern> = (0..k).map(|_| random_pattern(&mut random, tile)).collect();
        let family = random.pick(&[
            Family::Any,
            Family::Any,
            Family::Any,
            Family::Any,
            Family::Any,
            Family::Swizzle,
            Family::Permuted,
            Family::Padded,
            Family::F2,
            Family::Rotated,
            Family::Plain,
            Family::Tma,
        ]);
        match derive(tile, &patterns, family) {
            Ok(found) => {
                statuses[found.status as usize] += 1;
                check(tile, &patterns, &found, &mut random);
            }
            Err(error) => assert_eq!(error.code(), "family_does_not_apply", "{error}"),
        }
    }
    println!("{statuses:?}");
    assert!(statuses[0] > 150 && statuses[1] > 150, "{statuses:?}");
}

#[test]
fn no_swizzle_and_no_padding_beats_the_derived_layout() {
    let mut random = Random(42);
    for _ in 0..150 {
        let (rows, cols) = random.pick(&[(16, 32), (32, 32), (64, 64), (8, 128), (64, 16)]);
        let tile = Tile {
            rows,
            cols,
            elem_bytes: random.pick(&[2, 4, 8]),
        };
        let k = 1 + random.below(3) as usize;
        let patterns: Vec<Pattern> = (0..k).map(|_| random_pattern(&mut random, tile)).collect();
        let found = derive(tile, &patterns, Family::Any).unwrap();
        let total = |at: &dyn Fn(i64, i64) -> i64| -> u32 {
            patterns
                .iter()
                .map(|p| count(tile, p, at, &|r, c| (r, c)))
                .sum()
        };
        let widest = patterns
            .iter()
            .map(|p| i64::from(p.access.bytes()) / tile.elem_bytes)
            .max()
            .unwrap()
            .max(1);
        for pad in (0..128).step_by(widest as usize) {
            assert!(found.wavefronts() <= total(&|r, c| r * (cols + pad) + c));
        }
        let low = widest.trailing_zeros();
        for b in 1..4_i64 {
            for m in i64::from(low)..6 {
                for s in b..6 {
                    if m + s + b <= i64::from((rows * cols).trailing_zeros()) {
                        let swizzled = |x: i64| x ^ ((x >> s) & (((1 << b) - 1) << m));
                        assert!(found.wavefronts() <= total(&|r, c| swizzled(r * cols + c)));
                    }
                }
            }
        }
    }
}

#[test]
fn elements_of_any_width_up_to_16_bytes() {
    let mut random = Random(4);
    for elem_bytes in 1..=16 {
        for (rows, cols) in [(32, 64), (48, 48), (64, 96)] {
            let tile = Tile {
                rows,
                cols,
                elem_bytes,
            };
            // A column of rows and a row, by the widest access that an element is aligned to, but at least a word.
            let aligned = elem_bytes & -elem_bytes;
            let width = aligned.max(4);
            let access: Access = format!("ld.{}", 8 * width).parse().unwrap();
            let unit = width / aligned;
            let elements: [i64; 32] = core::array::from_fn(|lane| lane as i64 * cols);
            let row: [i64; 32] = core::array::from_fn(|lane| lane as i64 * unit % cols);
            let patterns = [
                Pattern { access, elements },
                Pattern {
                    access,
                    elements: row,
                },
            ];
            let found =
                derive(tile, &patterns, Family::Any).unwrap_or_else(|e| panic!("{tile:?}: {e}"));
            check(tile, &patterns, &found, &mut random);
            assert_eq!(
                found.status,
                Status::Optimal,
                "{tile:?} {}",
                found.certificate
            );
        }
    }
}

/// The least total over every F2-linear layout of 64 units of 16 bytes, by trying all 2^18 images of the six unit bits in the
/// three bank bits.
fn best_linear(tile: Tile, patterns: &[Pattern]) -> u32 {
    let unit = 16 / tile.elem_bytes;
    // Each phase as the units it asks for.
    let phases: Vec<Vec<i64>> = patterns
        .iter()
        .flat_map(|p| {
            p.elements.chunks(8).map(|c| {
                c.iter()
                    .map(|e| e / unit)
                    .collect::<BTreeSet<_>>()
                    .into_iter()
                    .collect::<Vec<_>>()
            })
        })
        .collect();
    (0..1_u32 << 18)
        .map(|images| {
            let mut bank = [0_u32; 64];
            for u in 1..64_usize {
                let low = u.trailing_zeros();
                bank[u] = bank[u & (u - 1)] ^ (images >> (3 * low) & 7);
            }
            phases
                .iter()
                .map(|phase| {
                    let mut count = [0; 8];
                    for &u in phase {
                        count[bank[u as usize] as usize] += 1;
                    }
                    count.into_iter().max().unwrap_or(0)
                })
                .sum::<u32>()
        })
        .min()
        .unwrap_or(0)
}

#[test]
fn the_search_finds_the_linear_optimum() {
    let mut random = Random(99);
    let tile = Tile {
        rows: 8,
        cols: 64,
        elem_bytes: 2,
    };
    let mut impossible = 0;
    for case in 0..6 {
        let patterns: Vec<Pattern> = (0..5)
            .map(|_| {
                // No pair rule, so that phases are always eight lanes; ldmatrix may repeat units.
                let access = Access::LdMatrix {
                    matrices: layout_core::banks::Matrices::X4,
                    trans: false,
                };
                let images: Vec<i64> = (0..5).map(|_| random.below(64)).collect();
                let elements = core::array::from_fn(|lane| {
                    8 * if case % 2 == 0 {
                        (0..5)
                            .filter(|i| lane >> i & 1 == 1)
                            .fold(0, |x, i| x ^ images[i])
                    } else {
                        random.below(64)
                    }
                });
                Pattern { access, elements }
            })
            .collect();
        let found = derive(tile, &patterns, Family::F2).unwrap();
        assert!(
            found.certificate.examined().all(|e| e.finished),
            "{}",
            found.certificate
        );
        assert_eq!(
            found.wavefronts(),
            best_linear(tile, &patterns),
            "{patterns:?} {}",
            found.certificate
        );
        assert_eq!(found.lower_bound, found.wavefronts());
        impossible += usize::from(found.status == Status::Impossible);
    }
    assert!(impossible > 1);
}
