//! A layout and its matrix agree on every index, and a matrix that is a swizzled layout becomes one again.

use layout_core::f2::LinearMap;
use layout_core::{Layout, Swizzle, Swizzled};

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % n
    }
}

fn is_linear(map: &Swizzled) -> bool {
    let size = map.size();
    size.count_ones() == 1
        && map.index(0) == 0
        && (0..size).all(|i| (0..size).all(|j| map.index(i) ^ map.index(j) == map.index(i ^ j)))
}

#[test]
fn matrix_and_layout_agree_on_every_index() {
    let mut random = Random(21);
    let (mut linear, mut refused, mut back) = (0, 0, 0);
    for _ in 0..4000 {
        let rank = 1 + random.below(3) as usize;
        let shape: Vec<i64> = (0..rank)
            .map(|_| [1, 2, 4, 2, 4, 3][random.below(6) as usize])
            .collect();
        let stride: Vec<i64> = (0..rank)
            .map(|_| [1, 2, 4, 8, 16, 32, 0, 3, 6, 12][random.below(10) as usize])
            .collect();
        let layout = Layout::flat(&shape, &stride).unwrap();
        let b = random.below(3) as u32;
        let s = 1 + random.below(3) as i32;
        let swizzle = if b == 0 {
            Swizzle::IDENTITY
        } else {
            Swizzle::new(
                b,
                random.below(3) as u32,
                if random.below(3) == 0 { -s } else { s },
            )
            .unwrap()
        };
        let map = Swizzled::new(swizzle, 0, layout).unwrap();
        match map.matrix() {
            Ok(matrix) => {
                linear += 1;
                assert_eq!(1 << matrix.in_bits(), map.size());
                for i in 0..map.size() {
                    assert_eq!(matrix.apply(i as u64) as i64, map.index(i), "{map} at {i}");
                }
                if let Ok(again) = matrix.to_layout() {
                    back += 1;
                    assert!(
                        (0..map.size()).all(|i| again.index(i) == map.index(i)),
                        "{map} became {again}"
                    );
                }
            }
            Err(error) => {
                refused += 1;
                // Layouts that carry are never linear; only a swizzle may straighten one by luck.
                let plain = Swizzled::plain(layout);
                assert!(!is_linear(&plain), "{map}: {error}");
            }
        }
    }
    assert!(
        linear > 1000 && refused > 500 && back > 900,
        "{linear} {refused} {back}"
    );
}

#[test]
fn common_swizzled_tiles_round_trip() {
    for text in [
        "Sw<3,4,3> o (8,64):(64,1)",
        "Sw<3,3,3> o (64,64):(64,1)",
        "Sw<2,3,3> o (32,32):(32,1)",
        "Sw<3,3,3> o ((2,4,4),64):((256,64,512),1)",
        "Sw<2,0,-3> o (8,16):(1,8)",
        "(8,8):(8,1)",
    ] {
        let map = Swizzled::parse(text).unwrap();
        let matrix = map.matrix().unwrap();
        let again = matrix.to_layout().unwrap_or_else(|e| panic!("{text}: {e}"));
        assert!(
            (0..map.size()).all(|i| again.index(i) == map.index(i)),
            "{text} became {again}"
        );
        assert!(matrix.is_invertible());
    }
}

#[test]
fn refusals_say_why() {
    let code = |text: &str| Swizzled::parse(text).unwrap().matrix().unwrap_err().code();
    assert_eq!(code("(3,4):(1,4)"), "extent_not_power_of_two");
    assert_eq!(code("(4,2):(1,3)"), "not_linear");
    assert_eq!(code("Sw<1,0,1> o 4 o (4):(1)"), "not_linear");
    assert_eq!(code("(4):(-1)"), "negative_offset");
    let three = LinearMap::from_columns(&[1, 2, 7], 3).unwrap();
    assert_eq!(
        three.to_layout().unwrap_err().code(),
        "not_a_swizzled_layout"
    );
}
