//! Index functions, the points they are evaluated at, and what they must give: from the algebra's own evaluation, which shares no
//! code with the index compiler.

use layout_codegen::index::code::Ty;
use layout_codegen::index::targets::{Program, program, program_of};
use layout_codegen::index::{Bound, FAST_DIVISION_LIMIT, FastDivisor, IndexSpec, Parameter, Pool};

/// A small deterministic generator (xorshift64*), so that failures repeat.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) % n
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

/// A function with its points and their indices.
pub(crate) struct Case {
    pub(crate) name: String,
    /// What it computes, for messages.
    pub(crate) about: String,
    pub(crate) program: Program,
    pub(crate) points: Vec<Vec<i64>>,
    pub(crate) expected: Vec<i64>,
}

impl Case {
    pub(crate) fn types(&self) -> impl Iterator<Item = Ty> + '_ {
        self.program.parameters().iter().map(|p| p.ty)
    }
}

/// Points of one parameter: all of them if they are few, else both ends and some between.
fn values(lo: i64, hi: i64, most: usize, random: &mut Random) -> Vec<i64> {
    if hi - lo < most as i64 {
        return (lo..=hi).collect();
    }
    let mut some = vec![lo, lo + 1, hi - 1, hi, lo + (hi - lo) / 2];
    while some.len() < most {
        let digit = 1i64 << random.below(62);
        some.push(
            lo + digit
                .wrapping_mul(random.below(1000) as i64)
                .rem_euclid(hi - lo),
        );
    }
    some
}

/// `spec` over its whole domain if that has at most `most` points in each parameter, else over a sample with its corners.
pub(crate) fn case(spec: &IndexSpec, most: usize, random: &mut Random) -> Case {
    let made = program(spec).unwrap_or_else(|e| panic!("{}: {e}", spec.layout));
    let parameters = made.parameters().to_vec();
    let coordinates = spec.coordinates.len();
    let mut points: Vec<Vec<i64>> = vec![Vec::new()];
    for (i, p) in parameters.iter().enumerate() {
        let own = values(p.lo, p.hi, if i < coordinates { most } else { 6 }, random);
        points = points
            .into_iter()
            .flat_map(|at| own.iter().map(move |&v| [&at[..], &[v]].concat()))
            .collect();
    }
    let expected = points
        .iter()
        .map(|at| {
            let (at, strides) = at.split_at(coordinates);
            let layout = spec.layout.layout.bind(strides).expect("strides fit");
            if at.len() == 1 {
                layout.index(at[0])
            } else {
                layout.at(at)
            }
        })
        .collect();
    Case {
        name: spec.name.clone(),
        about: spec.layout.to_string(),
        program: made,
        points,
        expected,
    }
}

/// A layout's text: nested, extents with any factors, strides of either sign, sometimes swizzled, sometimes with names.
pub(crate) fn random_text(random: &mut Random) -> (String, bool) {
    let rank = 1 + random.below(3);
    let (mut shape, mut stride) = (Vec::new(), Vec::new());
    let mut named = false;
    for _ in 0..rank {
        let leaves = 1 + random.below(3);
        let (mut s, mut d) = (Vec::new(), Vec::new());
        for _ in 0..leaves {
            s.push(
                random
                    .pick(&[1, 2, 2, 3, 4, 4, 5, 6, 7, 8, 12, 16])
                    .to_string(),
            );
            let k = random.below(40) as i64;
            let k = if random.below(5) == 0 { -k } else { k };
            d.push(match random.below(12) {
                0..5 => (1i64 << random.below(8)).to_string(),
                10 => {
                    named = true;
                    "ld".to_owned()
                }
                11 => {
                    named = true;
                    format!("2*n+{}", random.below(3))
                }
                _ => k.to_string(),
            });
        }
        let join = |v: Vec<String>| {
            if v.len() == 1 {
                v[0].clone()
            } else {
                format!("({})", v.join(","))
            }
        };
        shape.push(join(s));
        stride.push(join(d));
    }
    let mut text = format!("({}):({})", shape.join(","), stride.join(","));
    if random.below(4) == 0 {
        text = format!("{} o {text}", random.below(200) as i64 - 50);
    }
    if random.below(2) == 0 {
        let s = random.pick(&[-4, -3, -2, -1, 1, 2, 3, 4]);
        text = format!("Sw<{},{},{s}> o {text}", random.below(4), random.below(4));
    }
    (text, named)
}

