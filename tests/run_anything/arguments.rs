//! Buffers and scalars reach the kernel as they are, and what does not go with its parameters is refused.

use float8::{F8E4M3, F8E5M2};
use half::{bf16, f16};
use tilewright::host::{Arg, BufferElement, BufferType, On, Param, ParamType, PtxKernel, run};

use super::{on_emulator, one_block, refusal};

/// to[i] = from[i] for every byte i.
fn copy(bytes: u32) -> PtxKernel {
    let body = "ld.param.u64 %d0, [from]; ld.param.u64 %d1, [to];
        mov.u32 %r0, %ctaid.x; cvt.u64.u32 %d2, %r0; add.s64 %d3, %d0, %d2; add.s64 %d4, %d1, %d2;
        ld.global.u8 %r1, [%d3]; st.global.u8 [%d4], %r1;";
    let kernel = one_block("copy", ".param .u64 from, .param .u64 to", body);
    kernel.grid([bytes, 1, 1]).block([1, 1, 1])
}

fn assert_copied<T: BufferElement + PartialEq + std::fmt::Debug>(values: &[T]) {
    let bytes = (values.len() * T::TYPE.bytes()) as u32;
    let args = [
        ("to", Arg::output::<T>(values.len())),
        ("from", Arg::input(values)),
    ];
    let outcome = on_emulator(&copy(bytes), args);
    outcome.assert_clean();
    assert_eq!(outcome.get::<T>("to").expect("its type"), values);
    assert_eq!(outcome.get::<T>("from").expect("its type"), values);
}

#[test]
fn buffers_of_every_type_come_back_as_they_were_written() {
    assert_copied(&[1.5_f32, -0.0, f32::INFINITY]);
    assert_copied(&[1e300_f64, -2.5]);
    assert_copied(&[f16::from_f32(0.1), f16::NEG_INFINITY]);
    assert_copied(&[bf16::from_f32(3.0), bf16::MIN_POSITIVE]);
    assert_copied(&[F8E4M3::from_f32(1.75), F8E4M3::from_f32(-448.0)]);
    assert_copied(&[F8E5M2::from_f32(0.25), F8E5M2::from_f32(-57344.0)]);
    assert_copied(&[i8::MIN, -1, 7]);
    assert_copied(&[u8::MAX, 0]);
    assert_copied(&[i16::MIN, 300]);
    assert_copied(&[u16::MAX, 1]);
    assert_copied(&[i32::MIN, 70_000]);
    assert_copied(&[u32::MAX, 2]);
    assert_copied(&[i64::MIN, 1 << 40]);
    assert_copied(&[u64::MAX, 3]);
}

#[test]
fn a_buffer_lies_where_it_was_asked_for() {
    let body = "ld.param.u64 %d0, [x]; ld.param.u64 %d1, [at]; st.global.u64 [%d1], %d0;";
    let kernel = one_block("where", ".param .u64 x, .param .u64 at", body).block([1, 1, 1]);
    for alignment in [1_u64, 2, 4, 8, 16, 128] {
        let args = [
            ("x", Arg::input(&[0_u8; 3]).aligned_to(alignment)),
            ("at", Arg::output::<u64>(1)),
        ];
        let at = on_emulator(&kernel, args).get::<u64>("at").expect("u64")[0];
        assert_eq!(at.trailing_zeros(), alignment.trailing_zeros(), "{at:#x}");
    }
    let args = [("x", Arg::input(&[0_u8; 3])), ("at", Arg::output::<u64>(1))];
    let at = on_emulator(&kernel, args).get::<u64>("at").expect("u64")[0];
    assert!(at.is_multiple_of(256));
}

#[test]
fn scalars_of_every_type_reach_the_kernel() {
    let params = ".param .u64 out, .param .u32 a, .param .s32 b, .param .u64 c, .param .s64 d, .param .f32 e, .param .f64 f, .param .align 4 .b8 g[4]";
    let body = "ld.param.u64 %d0, [out];
        ld.param.b32 %r0, [a]; st.global.b32 [%d0], %r0; ld.param.b32 %r0, [b]; st.global.b32 [%d0+4], %r0;
        ld.param.b64 %d1, [c]; st.global.b64 [%d0+8], %d1; ld.param.b64 %d1, [d]; st.global.b64 [%d0+16], %d1;
        ld.param.b32 %r0, [e]; st.global.b32 [%d0+24], %r0; ld.param.b32 %r0, [g]; st.global.b32 [%d0+28], %r0;
        ld.param.b64 %d1, [f]; st.global.b64 [%d0+32], %d1;";
    let kernel = one_block("scalars", params, body).block([1, 1, 1]);
    let outcome = on_emulator(
        &kernel,
        [
            ("g", Arg::bytes([1, 2, 3, 4])),
            ("f", Arg::from(-1.5_f64)),
            ("e", Arg::from(2.5_f32)),
            ("d", Arg::from(-4_i64)),
            ("c", Arg::from(u64::MAX)),
            ("b", Arg::from(-2_i32)),
            ("a", Arg::from(1_u32)),
            ("out", Arg::output::<u8>(40)),
        ],
    );
    outcome.assert_clean();
    let mut expected = Vec::new();
    expected.extend(1_u32.to_le_bytes());
    expected.extend((-2_i32).to_le_bytes());
    expected.extend(u64::MAX.to_le_bytes());
    expected.extend((-4_i64).to_le_bytes());
    expected.extend(2.5_f32.to_le_bytes());
    expected.extend([1, 2, 3, 4]);
    expected.extend((-1.5_f64).to_le_bytes());
    assert_eq!(outcome.bytes("out").expect("a buffer"), expected);
}

