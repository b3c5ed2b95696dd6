//! Index functions in OpenCL C on a device, against the layouts themselves: those of `codegen/tests/index_targets.rs`.

#[path = "../../codegen/tests/targets/mod.rs"]
#[allow(dead_code)]
mod targets;

use std::fmt::Write as _;

use tilewright::codegen::index::Target;
use tilewright::gpu::opencl::ClArg;

use super::left_out;
use super::run::device;
use targets::{cases, check, input};

/// Random layouts beside the chosen ones.
const RANDOM: usize = 40;

/// Points of a work-group.
const GROUP: usize = 64;

#[test]
fn index_functions_agree_with_their_layouts() {
    if left_out() {
        return;
    }
    let cases = cases(RANDOM);
    // A work-item has a point: of which function, and where its arguments begin.
    let (mut source, mut calls, mut table, mut first) = (String::new(), String::new(), vec![], 0);
    for (number, case) in cases.iter().enumerate() {
        let text = case.program.text(Target::OpenCl);
        source += &text.unwrap_or_else(|e| panic!("{}: {e}", case.about));
        let count = case.types().count();
        let arguments = case.types().enumerate().map(|(i, ty)| {
            let name = match (ty.wide(), ty.signed()) {
                (false, false) => "uint",
                (false, true) => "int",
                (true, false) => "ulong",
                (true, true) => "long",
            };
            format!("({name})a[{i}]")
        });
        let arguments: Vec<_> = arguments.collect();
        let (name, arguments) = (&case.name, arguments.join(", "));
        let _ = writeln!(
            calls,
            "    case {number}: out[i] = (long){name}({arguments}); break;"
        );
        for _ in &case.points {
            table.extend([number as u32, first as u32]);
            first += count;
        }
    }
    let _ = write!(
        source,
        "__kernel void every_point(__global const long *in, __global const uint *table, __global long *out, const uint n) {{\n    const uint i = (uint)get_global_id(0);\n    if (i >= n) return;\n    __global const long *const a = in + table[2 * i + 1];\n    switch (table[2 * i]) {{\n{calls}    }}\n}}\n"
    );
    let points = table.len() / 2;
    let device = device();
    let program = device.build(&source).unwrap_or_else(|e| panic!("{e}"));
    let data = input(&cases);
    let bytes: Vec<u8> = table.iter().flat_map(|v| v.to_le_bytes()).collect();
    let memory = |bytes: &[u8]| {
        let mut memory = device.alloc(bytes.len()).expect("memory");
        device.write(&mut memory, 0, bytes).expect("written");
        memory
    };
    let (from, table, to) = (memory(&data), memory(&bytes), memory(&vec![0; 8 * points]));
    let kernel = program.kernel("every_point").expect("the kernel");
    let arguments = [
        ClArg::Buffer(&from),
        ClArg::Buffer(&table),
        ClArg::Buffer(&to),
        ClArg::U32(points as u32),
    ];
    let grid = [points.div_ceil(GROUP) as u32, 1, 1];
    kernel
        .launch(grid, [GROUP as u32, 1, 1], &arguments)
        .unwrap_or_else(|e| panic!("{e}"));
    let output = device.read(&to, 0, 8 * points).expect("read");
    check(&cases, &output, "OpenCL C");
}