/// A random function named `name`.
pub(crate) fn random_spec(name: &str, random: &mut Random) -> IndexSpec {
    loop {
        let (text, named) = random_text(random);
        let mut spec = IndexSpec::parse(name, &text).unwrap_or_else(|e| panic!("{text}: {e}"));
        if spec.layout.layout.size() > 2000 {
            continue;
        }
        if random.below(2) == 0 {
            spec = spec.linear();
        }
        if random.below(6) == 0 {
            let last = spec.coordinates.len() - 1;
            let hi = random.pick(&[0, 40, 300]);
            spec = spec.bounded(last, Bound::UpTo(hi));
        }
        if named {
            for p in 0..spec.layout.layout.layout().parameters() {
                let name = spec.layout.layout.layout().parameter(p).expect("a name");
                let (lo, hi) = random.pick(&[(0, 100), (-20, 20), (3, 3), (0, 1 << 40)]);
                if random.below(4) > 0 {
                    spec = spec.stride(name.as_str(), lo, hi);
                }
            }
        }
        return spec;
    }
}

/// Layouts that users write, and those that make each kind of arithmetic appear.
pub(crate) fn chosen() -> Vec<IndexSpec> {
    let parse = |i: usize, text: &str| {
        IndexSpec::parse(&format!("chosen{i}"), text).unwrap_or_else(|e| panic!("{text}: {e}"))
    };
    let texts = [
        "(8,64):(64,1)",
        "Sw<3,4,3> o (8,64):(64,1)",
        "Sw<3,3,3> o (64,64):(64,1)",
        "Sw<2,3,3> o 512 o (64,32):(32,1)",
        "(32,32):(33,1)",
        "(48,20):(1,50)",
        "((2,4),(8,3)):((1,16),(2,64))",
        "(7,5,3):(15,3,1)",
        "(4,6):(-1,-4)",
        "Sw<2,0,3> o (4,6):(-1,-4)",
        "Sw<3,2,-3> o (16,16):(1,16)",
        "Sw<3,0,1> o (16,16):(1,16)",
        "1:0",
        "(4,4):(0,0)",
        "5 o 1:0",
        "(1,1):(7,9)",
        "(3,5):(1,1000000007)",
        "(3,5):(1,-1000000007)",
        "(5,3):(4294967296,1)",
        "(8,64):(ld,1)",
        "Sw<3,3,3> o (8,64):(ld,1)",
        "(8,(4,4)):(ld,(1,2*ld+4))",
        "(6,10):(ld,n)",
    ];
    let mut all: Vec<IndexSpec> = texts.iter().enumerate().map(|(i, t)| parse(i, t)).collect();
    let linear: Vec<IndexSpec> = all.iter().map(|s| s.clone().linear()).collect();
    for (i, mut spec) in linear.into_iter().enumerate() {
        spec.name = format!("linear{i}");
        all.push(spec);
    }
    // Divisions over whole words: every way to divide by a constant.
    for (i, d) in [
        3i64,
        5,
        6,
        7,
        10,
        12,
        48,
        641,
        1000,
        6_700_417,
        1_000_003,
        2_147_483_647,
    ]
    .into_iter()
    .enumerate()
    {
        for (j, hi) in [
            1000,
            65_535,
            i64::from(i32::MAX),
            i64::from(u32::MAX),
            i64::MAX,
        ]
        .into_iter()
        .enumerate()
        {
            let spec = parse(0, &format!("({d},1):(0,1)")).linear();
            let mut spec = spec.bounded(0, Bound::UpTo(hi));
            spec.name = format!("quotient{i}_{j}");
            all.push(spec.clone());
            let mut spec = parse(0, &format!("({d},1):(1,0)"))
                .linear()
                .bounded(0, Bound::UpTo(hi));
            spec.name = format!("remainder{i}_{j}");
            all.push(spec);
        }
    }
    let mut wide = parse(0, "(8,64):(64,1)").result(Ty::S64);
    "wide".clone_into(&mut wide.name);
    wide.coordinates[0].ty = Some(Ty::U64);
    wide.coordinates[1].ty = Some(Ty::S32);
    all.push(wide);
    let mut limited = parse(0, "(8,64):(ld,1)").result(Ty::U32);
    "limited".clone_into(&mut limited.name);
    all.push(limited);
    let mut signed = parse(0, "Sw<2,0,2> o (8,64):(ld,1)").stride("ld", -70, 70);
    "downward".clone_into(&mut signed.name);
    all.push(signed);
    all
}

