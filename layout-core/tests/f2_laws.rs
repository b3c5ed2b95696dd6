//! Laws of linear maps over F2, on pseudo-random matrices, against definitions written out.

use layout_core::f2::{F2Error, LinearMap};

/// A xorshift generator: enough to spread cases, the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn map(&mut self, in_bits: u32, out_bits: u32) -> LinearMap {
        let columns: Vec<u64> = (0..in_bits)
            .map(|_| self.next() & ((1 << out_bits) - 1))
            .collect();
        LinearMap::from_columns(&columns, out_bits).unwrap()
    }
}

#[test]
fn apply_is_linear() {
    let mut random = Random(1);
    for _ in 0..200 {
        let map = random.map(9, 7);
        let (x, y) = (random.next() & 511, random.next() & 511);
        assert_eq!(map.apply(x ^ y), map.apply(x) ^ map.apply(y));
        assert_eq!(map.apply(0), 0);
    }
}

#[test]
fn product_is_composition() {
    let mut random = Random(2);
    for _ in 0..50 {
        let (outer, inner) = (random.map(6, 8), random.map(7, 6));
        let product = outer.compose(&inner).unwrap();
        assert!((0..128).all(|x| product.apply(x) == outer.apply(inner.apply(x))));
    }
    let (a, b) = (Random(3).map(3, 4), Random(4).map(3, 4));
    assert_eq!(
        a.compose(&b),
        Err(F2Error::DimensionMismatch { left: 3, right: 4 })
    );
}

#[test]
fn inverse_undoes_and_only_bijections_have_one() {
    let mut random = Random(5);
    let mut invertible = 0;
    for _ in 0..200 {
        let map = random.map(6, 6);
        let mut images: Vec<u64> = (0..64).map(|x| map.apply(x)).collect();
        images.sort_unstable();
        images.dedup();
        assert_eq!(images.len() == 64, map.is_invertible());
        match map.inverse() {
            Ok(inverse) => {
                invertible += 1;
                assert!((0..64).all(|x| inverse.apply(map.apply(x)) == x));
                assert_eq!(map.compose(&inverse), LinearMap::identity(6));
            }
            Err(e) => assert_eq!(e.code(), "singular"),
        }
    }
    assert!(invertible > 20);
}

#[test]
fn rank_kernel_and_image_count_what_they_say() {
    let mut random = Random(7);
    for _ in 0..100 {
        let map = random.map(8, 5);
        let mut images: Vec<u64> = (0..256).map(|x| map.apply(x)).collect();
        images.sort_unstable();
        images.dedup();
        assert_eq!(images.len(), 1 << map.rank());
        assert_eq!(map.kernel().dimension() + map.rank(), 8);
        assert!(map.kernel().iter().all(|x| map.apply(x) == 0));
        assert_eq!(
            (0..256).filter(|&x| map.apply(x) == 0).count(),
            1 << map.kernel().dimension()
        );
        assert!((0..256).all(|x| (map.apply(x) == 0) == map.kernel().contains(x)));
        assert!(images.iter().all(|&y| map.image().contains(y)));
    }
}

#[test]
fn transpose_swaps_rows_and_columns_and_keeps_the_rank() {
    let mut random = Random(11);
    for _ in 0..100 {
        let map = random.map(9, 6);
        let transposed = map.transpose();
        for i in 0..6 {
            for j in 0..9 {
                assert_eq!(map.column(j) >> i & 1, transposed.column(i) >> j & 1);
            }
        }
        assert_eq!(transposed.transpose(), map);
        assert_eq!(transposed.rank(), map.rank());
    }
}

#[test]
fn sum_and_direct_sum() {
    let mut random = Random(13);
    let (a, b) = (random.map(5, 6), random.map(5, 6));
    let sum = a.xor(&b).unwrap();
    let direct = a.direct_sum(&b).unwrap();
    for x in 0..32 {
        assert_eq!(sum.apply(x), a.apply(x) ^ b.apply(x));
        for y in 0..32 {
            assert_eq!(direct.apply(x | y << 5), a.apply(x) | b.apply(y) << 6);
        }
    }
    assert_eq!((direct.in_bits(), direct.out_bits()), (10, 12));
}

#[test]
fn swizzles_are_matrices() {
    for (b, m, s) in [
        (3, 4, 3),
        (2, 0, 2),
        (1, 3, -2),
        (3, 0, -3),
        (3, 1, 2),
        (3, 1, -1),
        (0, 2, 1),
    ] {
        let map = LinearMap::swizzle(b, m, s, 10).unwrap();
        for x in 0..1024_u64 {
            let mask = (1 << b) - 1;
            let expected = if s > 0 {
                x ^ (x >> (m as i32 + s) & mask) << m
            } else {
                x ^ (x >> m & mask) << (m as i32 - s)
            };
            assert_eq!(map.apply(x), expected, "Swizzle<{b},{m},{s}> at {x}");
        }
        assert!(map.is_invertible());
    }
    assert_eq!(
        LinearMap::swizzle(3, 4, 3, 9).unwrap_err().code(),
        "swizzle_does_not_fit"
    );
    assert_eq!(
        LinearMap::swizzle(1, 4, 0, 9).unwrap_err().code(),
        "swizzle_does_not_fit"
    );
}

#[test]
fn ranges_and_limits() {
    let map = Random(17).map(8, 8);
    for x in 0..256 {
        assert_eq!(map.rows(2, 3).apply(x), map.apply(x) >> 2 & 7);
        assert_eq!(map.columns_range(1, 4).apply(x), map.apply((x & 15) << 1));
    }
    assert_eq!(map.rows(9, 2).out_bits(), 0);
    assert_eq!(
        LinearMap::identity(65),
        Err(F2Error::TooManyBits { bits: 65 })
    );
    let wide = LinearMap::identity(64).unwrap();
    assert_eq!(wide.inverse(), Ok(wide));
    assert_eq!(wide.apply(u64::MAX), u64::MAX);
    assert_eq!(
        LinearMap::from_columns(&[1, 4], 2),
        Err(F2Error::ColumnTooLarge {
            column: 1,
            image: 4,
            out_bits: 2
        })
    );
}

#[test]
fn evaluates_at_compile_time() {
    const MAP: LinearMap = match LinearMap::swizzle(3, 4, 3, 10) {
        Ok(map) => map,
        Err(_) => panic!(),
    };
    const RANK: u32 = MAP.rank();
    assert_eq!(RANK, 10);
    assert_eq!(MAP.to_string(), "[1, 2, 4, 8, 16, 32, 64, 144, 288, 576]");
}
