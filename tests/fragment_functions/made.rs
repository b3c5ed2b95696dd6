//! Fragments of values that threads have computed.

use tilewright::Layout;
use tilewright::codegen::ir::Kernel;
use tilewright::codegen::value::F32;

use super::{Result, kernel};
use tilewright::host::{Arg, On, run};

/// The values of a fragment, each in the place of another one: a transpose.
#[test]
fn values_take_the_places_of_a_layout() -> Result {
    let tv = Layout::parse("(32,2):(1,32)")?;
    // Element r + 8·c becomes the one of row c and column r.
    let new = Layout::parse("((8,4),2):((8,1),4)")?;
    let made = kernel([8, 8], 32, &tv, false, |k, x| {
        let values: Vec<F32> = x.thread_values(k)?;
        let thread = k.thread();
        // Stored by the first layout again.
        k.fragment([8, 8], &new, thread, &values)?.relayout(k, &tv)
    })?;
    let x: Vec<f32> = (0..64).map(|i| i as f32).collect();
    let args = [
        ("m", Arg::from(8u32)),
        ("x", Arg::input(&x)),
        ("y", Arg::output::<f32>(64)),
    ];
    let outcome = run(&made, On::Emulator, args)?;
    outcome.assert_clean();
    let y: Vec<f32> = outcome.get("y")?;
    assert!((0..64).all(|i| y[i] == x[i % 8 * 8 + i / 8]));
    Ok(())
}

#[test]
fn layouts_that_are_not_of_the_values_are_refused() -> Result {
    let mut k = Kernel::new("k", 32);
    let (lane, one) = (k.lane(), F32::from(1.0));
    let mut said = |tv: &str, count: usize| -> Result<String> {
        let words = vec![one; count];
        let made = k.fragment([8, 8], &Layout::parse(tv)?, lane, &words);
        Ok(made.map(|_| ()).unwrap_err().to_string())
    };
    for (tv, count, reason) in [
        (
            "(32,2):(1,32)",
            3,
            "(32,2):(1,32) is given 32 threads and 3 values of each: let it have two modes, (thread, value), of these sizes",
        ),
        (
            "(16,4):(1,16)",
            4,
            "(16,4):(1,16) is given 32 threads and 4 values of each: let it have two modes, (thread, value), of these sizes",
        ),
        (
            "(32,2):(1,33)",
            2,
            "(32,2):(1,33) gives 64, and the tile has 64 elements",
        ),
        (
            "(32,2):(1,0)",
            2,
            "(32,2):(1,0) does not give element 32 of the tile",
        ),
    ] {
        assert_eq!(
            said(tv, count)?,
            format!("its making of a fragment of 8x8 f32: {reason}")
        );
    }
    Ok(())
}