/// The chosen functions and `n` random ones.
pub(crate) fn cases(n: usize) -> Vec<Case> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut all = chosen();
    all.extend((0..n).map(|i| random_spec(&format!("random{i}"), &mut random)));
    let mut all: Vec<Case> = all.iter().map(|s| case(s, 300, &mut random)).collect();
    all.extend(fast_divisions(&mut random));
    all
}

/// Quotient and remainder by a divisor that is known only at run time, the host's numbers as parameters.
fn fast_divisions(random: &mut Random) -> [Case; 2] {
    let most = i64::from(FAST_DIVISION_LIMIT);
    let mut points = Vec::new();
    let mut expected = [Vec::new(), Vec::new()];
    let mut divisors = vec![1, 2, 3, 5, 7, 48, 641, 65_535, 65_536, most - 1, most];
    divisors.extend((0..30).map(|bit| (1 << bit) + 1));
    divisors.extend((0..200).map(|_| 1 + random.below(1 << 31) as i64 % most));
    for d in divisors {
        let by = FastDivisor::new(d as u32).expect("a divisor");
        let mut dividends = vec![0, 1, most - 1, most];
        for _ in 0..30 {
            let q = random.below((most / d + 1) as u64) as i64 * d;
            dividends.extend([q - 1, q, q + d - 1]);
            dividends.push(random.below(1 << 31) as i64);
        }
        for x in dividends.into_iter().filter(|x| (0..=most).contains(x)) {
            points.push(vec![x, d, by.multiplier().into(), by.shift().into()]);
            expected[0].push(x / d);
            expected[1].push(x % d);
            assert_eq!(i64::from(by.quotient(x as u32)), x / d, "{x} / {d}");
        }
    }
    let make = |name: &str, remainder: bool, expected: Vec<i64>| {
        let mut pool = Pool::new();
        let x = pool.var("x", 0, most, 0);
        let d = pool
            .run_time_divisor("d", FAST_DIVISION_LIMIT)
            .expect("a divisor");
        let e = if remainder {
            pool.rem_fast(x, d)
        } else {
            pool.div_fast(x, d)
        };
        let parameter = |name: &str, lo, hi| Parameter {
            name: name.to_owned(),
            ty: Ty::U32,
            lo,
            hi,
        };
        let parameters = vec![
            parameter("x", 0, most),
            parameter("d", 1, most),
            parameter("d_multiplier", 0, u32::MAX.into()),
            parameter("d_shift", 0, 30),
        ];
        let e = e.expect("in range");
        let program = program_of(&mut pool, e, name, "Fast division.", parameters, Ty::U32);
        Case {
            name: name.to_owned(),
            about: "fast division".to_owned(),
            program: program.expect("a program"),
            points: points.clone(),
            expected,
        }
    };
    let [quotients, remainders] = expected;
    [
        make("fast_quotient", false, quotients),
        make("fast_remainder", true, remainders),
    ]
}

/// Every coordinate of every point, for a program that reads its input.
pub(crate) fn input(cases: &[Case]) -> Vec<u8> {
    cases
        .iter()
        .flat_map(|c| c.points.iter().flatten())
        .flat_map(|v| v.to_le_bytes())
        .collect()
}

/// Compares what a program wrote with what the layouts say.
pub(crate) fn check(cases: &[Case], output: &[u8], what: &str) {
    let got: Vec<i64> = output
        .as_chunks::<8>()
        .0
        .iter()
        .map(|&bytes| i64::from_le_bytes(bytes))
        .collect();
    let points: usize = cases.iter().map(|c| c.points.len()).sum();
    assert_eq!(got.len(), points, "{what}: one index for each point");
    let mut got = got.into_iter();
    for case in cases {
        for (point, expected) in case.points.iter().zip(&case.expected) {
            let index = got.next().expect("counted");
            assert_eq!(
                index, *expected,
                "{what}: {} {} at {point:?}",
                case.name, case.about
            );
        }
    }
}
