//! A kernel of views and layouts on an OpenCL device: the transpose, in three element types over random sizes.

use half::f16;
use tilewright::codegen::Arch;
use tilewright::codegen::ir::Element;
use tilewright::codegen::print::opencl::program;
use tilewright::gpu::opencl::ClDevice;
use tilewright::host::{Arg, BufferElement, run_on_opencl};
use tilewright::kernels::transpose::transpose;

use super::common::Random;
use super::left_out;
use super::run::device;

/// Transposes matrices of `count` random sizes, whose elements are all different as far as their type allows.
fn transposes<T: BufferElement + Copy + PartialEq>(
    device: &ClDevice,
    element: Element,
    count: u64,
    number: impl Fn(usize) -> T,
) {
    let mut random = Random::new(7);
    for tall in [false, true] {
        let kernel = transpose(element, tall, Arch(80)).expect("it proves");
        let text = program(&[kernel.entry().clone()], &[]).expect("it has a form");
        let built = device.build(&text).unwrap_or_else(|e| panic!("{e}"));
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
            let outcome = run_on_opencl(device, &built, &kernel, args);
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
    let device = device();
    transposes::<f32>(&device, Element::F32, 40, |i| i as f32);
    transposes::<f16>(&device, Element::F16, 30, |i| {
        f16::from_f32((i % 2039) as f32)
    });
    transposes::<i8>(&device, Element::S8, 30, |i| (i % 251) as i8);
}
