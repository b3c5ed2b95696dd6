//! What is refused when a kernel is launched.

use super::{ARCH, Result, copy, layout};
use tilewright::codegen::ContractError;
use tilewright::codegen::ir::{Axis, Element, Kernel};
use tilewright::codegen::view::ViewError;
use tilewright::host::{Arg, On, PtxKernel, RunError, run};

#[test]
fn a_launch_with_another_block_is_refused() -> Result {
    let copy = copy()?;
    assert!(copy.ptx.contains(".reqntid 128, 1, 1"), "{}", copy.ptx);
    let x = vec![1.0f32; 128];
    for threads in [64, 256] {
        let other = PtxKernel::new(&copy.ptx, copy.name())?.block([threads, 1, 1]);
        let args = [
            ("n", Arg::from(128_u32)),
            ("x", Arg::input(&x)),
            ("y", Arg::output::<f32>(128)),
        ];
        let error =
            run(&other, On::Emulator, args).expect_err("a block that the text does not take");
        assert!(
            error
                .to_string()
                .contains("requires blocks of 128×1×1 threads"),
            "{error}"
        );
    }
    Ok(())
}

#[test]
fn sizes_beyond_the_declared_range_are_refused() -> Result {
    let copy = copy()?;
    let args = [
        ("n", Arg::from((1_u32 << 30) + 1)),
        ("x", Arg::input(&[1.0f32])),
        ("y", Arg::output::<f32>(1)),
    ];
    let error = run(&copy, On::Emulator, args).expect_err("beyond the range");
    assert_eq!(
        error.to_string(),
        "`n` is 1073741825, and the kernel takes 0 to 1073741824"
    );

    let grid = copy.grid(|_| Some(1 << 40));
    assert!(matches!(grid, Err(ContractError::TooLarge { most, .. }) if most == 1 << 30));
    assert!(matches!(
        copy.grid(|_| None),
        Err(ContractError::Missing { .. })
    ));
    Ok(())
}

#[test]
fn a_grid_that_does_not_exist_is_refused() -> Result {
    let mut k = Kernel::new("rows", 32);
    let n = k.size("n", 1 << 30);
    let (x, y) = (
        k.input("x", Element::F32, &[n]),
        k.output("y", Element::F32, &[n]),
    );
    let block = k.tiles(Axis::Y, n, 32)?;
    let again = k
        .tiles(Axis::Y, n, 64)
        .expect_err("the axis counts tiles of 32 elements");
    assert_eq!(again, ViewError::GridAxis { axis: 'y' });
    let (thread, one) = (k.thread(), layout("(32,1):(1,0)"));
    let x = x
        .tile(&mut k, &[32], &[block])?
        .partition(&mut k, &one, thread)?;
    let y = y
        .tile(&mut k, &[32], &[block])?
        .partition(&mut k, &one, thread)?;
    k.copy(&x, &y)?;
    let rows = k.build(ARCH)?;
    assert_eq!(rows.grid(|_| Some(65_535 * 32))?, [1, 65_535, 1]);
    let error = rows
        .grid(|_| Some(65_535 * 32 + 1))
        .expect_err("65,536 blocks along y");
    assert_eq!(
        error.to_string(),
        "the problem takes 65536 blocks along y, and a grid has room for 65535: take larger tiles, or let that axis count fewer"
    );
    Ok(())
}

#[test]
fn short_and_misaligned_buffers_are_refused() -> Result {
    let copy = copy()?;
    let x = vec![1.0f32; 200];
    let refused = |x: Arg<'_>, y: Arg<'_>| {
        let args = [("n", Arg::from(200_u32)), ("x", x), ("y", y)];
        run(&copy, On::Emulator, args).expect_err("refused").code()
    };
    let y = || Arg::output::<f32>(200);
    assert_eq!(refused(Arg::input(&x[1..]), y()), "buffer_too_short");
    assert_eq!(
        refused(Arg::input(&x), Arg::output::<f32>(199)),
        "buffer_too_short"
    );
    assert_eq!(
        refused(Arg::input(&x).aligned_to(4), y()),
        "buffer_misaligned"
    );
    assert_eq!(refused(Arg::input(&vec![1_i32; 200]), y()), "argument_type");
    Ok(())
}

#[test]
fn nothing_to_do_launches_nothing() -> Result {
    let none: [f32; 0] = [];
    let args = [
        ("n", Arg::from(0_u32)),
        ("x", Arg::input(&none)),
        ("y", Arg::output::<f32>(0)),
    ];
    let outcome = run(&copy()?, On::Emulator, args)?;
    assert_eq!(outcome.launches, 0);
    outcome.assert_clean();
    Ok(())
}

#[test]
fn vectors_of_a_vector_of_any_length() -> Result {
    let mut k = Kernel::new("wide", 32);
    let n = k.size("n", 1 << 30);
    let (x, y) = (
        k.input("x", Element::F16, &[n]),
        k.output("y", Element::F16, &[n]),
    );
    let block = k.tiles(Axis::X, n, 256)?;
    let (thread, eights) = (k.thread(), layout("(32,8):(8,1)"));
    let x = x
        .tile(&mut k, &[256], &[block])?
        .partition(&mut k, &eights, thread)?
        .vectors(&k, 8)?;
    let y = y
        .tile(&mut k, &[256], &[block])?
        .partition(&mut k, &eights, thread)?
        .vectors(&k, 8)?;
    k.copy(&x, &y)?;
    let wide = k.build(ARCH)?;
    for n in [1, 7, 8, 255, 256, 257, 264] {
        let values: Vec<half::f16> = (0..n).map(|i| half::f16::from_f32(i as f32)).collect();
        let args = [
            ("n", Arg::from(n as u32)),
            ("x", Arg::input(&values)),
            ("y", Arg::output::<half::f16>(n)),
        ];
        let outcome = run(&wide, On::Emulator, args)?;
        outcome.assert_clean();
        assert_eq!(outcome.get::<half::f16>("y")?, values);
    }
    Ok(())
}

#[test]
fn an_error_of_the_contract_reaches_the_caller() {
    let error = RunError::from(ContractError::Missing {
        name: "n".to_owned(),
    });
    assert_eq!(
        (error.code(), error.to_string()),
        ("missing", "parameter `n` has no value: give one".to_owned())
    );
}
