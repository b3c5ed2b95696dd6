//! A kernel of views and layouts on an OpenCL device: the transpose, in three element types over random sizes.

use half::f16;
use tilewright::codegen::Arch;
use tilewright::codegen::ir::Element;
use tilewright::host::{Arg, BufferElement, On, RunOptions, run_with};
use tilewright::kernels::transpose::transpose;

use super::common::Random;
use super::left_out;
use super::run::on_device;

/// Transposes matrices of `count` random sizes, whose elements are all different as far as their type allows.
fn transposes<T: BufferElement + Copy + PartialEq>(
    options: &RunOptions,
    element: Element,
    count: u64,
    number: impl Fn(usize) -> T,
) {
    let mut random = Random::new(7);
    for tall in [false, true] {
        let kernel = transpose(element, tall, Arch(80)).expect("it proves");
        for _ in 0..count / 2 {
            // A kernel takes sizes in whole words.
            let [rows, cols] = [(); 2].map(|()| 4 * (1 + random.below(60)) as usize);
            let x: Vec<T> = (0..rows * cols).map(&number).collect();
            let args = [
                ("x", Arg::input(&x)),
                ("y", Arg::output::<T>(rows * cols)),
                ("rows", Arg::from(rows as u32)),
                ("cols", Arg::from(cols as u32)),
            ];
            let what = format!("{element}, {rows}x{cols}, tall: {tall}");
            let outcome = run_with(&kernel, On::OpenCl, args, options);
            let outcome = outcome.unwrap_or_else(|e| panic!("{what}: {e}"));
            assert!(outcome.guards_touched.is_empty(), "{what}");
            let y = outcome.get::<T>("y").expect("y");
            let differs = (0..rows * cols).find(|i| y[i % cols * rows + i / cols] != x[*i]);
            assert_eq!(differs, None, "{what}");
        }
    }
}

#[test]
fn a_hundred_transposes() {
    if left_out() {
        return;
    }
    let options = on_device();
    transposes::<f32>(&options, Element::F32, 40, |i| i as f32);
    transposes::<f16>(&options, Element::F16, 30, |i| {
        f16::from_f32((i % 2039) as f32)
    });
    transposes::<i8>(&options, Element::S8, 30, |i| (i % 251) as i8);
}