/// A kernel with a contract: x and y of f32, n up to 1000, the factor a.
fn contract() -> PtxKernel {
    let params = ".param .u64 x, .param .u64 y, .param .u32 n, .param .f32 a";
    let kernel = one_block("axpy", params, "");
    [
        Param::pointer("x", BufferType::F32).aligned_to(16),
        Param::pointer("y", BufferType::F32),
        Param::new("n", ParamType::U32).in_range(1..=1000),
    ]
    .into_iter()
    .try_fold(kernel, PtxKernel::param)
    .expect("its parameters")
}

#[test]
fn arguments_that_do_not_go_with_the_parameters_are_one_clear_error() {
    let good = || {
        vec![
            ("x", Arg::input(&[1.0_f32])),
            ("y", Arg::in_out(&[1.0_f32])),
            ("n", Arg::from(1_u32)),
            ("a", Arg::from(1.0_f32)),
        ]
    };
    on_emulator(&contract(), good());
    let with = |name: &'static str, arg| {
        let mut args = good();
        args.retain(|(known, _)| *known != name);
        args.push((name, arg));
        refusal(&contract(), args)
    };
    let mut twice = good();
    twice.push(("n", Arg::from(2_u32)));
    let cases = [
        (
            refusal(&contract(), good().into_iter().take(2)),
            "missing_argument",
            "no argument is given for `n`, a u32",
        ),
        (
            with("z", Arg::from(1_u32)),
            "unknown_argument",
            "there is no parameter `z`; the kernel takes `x` (a buffer of f32), `y` (a buffer of f32), `n` (a u32), `a` (an f32)",
        ),
        (
            refusal(&contract(), twice),
            "argument_twice",
            "`n` is given twice",
        ),
        (
            with("x", Arg::input(&[1.0_f64])),
            "argument_type",
            "`x` takes a buffer of f32, and a buffer of f64 is given",
        ),
        (
            with("x", Arg::from(1_u64)),
            "argument_type",
            "`x` takes a buffer of f32, and a u64 is given",
        ),
        (
            with("n", Arg::from(1_i32)),
            "argument_type",
            "`n` takes a u32, and an i32 is given",
        ),
        (
            with("a", Arg::input(&[1.0_f32])),
            "argument_type",
            "`a` takes an f32, and a buffer of f32 is given",
        ),
        (
            with("n", Arg::from(1001_u32)),
            "argument_range",
            "`n` is 1001, and the kernel takes 1 to 1000",
        ),
        (
            with("x", Arg::input(&[1.0_f32]).aligned_to(4)),
            "buffer_misaligned",
            "the buffer for `x` is aligned to 4 bytes, and the kernel needs 16",
        ),
        (
            with("y", Arg::input(&[1.0_f32]).aligned_to(12)),
            "bad_alignment",
            "the buffer for `y` asks for an alignment of 12 bytes: an alignment is a power of two and at most 1048576",
        ),
    ];
    for (error, code, text) in cases {
        assert_eq!((error.code(), error.to_string().as_str()), (code, text));
    }
    let nothing = one_block("nothing", "", "");
    let error = refusal(&nothing, [("x", Arg::from(1_u32))]);
    assert_eq!(
        error.to_string(),
        "there is no parameter `x`: the kernel takes no arguments"
    );
}

#[test]
fn a_text_that_says_little_is_held_to_what_it_says() {
    let kernel = one_block("some", ".param .u64 x, .param .u32 n, .param .b32 bits", "");
    let with = |x, n, bits| run(&kernel, On::Emulator, [("x", x), ("n", n), ("bits", bits)]);
    let buffer = || Arg::input(&[1_u8]);
    for (x, n, bits) in [
        (buffer(), Arg::from(1_u32), Arg::from(1.0_f32)),
        (
            Arg::from(1_u64),
            Arg::from(-1_i32),
            Arg::bytes([1, 2, 3, 4]),
        ),
    ] {
        with(x, n, bits).expect("it takes these");
    }
    for (x, n, bits) in [
        (Arg::from(1_u32), Arg::from(1_u32), Arg::from(1_u32)),
        (buffer(), Arg::from(1.0_f32), Arg::from(1_u32)),
        (buffer(), buffer(), Arg::from(1_u32)),
        (buffer(), Arg::from(1_u32), Arg::bytes([1, 2, 3])),
    ] {
        let error = with(x, n, bits).expect_err("it takes no such argument");
        assert_eq!(error.code(), "argument_type", "{error}");
    }
    let unknown = kernel
        .param(Param::new("m", ParamType::U32))
        .expect_err("no parameter");
    assert_eq!(
        unknown.to_string(),
        "`some` has no parameter `m`; it has: x, n, bits"
    );
}
